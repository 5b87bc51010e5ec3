//go:build slurm

package main

import (
	"fmt"
	"strings"
)

// site holds the settings of a trial's site file and of its study's policy. The zero value
// heals faulty ones.
type site struct {
	partition string // "": main
	setup     string // a line of shell before the programs
	requeue   bool   // Slurm may start the job again
	unclaimed bool   // the batch script does not claim its attempt
	array     bool   // each point runs twice, and runs of one shape are a job array
}

// files writes the study and the site file.
func (tr *trial) files() {
	s := tr.site
	study := fmt.Sprintf("[study]\nname = %q\n", tr.name)
	if s.array {
		study += "repeats = 2\n"
	}
	if tr.native {
		study += fmt.Sprintf(nativeStudy, tr.steps, tr.workers)
	} else {
		study += fmt.Sprintf(programStudy, tr.dir+"/train.sh", tr.steps, tr.workers)
	}
	study += fmt.Sprintf(commonStudy, s.requeue)
	if s.array {
		study += "packing = \"array\"\n"
	}
	tr.file("study.toml", study, 0o644)
	if s.partition == "" {
		s.partition = "main"
	}
	text := "worker = \"worker\"\n"
	if s.setup != "" {
		text += fmt.Sprintf("setup = ['''%s''']\n", s.setup)
	}
	if s.unclaimed {
		text += "template = \"job.tmpl\"\n"
		template := "#!/bin/bash\n{{template \"directives\" .}}\n"
		for _, block := range []string{"prepare", "claim", "record", "environment", "address", "step"} {
			call := fmt.Sprintf("{{template %q .}}\n", block)
			if block == "claim" { // every script needs it
				call = "if false; then\n" + call + "fi\n"
			}
			template += call
		}
		tr.file("job.tmpl", template, 0o644)
	}
	tr.file("site.toml", text+fmt.Sprintf("[[partitions]]\nname = %q\nmax_nodes = 4\n", s.partition), 0o644)
}

const nativeStudy = `
[workload]
model = "mlp"
batch = 16
max_steps = %d
warmup_epochs = 0
[data]
kind = "synthetic"
train_samples = 512
test_samples = 128
[sweep]
workers = [1, %d]
`

const programStudy = `
[command]
run = ["bash", %q, "%d"]
[sweep]
framework = ["command"]
workers = [1, %d]
`

const commonStudy = `
[resources]
time = "5m"
memory = "150M"
exclusive = false
workers_per_node = 1
[policy]
requeue = %v
`

// cheapProgram imitates a training at no cost: it reports steps of 20 ms, each with a
// different duration, like a trainer of any framework, with an evaluation by rank 0 after
// every 20th. Its argument is the number of steps.
const cheapProgram = `#!/bin/bash
out="$SCALEBENCH_RUN/events/rank-$(printf %05d "$RANK")-$SCALEBENCH_RESTART.jsonl"
begun=${EPOCHREALTIME/./}
event() {
  local t=$((${EPOCHREALTIME/./} - begun))
  printf '{"t":%d.%06d,%s}\n' $((t / 1000000)) $((t % 1000000)) "$1" >>"$out" || exit 1
}
event "\"start\":{\"format\":1,\"unix\":$((begun / 1000000)),\"writer\":\"rank\",\"framework\":\"command\",\"rank\":$RANK,\"world_size\":$WORLD_SIZE,\"local_rank\":$LOCAL_RANK,\"restart\":$SCALEBENCH_RESTART,\"host\":\"$HOSTNAME\",\"pid\":$$}"
event '"train":{}'
for ((first = 0; first < $1; first += 10)); do
  sleep 0.2
  duration=() samples=()
  for ((i = 0; i < 10; i++)); do duration+=($((18000 + RANDOM % 4000))) samples+=($((1 + RANDOM % 32))); done
  IFS=,; event "\"steps\":{\"first\":$first,\"tick\":0.000001,\"duration\":[${duration[*]}],\"samples\":[${samples[*]}]}"; unset IFS
  if [ "$RANK" = 0 ] && [ $((first % 20)) = 10 ]; then
    event "\"evaluation\":{\"epoch\":$((first / 20 + 1)),\"step\":$((first + 10)),\"accuracy\":0.$((RANDOM + 10000)),\"samples\":0,\"seconds\":0}"
  fi
done
event "\"stop\":{\"status\":\"done\",\"steps\":$1,\"epochs\":$(($1 / 20))}"
`

// commandWrapper wraps one of Slurm's commands. Depending on the file "kill" (COMMAND CALL
// WHEN), it kills the calling tool before, during or after the real command; "twice"
// submits a job twice and reports only the second. If the file "silent" exists, it answers
// nothing. "submitted" lists the jobs whose sbatch answer was delivered; while one of them
// works, a file "busy" exists.
const commandWrapper = `#!/bin/bash
name=%s dir=%s real=%s
: >"$dir/busy.$$"; trap 'rm -f "$dir/busy.$$"' EXIT
read -r calls 2>/dev/null <"$dir/$name.calls"
echo "$((calls += 1))" >"$dir/$name.calls"
read -r what call when 2>/dev/null <"$dir/kill"
[ "$what $call" = "$name $calls" ] || when=
[ "$name" = sbatch ] || [ ! -e "$dir/silent" ] || exit 0
if [ "$when" = before ]; then kill -KILL $PPID; exit 1; fi
if [ "$when" = during ]; then kill -KILL $PPID; fi
if [ "$when" = twice ]; then "$real" "$@" >>"$dir/unseen"; fi
out=$("$real" "$@" 2>"$dir/$name.err.$$"); code=$?
if [ "$name" = sbatch ] && [ $code = 0 ]; then echo "$out ${*: -1}" >>"$dir/submitted"; fi
if [ "$when" = after ]; then kill -KILL $PPID; exit 1; fi
[ -z "$out" ] || printf '%%s\n' "$out"
cat "$dir/$name.err.$$" >&2; rm -f "$dir/$name.err.$$"
exit $code
`

// workerWrapper wraps the worker and records, outside the run folder, which job (or local
// command) started which rank of which attempt. The file "limits" holds shell commands for
// it, such as ulimit.
const workerWrapper = `#!/bin/bash
dir=%s real=%s
if [ "$1" = run ]; then
  run=$SCALEBENCH_RUN job=${SLURM_JOB_ID:-local-$PPID}
  [ "$2" != --dir ] || run=$3 # an array's task has the variable only
  echo "$run $SCALEBENCH_RESTART ${SLURM_PROCID:-$RANK} $job" >>"$dir/started"
fi
if [ "$1" = run ] || [ "$1" = probe ]; then [ ! -e "$dir/limits" ] || . "$dir/limits"; fi
exec "${FAULT_WORKER:-$real}" "$@"
`

// quoted is text as one word of a shell's command line.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
