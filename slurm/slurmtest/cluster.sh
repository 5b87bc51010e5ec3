#!/bin/bash
# A real Slurm cluster on one machine, for tests and demonstrations.
#
#   bash cluster.sh up DIR [NODES]       start it in DIR (4 nodes) and return
#   bash cluster.sh hold DIR [NODES]     start it, print "ready", end it when standard input ends
#   bash cluster.sh down DIR             end what was started in DIR
#   bash cluster.sh stop DIR NAME [SIG]  end one daemon (TERM) and wait until it is gone
#   bash cluster.sh signal DIR NAME SIG  send one daemon a signal, for example STOP and CONT
#   bash cluster.sh start DIR NAME       start it again
#   bash cluster.sh crash DIR NODE       kill everything on a node at once
#   bash cluster.sh silence DIR NODE     likewise, as after a power cut: connections stay open
#   bash cluster.sh boot DIR NODE        and bring the node back
#
# NAME is munged, mariadbd, slurmdbd, slurmctld or slurmd-NODE; nodes are node1, node2, ...
# After `up`, `. DIR/env.sh` makes sbatch, squeue, sacct, ... talk to this cluster.
#
# Nothing outside DIR is written and only processes started here are ended. As root, every node is a
# set of namespaces (network, host name, mounts, processes), so that it has its own host name, address
# and ports, as on a real cluster; else all nodes share this machine's, which needs no privileges but
# lets a 127.0.0.1 work between nodes that would fail on a cluster.
#
# Settings, from the environment:
#   CLUSTER_NET         namespaces, plain, or auto (the default): namespaces if the machine allows them
#   CLUSTER_ACCOUNTING  yes (slurmdbd on a private MariaDB) or no
#   CLUSTER_GPUS        fake GPUs on each node (4)
#   CLUSTER_WATTS       what nodeN draws, times N, by a counter like Cray's that Slurm reads; with namespaces only
#   CLUSTER_CONF        further lines for slurm.conf
set -u -o pipefail
umask 022
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
packages="slurm-wlm slurmdbd munge mariadb-server iproute2"
cpus=4 memory=4000          # per node; the machine need not have them
subnet=10.213.0             # exists inside the namespaces only
clients="sbatch srun salloc squeue sacct sacctmgr scontrol scancel sinfo sstat sprio"

