package worker

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics"
)

const traceback = `starting
Traceback (most recent call last):
  File "/home/u/train.py", line 5, in <module>
    load({})
  File "/home/u/train.py", line 31, in load
    return d['labels']
           ~^^^^^^^^^^
KeyError: 'labels'
`

const mpiRule = "--------------------------------------------------------------------------\n"

func TestOf(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"nothing":     {"", ""},
		"blank lines": {"\n \n", ""},
		"traceback":   {traceback, "KeyError: 'labels' (train.py:31)"},
		// Beneath the user's line are the library's.
		"in a library": {strings.Replace(traceback, "KeyError", "  File \"/usr/lib/python3/dist-packages/torch/nn.py\", line 9, in f\n    g()\nValueError", 1),
			"ValueError: 'labels' (train.py:31)"},
		"a library alone": {"  File \"/usr/lib/python3.11/runpy.py\", line 9\n    g()\nImportError: x\n", "ImportError: x (runpy.py:9)"},
		"chained":         {traceback + "\nDuring handling of the above exception, another exception occurred:\n\n" + strings.Replace(traceback, "KeyError: 'labels'", "RuntimeError: bad data", 1), "RuntimeError: bad data (train.py:31)"},
		"torchrun's summary": {traceback + "Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n    main()\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n",
			"KeyError: 'labels' (train.py:31)"},
		"each rank's": {"[rank1]: " + strings.ReplaceAll(strings.TrimSpace(traceback), "\n", "\n[rank1]: ") + "\n", "KeyError: 'labels' (train.py:31)"},
		"syntax":      {"  File \"/home/u/train.py\", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n", "SyntaxError: invalid syntax (train.py:3)"},
		"coloured":    {"\x1b[31mTraceback\x1b[0m\n  File \"/home/u/\x1b[35mtrain.py\x1b[0m\", line \x1b[35m2\x1b[0m\n\x1b[1;35mOSError\x1b[0m: gone\n", "OSError: gone (train.py:2)"},
		"no script":   {"python3: can't open file '/home/u/x.py': [Errno 2] No such file or directory\n", "python3: can't open file '/home/u/x.py': [Errno 2] No such file or directory"},
		"MPI cannot start": {mpiRule + "There are not enough slots available in the system to satisfy the 4\nslots that were requested by the application:\n\n  ./a.out\n\nEither request fewer procs\n" + mpiRule,
			"There are not enough slots available in the system to satisfy the 4 slots that were requested by the application:"},
		"MPI of another kind": {mpiRule + "PMI2_Init failed to intialize.  Return code: 14\n" + mpiRule + mpiRule + "The application appears to have been direct launched using \"srun\",\nbut OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n\nPlease configure.\n" + mpiRule + "*** An error occurred in MPI_Init_thread\n[node1:12345] Local abort before MPI_INIT completed completed successfully\n",
			"The application appears to have been direct launched using \"srun\", but OMPI was not built with SLURM's PMI support and therefore cannot execute."},
		"MPI_Abort": {"step 1\n" + mpiRule + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 17.\n\nNOTE: invoking\n" + mpiRule,
			"MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD with errorcode 17."},
		"before MPI_Abort": {"fatal: no input deck\n" + mpiRule + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 17.\n" + mpiRule, "fatal: no input deck"},
		"MPICH": {"step 1\n" + strings.Repeat("=", 83) + "\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 7 RUNNING AT node1\n=   EXIT CODE: 9\n" + strings.Repeat("=", 83) + "\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
			"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES PID 7 RUNNING AT node1 EXIT CODE: 9"},
		"a table of its own": {mpiRule + "epoch | loss\n" + mpiRule + "    1 | 0.5\n" + mpiRule, "its last output was: " + strings.TrimSpace(mpiRule)},
		"rules of its own":   {mpiRule + "epoch 3\n", "its last output was: epoch 3"},
		// Ordinary output is not a cause.
		"chatter":           {"epoch 3: loss 0.25\n", "its last output was: epoch 3: loss 0.25"},
		"a progress bar":    {"10%\r20%\rfatal: the disk is gone\r\n", "fatal: the disk is gone"},
		"steers":            {"error: \x07\u202eabc\n", `error: \a\u202eabc`},
		"not UTF-8":         {"error: \xff\n", "error: \uFFFD"},
		"cut in its middle": {"    x\n  File \"/home/u/train.py\", line 7, in f\nKeyError: 1", "KeyError: 1 (train.py:7)"},
	} {
		if got := diagnose(c.output); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	long := diagnose("error " + strings.Repeat("ä", 1000))
	if len(long) > longest+len("…") || !utf8.ValidString(long) {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

// What a real Slurm 22.05 has written into job.log.
const (
	overMemory = `slurmstepd-node1: error: StepId=10.0 exceeded memory limit (481398784 > 314572800), being killed
slurmstepd-node1: error: Exceeded job memory limit
srun: Job step aborted: Waiting up to 5 seconds for job step to finish.
slurmstepd-node1: error: *** STEP 10.0 ON node1 CANCELLED AT 2026-11-22T11:15:14 ***
srun: error: node1: task 0: Killed
srun: launch/slurm: _step_signal: Terminating StepId=10.0
`
	overTime = `srun: Job step aborted: Waiting up to 5 seconds for job step to finish.
slurmstepd-node1: error: *** STEP 11.0 ON node1 CANCELLED AT 2026-11-22T11:16:20 DUE TO TIME LIMIT ***
srun: error: node1: task 0: Exited with exit code 143
scalebench-worker: rank 0 of 1 ended with code 143; see /runs/rank-00000.log
`
	failed = `scalebench-worker: rank 0 of 1 ended with code 1; see /runs/rank-00000.log
srun: error: node1: task 0: Exited with exit code 1
srun: launch/slurm: _step_signal: Terminating StepId=12.0
`
)

func TestSlurmMessages(t *testing.T) {
	for name, c := range map[string]struct{ log, slurm, script string }{
		"memory":         {overMemory, "node1: StepId=10.0 exceeded memory limit (481398784 > 314572800), being killed", ""},
		"time":           {overTime, "STEP 11.0 ON node1 CANCELLED AT 2026-11-22T11:16:20 DUE TO TIME LIMIT", ""},
		"nothing to add": {failed, "", ""},
		"a task":         {"srun: error: node2: task 3: Segmentation fault\n", "node2: task 3: Segmentation fault", ""},
		"cgroups":        {"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n", "Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.", ""},
		"setup":          {"/x/job.sh: line 90: module: command not found\nscalebench: setup failed: module load cuda\n", "", "setup failed: module load cuda: /x/job.sh: line 90: module: command not found"},
		"ours alone":     {"scalebench: no address for rank 0 on n1\n", "", "no address for rank 0 on n1"},
		"no worker":      {"/x/job.sh: line 80: /opt/scalebench-worker: No such file or directory\nscalebench: no address for rank 0 on n1: /opt/scalebench-worker address failed; see above\n", "", "no address for rank 0 on n1: /opt/scalebench-worker address failed; see above: /x/job.sh: line 80: /opt/scalebench-worker: No such file or directory"},
	} {
		if got := DiagnoseSlurm(c.log); got != c.slurm {
			t.Errorf("%s: Slurm %q, want %q", name, got, c.slurm)
		}
		if got := DiagnoseScript(c.log); got != c.script {
			t.Errorf("%s: script %q, want %q", name, got, c.script)
		}
		if got, want := IsOutOfMemory(c.slurm), name == "memory" || name == "cgroups"; got != want {
			t.Errorf("%s: out of memory %v, want %v", name, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	for cause, want := range map[string]string{
		"ModuleNotFoundError: No module named 'torch' (train.py:3)":         "Install torch for",
		"python3: can't open file '/u/x.py': [Errno 2] No such file (a)":    "correct its path in command.run",
		`"pythonx" is not on the PATH of node1`:                             "Correct command.run",
		"OSError: [Errno 98] Address already in use (train.py:2)":           "MASTER_PORT",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to (train.py:2)": "The GPU's memory is too small: lower the batch per worker",
		"gpu: the training needs 4.67 MiB of GPU memory; 1 MiB of 16 GiB are free: use a smaller batch or an unused GPU (cuMemAlloc: out of memory (CUDA error 2))": "The GPU's memory is too small: lower the batch per worker",
		"node1: StepId=10.0 exceeded memory limit (9 > 3), being killed":                                                                                            "resources.memory",
		"setup failed: module load cuda: command not found":                                                                                                         "site file",
		"KeyError: 'labels' (train.py:31)":                                                                                                                          "",
	} {
		if got := Hint(metrics.Failed, cause, nil); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
	for want, lengths := range map[string][]string{
		"Raise resources.time, or give the program less to do.":                 nil,
		"Raise resources.time, or lower workload.epochs.":                       {"workload.epochs"},
		"Raise resources.time, or lower workload.epochs or workload.max_steps.": {"workload.epochs", "workload.max_steps"},
	} {
		if got := Hint(metrics.TimedOut, "KeyError: No module named 'torch'", lengths); got != want {
			t.Errorf("timed out: %q, want %q", got, want)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{"", traceback, overMemory, overTime, failed, "\x1b[31m\r\n  File \"a\", line 1",
		"  File \"a\u009b2J\u202e\xff.py\", line 1\nE", "  File \"" + strings.Repeat("a", 5000) + ".py\", line 1\nE"} {
		f.Add(seed)
	}
	// The result is one line without control characters and of bounded length.
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{diagnose(text), DiagnoseSlurm(text), DiagnoseScript(text)} {
			if strings.ContainsAny(got, "\n\x1b\r\u009b\u202e") || len(got) > longest+100 || !utf8.ValidString(got) {
				t.Errorf("%q", got)
			}
		}
	})
}
