#!/bin/bash
# Written by scalebench; a new submission writes it again.
#SBATCH --job-name=cifar/mlp-2w-1f3c-r1-a1
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=00:10:00
#SBATCH --output=/scratch/runs/cifar/mlp-2w-1f3c-r1-a1/job.log
#SBATCH --no-requeue

# shellcheck disable=SC1003,SC1090,SC1091,SC2016,SC2317
# (files and functions are called that shellcheck cannot see, and a value in
# single quotes is meant to stay as it is)
set -u -o pipefail
ulimit -c 0
umask 077

run_dir=/scratch/runs/cifar/mlp-2w-1f3c-r1-a1 cpus=2
worker=/home/ada/bin/scalebench-worker
restart=${SLURM_RESTART_COUNT:-0}

say() { echo "scalebench: $*" >&2; }
fail() {
  say "$*"
  exit 1
}
[ -n "${SLURM_JOB_ID-}" ] || fail "this is a batch script for Slurm: sbatch $0"
job_id=$SLURM_JOB_ID

# One attempt runs once. A submission that timed out may be in the queue twice:
# the first copy that renames its folder to this name runs; any other ends here
# and changes nothing. Each requeue of the first copy claims again, with its own
# number. A file server's answer can be lost after it has done its work, and then
# mkdir and mv fail: what counts is whose file is in the folder. It is an empty
# file with a random name, so that a full disk cannot leave it half written.
claim() {
  local claim=$run_dir/claim-$restart owner='' own token try moved=''
  if [ -e "$run_dir/cancel.json" ]; then
    say "job $job_id: the run was cancelled; nothing was run"
    exit 75
  fi
  if [ -e "$run_dir/claim-0/job_id" ]; then read -r owner <"$run_dir/claim-0/job_id" || owner=''; fi # torn by a loss of power
  if [ -n "$owner" ] && [ "$owner" != "$job_id" ]; then
    say "job $job_id is a second copy of this attempt: job $owner has claimed it ($run_dir/claim-0); nothing was run"
    exit 75
  fi
  read -r token </proc/sys/kernel/random/uuid || token=$(hostname)-$$-$RANDOM-$(date +%s%N)
  own=$run_dir/.claim-$token
  for ((try = 0; try < 90; try++)); do # a folder may be shown late, up to 90 s
    if [ "$try" -gt 0 ]; then sleep 1; fi
    if { mkdir -- "$own" || [ -d "$own" ]; } 2>/dev/null && { : >"$own/$token" && echo "$job_id" >"$own/job_id"; } 2>/dev/null; then
      moved=yes
      mv -f -T -- "$own" "$claim" 2>/dev/null # never onto a folder that is not empty
    elif [ ! -e "$claim" ] && { [ "$try" -ge 2 ] || [ ! -d "$run_dir" ]; }; then
      break
    fi
    if [ -e "$claim/$token" ]; then return; fi
    set -- "$claim"/*
    if [ -e "$1" ]; then
      rm -rf -- "$own"
      owner=
      if [ -e "$claim/job_id" ]; then read -r owner <"$claim/job_id" || owner=''; fi
      if [ -n "$owner" ] && [ "$owner" != "$job_id" ]; then owner="job $owner has claimed it"; else owner='it is already claimed'; fi
      say "job $job_id is a second copy of this attempt: $owner ($claim); nothing was run"
      exit 75
    fi
  done
  # Once it was to be moved, what is seen under the old name may be the claim.
  if [ -z "$moved" ]; then rm -rf -- "$own"; fi
  fail "cannot write in the run folder $run_dir on $(hostname): is it on a file system that the compute nodes share, and not full?"
}
claim

# However the script ends, it leaves exit-RESTART.json, whole or not at all.
finish() {
  local code=$? record=$run_dir/exit-$restart.json job nodes
  trap - EXIT
  # scancel signals srun and this script one after the other, and srun may have
  # ended before the script hears of it.
  if [ "$code" = 143 ] && [ -z "$signal" ]; then sleep 1; fi
  job=$(tr -cd '0-9A-Za-z_+' <<<"$job_id") nodes=$(tr -cd '][0-9A-Za-z_.,-' <<<"${SLURM_JOB_NODELIST-}")
  if printf '{"exit_code":%d,"signal":"%s","start_unix":%s,"end_unix":%s,"job_id":"%s","nodelist":"%s","restart":%d}\n' \
    "$code" "$signal" "$started" "$(date +%s.%N)" "$job" "$nodes" "$restart" | dd of="$record.tmp" conv=fsync 2>/dev/null; then
    mv -f -- "$record.tmp" "$record"
  else
    say "cannot write $record"
  fi
  exit "$code"
}

# The script passes a signal on to srun, srun passes it to every task, and the
# script keeps waiting for them.
pass_on() {
  signal=$1 interrupted=yes
  if [ -n "$step" ]; then kill -s "$1" "$step" 2>/dev/null; fi
}
await() {
  if [ -n "$signal" ]; then kill -s "$signal" "$step"; fi # it came while srun was being started
  interrupted=yes
  while [ -n "$interrupted" ]; do # a signal ends wait early
    interrupted=
    wait "$step"
    code=$?
  done
  step=
}
record() {
  signal='' step='' started=$(date +%s.%N)
  trap finish EXIT
  trap 'pass_on TERM' TERM
  trap 'pass_on USR1' USR1
}
record

# Modules and setup are the site's: they may use unset variables, but the first
# command that fails ends the job, or it would measure something else.
set +u -eE
trap 'say "setup failed: $BASH_COMMAND"' ERR
# A batch shell reads no profile, and has the module command only where the
# submitting shell handed it on.
if ! command -v module >/dev/null; then
  for init in "${LMOD_PKG-}/init/bash" "${MODULESHOME-}/init/bash" /etc/profile.d/{lmod,z00_lmod,modules}.sh; do
    if [ -r "$init" ]; then
      source "$init" || true # what it lacks, module load will say
      break
    fi
  done
fi
module load python/3.11.5 || fail "setup failed: module load "python/3.11.5
# --- setup lines of the site file
source "$HOME/venvs/torch/bin/activate"
# --- end of the setup lines
trap - ERR
set -u +eE
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$cpus}"
export SCALEBENCH_RUN="$run_dir"
export SCALEBENCH_RESTART="$restart"
export SCALEBENCH_INTERFACE=''

# Where rank 0 will listen: found here, on its node, when the job runs.
found=$("$worker" address) ||
  fail "no address for rank 0 on $(hostname): $worker address failed; see above"
read -r MASTER_ADDR MASTER_PORT <<<"$found"
[[ $MASTER_ADDR != '' && $MASTER_PORT =~ ^[0-9]+$ ]] ||
  fail "no address for rank 0 on $(hostname): $worker address printed '$found', not an address and a port"
export MASTER_ADDR MASTER_PORT

[ -z "$signal" ] || fail "SIG$signal came before the programs were started"
[ ! -e "$run_dir/cancel.json" ] || fail "the run was cancelled before the programs were started"
srun \
  --nodes=2 \
  --ntasks=2 \
  --ntasks-per-node=1 \
  --cpus-per-task=2 \
  --kill-on-bad-exit=1 \
  --export=ALL \
  /home/ada/bin/scalebench-worker train --run /scratch/runs/cifar/mlp-2w-1f3c-r1-a1 &
step=$!
await
exit "$code"