die() { echo "cluster: $*" >&2; exit 1; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

# within SECONDS COMMAND...: try until it succeeds, 20 times a second.
within() {
  local tries=$(($1 * 20)); shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || return 1
    sleep 0.05
  done
}

# --- processes: DIR/pids/NAME holds the pid and the start time of what we started, so that a pid
# --- which has gone to somebody else is never signalled.

born() { # PID: its start time in clock ticks since boot
  local stat; stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a stat <<<"${stat##*) }"
  [ "${stat[0]}" != Z ] && echo "${stat[19]}"
}
record() { echo "$2 $(born "$2")" >"$dir/pids/$1"; }
alive() { # NAME: print its pid if it still runs
  local pid birth
  # Without a birth it had ended before that was looked up.
  read -r pid birth 2>/dev/null <"$dir/pids/$1" && [ -n "$birth" ] && [ "$(born "$pid")" = "$birth" ] && echo "$pid"
}
dead() { ! alive "$1" >/dev/null; }
finish() { # NAME [SIGNAL]: end it, by force after 20 s
  local pid
  if pid=$(alive "$1"); then
    kill -s "${2:-TERM}" "$pid"
    within 20 dead "$1" || { kill -s KILL "$pid"; within 5 dead "$1"; } || die "$1 (pid $pid) does not end"
  fi
  rm -f "$dir/pids/$1"
}
launch() { # NAME COMMAND...: in the background, in a session of its own
  local name=$1; shift
  setsid "$@" </dev/null >>"$dir/log/$name.out" 2>&1 &
  record "$name" $!
}
child() { # PID: its first child
  local pids; pids=$(cat "/proc/$1/task/$1/children" 2>/dev/null)
  [ -n "$pids" ] && echo "${pids%% *}"
}
descendants() {
  local pid
  tr ' ' '\n' 2>/dev/null <"/proc/$1/task/$1/children" | while read -r pid; do echo "$pid"; descendants "$pid"; done
}
failed() { # NAME: it did not start; say why
  tail -n 5 "$dir/log/$1.log" "$dir/log/$1.out" >&2 2>/dev/null
  die "$1 did not start; see $dir/log"
}

# --- namespaces

namespaces_work() {
  [ "$(id -u)" = 0 ] && unshare -numpf --kill-child --mount-proc sh -c '
    hostname probe && ip link add br0 type bridge && ip link add v0 type veth peer name v1 &&
    mount --bind /etc/hosts /etc/hosts' >/dev/null 2>&1
}
# The first process of a namespace holds it open and reaps what is left behind.
idle='trap "" TERM HUP INT; while :; do sleep 1000000 & wait; done'

boot_head() {
  launch head-shell unshare -numpf --kill-child --mount-proc bash -c "
    hostname head; ip link set lo up; ip link add br0 type bridge
    ip addr add $subnet.1/24 dev br0; ip link set br0 up; touch '$dir/run/head.up'; $idle"
  within 60 test -e "$dir/run/head.up" || failed head-shell
  record head "$(child "$(alive head-shell)")"
}
# A counter that rises by so many watts, which the kernel of a Cray keeps in the same files.
play() { # WATTS
  local start at
  mount -t tmpfs tmpfs /sys && mkdir -p /sys/cray/pm_counters && cd /sys/cray/pm_counters || return
  start=$(date +%s%N)
  while :; do
    at=$((($(date +%s%N) - start) / 1000)) # µs
    echo "$((at * $1 / 1000000)) J $at us" >.energy && mv .energy energy
    echo "$1 W $at us" >.power && mv .power power
    sleep 0.1
  done
}
boot_node() { # NODE
  local node=$1 number=${1#node} shell init
  rm -f "$dir/run/$node.up"
  # On a node DIR/bin must hold the plain commands: a job inherits its submitter's PATH.
  launch "$node-shell" unshare -numpf --kill-child --mount-proc bash -c "$(declare -f play)
    hostname $node; mount --bind '$dir/etc/hosts' /etc/hosts; mount --bind '$dir/bin-node' '$dir/bin'
    if [ $watts -gt 0 ]; then play $((watts * number)) & until [ -e /sys/cray/pm_counters/power ]; do sleep 0.02; done; else mount -t sysfs sysfs /sys; fi; ip link set lo up
    until ip link set eth0 up 2>/dev/null; do sleep 0.02; done
    ip addr add $subnet.$((10 + number))/24 dev eth0; touch '$dir/run/$node.up'; $idle"
  shell=$(alive "$node-shell") || failed "$node-shell"
  within 60 child "$shell" || failed "$node-shell"
  init=$(child "$shell"); record "$node" "$init"
  # A node that boots again has the address it had: the others remember it, and would
  # send into the void for as long as they do.
  in_head ip link add "v$number" type veth peer name eth0 address "$(printf 02:00:00:00:00:%02x "$number")" netns "$init" || failed "$node-shell"
  in_head ip link set "v$number" master br0 up || failed "$node-shell"
  within 60 test -e "$dir/run/$node.up" || failed "$node-shell"
}
in_head() {
  if [ "$net" = namespaces ]; then
    local pid; pid=$(alive head) || die "the head namespace is gone"
    nsenter --net="/proc/$pid/ns/net" --uts="/proc/$pid/ns/uts" "$@"
  else
    "$@"
  fi
}

# --- daemons

start_munged() {
  # munged refuses a key that others could have written.
  [ -e "$dir/etc/munge.key" ] || (umask 377 && head -c 128 /dev/urandom >"$dir/etc/munge.key")
  launch munged munged --foreground --socket="$dir/run/munge.sock" --key-file="$dir/etc/munge.key" \
    --log-file="$dir/log/munged.log" --pid-file="$dir/run/munged.pid" --seed-file="$dir/run/munge.seed"
  within 60 test -S "$dir/run/munge.sock" || failed munged
}
start_mariadbd() {
  local me; me=$(id -un)
  # A server that starts removes from its folder of temporary files what others have there.
  local -x TMPDIR=$dir/tmp
  # Over the socket only the user who runs this may log in, without a password.
  [ -d "$dir/db/mysql" ] || mariadb-install-db --no-defaults --user="$me" --datadir="$dir/db" --skip-test-db \
    --auth-root-authentication-method=socket --auth-root-socket-user="$me" --skip-name-resolve \
    >"$dir/log/mariadbd.out" 2>&1 || failed mariadbd
  launch mariadbd mariadbd --no-defaults --user="$me" --datadir="$dir/db" --socket="$dir/run/mysql.sock" \
    --pid-file="$dir/run/mariadbd.pid" --skip-networking --log-error="$dir/log/mariadbd.log" \
    --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900
  within 120 mariadb --no-defaults --socket="$dir/run/mysql.sock" \
    -e 'create database if not exists slurm_acct_db' || failed mariadbd
}
start_slurmdbd() {
  # slurmdbd takes the path of "localhost"'s socket from the environment.
  MYSQL_UNIX_PORT=$dir/run/mysql.sock launch_in_head slurmdbd slurmdbd -D
  within 120 in_head sacctmgr -n list cluster || failed slurmdbd
}
start_slurmctld() {
  launch_in_head slurmctld slurmctld -D -i
  local tries
  for tries in $(seq 1200); do # a bad configuration ends it late: stop waiting then
    in_head scontrol ping >/dev/null 2>&1 && return
    dead slurmctld && break
    sleep 0.05
  done
  failed slurmctld "$tries"
}
start_slurmd() { # NODE
  mkdir -p "$dir/spool/$1"
  if [ "$net" = namespaces ]; then
    launch "slurmd-$1-shell" nsenter -t "$(alive "$1")" -n -u -m -p -- slurmd -D -N "$1"
    local shell; shell=$(alive "slurmd-$1-shell") || failed "slurmd-$1"
    within 60 child "$shell" || failed "slurmd-$1"
    record "slurmd-$1" "$(child "$shell")"
  else
    # Its steps inherit the mark, by which crash finds them.
    CLUSTER_NODE="$dir/$1" launch "slurmd-$1" slurmd -D -N "$1"
  fi
}
launch_in_head() { # NAME COMMAND...: like launch
  local name=$1; shift
  if [ "$net" = namespaces ]; then
    local pid; pid=$(alive head) || die "the head namespace is gone"
    launch "$name" nsenter --net="/proc/$pid/ns/net" --uts="/proc/$pid/ns/uts" "$@"
  else
    launch "$name" "$@"
  fi
}
start() { # NAME
  case $1 in
  munged | mariadbd | slurmdbd | slurmctld) "start_$1" ;;
  slurmd-node*) start_slurmd "${1#slurmd-}" ;;
  *) die "no daemon is called $1" ;;
  esac
}
crash() { # NODE
  local pid
  if [ "$net" = namespaces ]; then
    finish "$1" KILL; finish "$1-shell" KILL
    rm -f "$dir/pids/slurmd-$1" "$dir/pids/slurmd-$1-shell"
  else
    finish "slurmd-$1" KILL
    grep -lzxF "CLUSTER_NODE=$dir/$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | while read -r pid; do
      # shellcheck disable=SC2046 # one pid a word
      kill -s KILL "$pid" $(descendants "$pid") 2>/dev/null
    done
  fi
  return 0 # grep and kill met processes that ended meanwhile
}

