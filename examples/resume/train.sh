#!/bin/sh
# train.sh CHECKPOINTS RESUME: five steps, with a checkpoint after each.
set -eu
step=0
if [ -n "$2" ]; then
	step=$(cat "$2")
	echo "going on after step $step"
fi
while [ "$step" -lt 5 ]; do
	step=$((step + 1))
	echo "step $step"
	echo "$step" >"$1/step-$step.tmp"
	mv "$1/step-$step.tmp" "$1/step-$step"
	if [ -z "$2" ] && [ "$step" = 3 ]; then
		echo 4 >"$1/step-4.tmp" # half a checkpoint
		echo "the node fails" >&2
		exit 1
	fi
done