# --- configuration

free_port() { # COUNT: the first of so many neighbours that nobody listens on
  local used first port from=$((21000 + $$ % 110 * 100)) # another cluster that starts now looks elsewhere first
  used=" $(ss -Hltn | awk '{ sub(/.*:/, "", $4); printf "%s ", $4 }')"
  for first in $(seq "$from" 100 32000) $(seq 21000 100 "$from"); do
    for port in $(seq "$first" $((first + $1 - 1))); do [[ $used == *" $port "* ]] && continue 2; done
    echo "$first"; return
  done
  return 1
}
nodes() { seq -f node%.0f "$count"; }

configure() {
  local me controller=localhost address=127.0.0.1 node number
  me=$(id -un)
  if [ "$net" = namespaces ]; then controller=head address=$subnet.1; else controller=$(hostname -s); fi
  {
    cat <<CONF
ClusterName=bench
SlurmctldHost=$controller($address)
SlurmctldPort=$port
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
# cred_expire is also how long a requeued job waits (120 s unless set)
AuthInfo=socket=$dir/run/munge.sock,cred_expire=10
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
# without cgroups only this ends a job that exceeds its memory
JobAcctGatherParams=OverMemoryKill
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=$((memory / cpus))
ReturnToService=2
SlurmdTimeout=10
KillWait=3
MessageTimeout=10
# what can never run is refused at once
EnforcePartLimits=ALL
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
    if [ "$accounting" = yes ]; then
      cat <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$address
AccountingStoragePort=$((port + 1))
# for this storage the "password" is the munge socket
AccountingStoragePass=$dir/run/munge.sock
AccountingStorageEnforce=associations,qos
AccountingStorageTRES=gres/gpu
CONF
    fi
    if [ "$watts" -gt 0 ]; then
      printf '%s\n' AcctGatherEnergyType=acct_gather_energy/pm_counters AcctGatherNodeFreq=1
    fi
    [ "$gpus" -gt 0 ] && echo "GresTypes=gpu"
    local common="CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=$memory"
    [ "$gpus" -gt 0 ] && common+=" Gres=gpu:$gpus"
    for node in $(nodes); do
      number=${node#node}
      if [ "$net" = namespaces ]; then
        echo "NodeName=$node NodeAddr=$subnet.$((10 + number)) Port=$((port + 3)) $common"
      else
        echo "NodeName=$node NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 2 + number)) $common"
      fi
    done
    cat <<CONF
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=01:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=short Nodes=ALL MaxTime=00:05:00 PriorityTier=10 PreemptMode=OFF
PartitionName=scavenge Nodes=ALL MaxTime=1-00:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=closed Nodes=ALL State=DOWN
${CLUSTER_CONF:-}
CONF
  } >"$dir/etc/slurm.conf"

  # Slurm drops a GPU without a device file; a link to /dev/null is one.
  if [ "$gpus" -gt 0 ]; then
    for number in $(seq 0 $((gpus - 1))); do
      ln -sfn /dev/null "$dir/dev/gpu$number"
      echo "Name=gpu File=$dir/dev/gpu$number"
    done >"$dir/etc/gres.conf"
  fi
  # slurmd looks for a cgroup plugin although nothing uses one, and dies where it finds none.
  echo "CgroupPlugin=cgroup/v1" >"$dir/etc/cgroup.conf"

  (umask 177; cat >"$dir/etc/slurmdbd.conf") <<CONF
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.sock
DbdHost=$controller
DbdAddr=$address
DbdPort=$((port + 1))
SlurmUser=$me
LogFile=$dir/log/slurmdbd.log
PidFile=$dir/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$me
StorageLoc=slurm_acct_db
CONF
  {
    echo "127.0.0.1 localhost"; echo "$subnet.1 head"
    for node in $(nodes); do echo "$subnet.$((10 + ${node#node})) $node"; done
  } >"$dir/etc/hosts"
}
write_clients() { # commands that enter the head's network, and on the nodes the plain ones
  local name pid
  for name in $clients; do
    ln -sfn "$(command -v "$name")" "$dir/bin-node/$name"
    if [ "$net" = namespaces ]; then
      pid=$(alive head)
      printf '#!/bin/sh\nSLURM_CONF=%s exec nsenter --net=/proc/%s/ns/net --uts=/proc/%s/ns/uts %s "$@"\n' \
        "$dir/etc/slurm.conf" "$pid" "$pid" "$(command -v "$name")" >"$dir/bin/$name"
      chmod +x "$dir/bin/$name"
    else
      ln -sfn "$(command -v "$name")" "$dir/bin/$name"
    fi
  done
  echo "export SLURM_CONF=$dir/etc/slurm.conf PATH=$dir/bin:\$PATH" >"$dir/env.sh"
}

# --- the whole

idle_nodes() { [ "$(in_head sinfo -h -N -p main -o '%T' | grep -cx idle)" = "$count" ]; }
no_jobs() { [ -z "$(in_head squeue -h -o %A)" ]; }

up() {
  local name node
  for name in slurmctld slurmd munged ss ip setsid; do
    command -v $name >/dev/null || die "$name is missing; apt-get install --no-install-recommends $packages"
  done
  [ "$accounting" = no ] || for name in slurmdbd mariadbd; do
    command -v $name >/dev/null || die "$name is missing; apt-get install --no-install-recommends $packages"
  done
  [ ! -e "$dir/settings" ] || die "$dir already holds a cluster; end it with: cluster.sh down $dir"
  [ ${#dir} -le 64 ] || die "$dir is a longer path than the 64 bytes that leave room for unix sockets"
  [[ $dir =~ ^[A-Za-z0-9/._-]+$ ]] || die "$dir: Slurm's configuration allows letters, digits and /._- in a path"
  if [ "$net" = auto ]; then net=plain; if namespaces_work; then net=namespaces; fi; fi
  [ "$watts" = 0 ] || [ "$net" = namespaces ] || die "CLUSTER_WATTS needs nodes with a /sys of their own: run as root, where namespaces can be had"
  port=21000
  [ "$net" = namespaces ] || port=$(free_port $((count + 3))) || die "no free TCP ports"
  mkdir -p "$dir"/{etc,run,log,spool,state,dev,bin,bin-node,pids,db,tmp} || die "cannot write in $dir"
  chmod 755 "$dir" "$dir/run"
  printf '%s\n' "count=$count" "net=$net" "port=$port" "accounting=$accounting" "gpus=$gpus" "watts=$watts" >"$dir/settings"
  configure
  start_munged
  [ "$net" = plain ] || boot_head
  write_clients
  if [ "$accounting" = yes ]; then
    start_mariadbd
    start_slurmdbd
    # Before slurmctld starts, or it does not know the associations it is to enforce.
    in_head sacctmgr -i -Q add cluster bench >/dev/null
    in_head sacctmgr -i -Q add account bench Description=bench Organization=bench >/dev/null
    in_head sacctmgr -i -Q add user "$(id -un)" Account=bench DefaultAccount=bench AdminLevel=Admin >/dev/null
    in_head sacctmgr -i -Q modify user "$(id -un)" set DefaultAccount=bench >/dev/null
  fi
  start_slurmctld
  for node in $(nodes); do
    [ "$net" = plain ] || boot_node "$node"
    start_slurmd "$node"
  done
  within 180 idle_nodes || { in_head sinfo -N -l >&2; die "the nodes are not idle after 180 s; see $dir/log"; }
}
down() {
  local ids name node
  if alive slurmctld >/dev/null; then
    # Jobs first: in plain mode their processes would outlive the daemons.
    ids=$(in_head squeue -h -o %A | sort -u)
    # shellcheck disable=SC2086 # one id a word
    [ -z "$ids" ] || { in_head scancel $ids; within 10 no_jobs; }
  fi
  # By force, the controller first: nothing is to come back, and it would wait for its nodes.
  for name in slurmctld slurmdbd mariadbd munged; do finish "$name" KILL; done
  for node in $(nodes); do crash "$node"; done
  [ "$net" = plain ] || { finish head KILL; finish head-shell KILL; }
  rm -f "$dir/settings"
}

[ $# -ge 2 ] || usage
verb=$1 dir=$(readlink -m "$2")
count=${3:-4} net=${CLUSTER_NET:-auto} accounting=${CLUSTER_ACCOUNTING:-yes} gpus=${CLUSTER_GPUS:-4} watts=${CLUSTER_WATTS:-0} port=
export SLURM_CONF=$dir/etc/slurm.conf
case $verb in
up | hold)
  [[ $count =~ ^[1-9][0-9]?$ ]] || die "NODES is $count; 1 to 99 can be started"
  if ! (up); then
    [ ! -e "$dir/settings" ] || bash "$0" down "$dir"
    exit 1
  fi
  [ "$verb" = up ] && exit 0
  echo ready
  while read -r _; do :; done
  exec bash "$0" down "$dir"
  ;;
esac
if [ ! -f "$dir/settings" ]; then
  [ "$verb" = down ] && exit 0
  die "$dir holds no cluster"
fi
# shellcheck source=/dev/null
. "$dir/settings"
case $verb in
down) down ;;
stop) finish "${3?NAME is missing}" "${4:-TERM}" ;;
signal) kill -s "${4?SIG is missing}" "$(alive "${3?NAME is missing}")" ;;
start) start "${3?NAME is missing}" ;;
crash) crash "${3?NODE is missing}" ;;
silence) # killed processes have their connections closed, which others see at once
  [ "$net" != namespaces ] || in_head ip link delete "v${3#node}"
  crash "${3?NODE is missing}" ;;
boot)
  [ "$net" = plain ] || boot_node "${3?NODE is missing}"
  start_slurmd "${3?NODE is missing}"
  ;;
*) usage ;;
esac
