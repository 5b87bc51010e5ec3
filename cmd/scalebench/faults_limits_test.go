//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var limitClasses = []class{
	{name: "limits of the command", fire: commandLimited, lane: onThisHost},
	{name: "limits of submit", fire: commandLimited, lane: onCluster},
	{name: "limits of the ranks", fire: ranksLimited, lane: onThisHost},
	{name: "limits in the job", fire: ranksLimited, lane: onCluster},
}

// limit draws a random limit, in the syntax of prlimit and of the shell. Open files
// are limited to 3 or more, and fewer than files.
func (tr *trial) limit(files int) (prlimit, ulimit string) {
	switch tr.one("nofile", "nofile", "fsize", "nproc", "as") {
	case "nofile":
		n := 3 + tr.rng.IntN(files-3)
		return fmt.Sprintf("--nofile=%d", n), fmt.Sprintf("ulimit -n %d", n)
	case "fsize":
		n := tr.rng.IntN(16)
		return fmt.Sprintf("--fsize=%d", n*1024), fmt.Sprintf("ulimit -f %d", n)
	case "nproc":
		n := 1 + tr.rng.IntN(40)
		return fmt.Sprintf("--nproc=%d", n), fmt.Sprintf("ulimit -u %d", n)
	}
	mb := 32 << tr.rng.IntN(5)
	return fmt.Sprintf("--as=%d", mb<<20), fmt.Sprintf("ulimit -v %d", mb<<10)
}

// commandLimited runs the commands with few descriptors, threads or bytes. Too few
// descriptors must be an error, and enough must work. If a Go program without threads or
// memory ends with its runtime's message, that is not our crash; losing or duplicating
// something would be.
func commandLimited(tr *trial) error {
	limit, _ := tr.limit(2 * fewestFiles)
	tr.how = limit
	if strings.HasPrefix(limit, "--nproc") && os.Getuid() == 0 { // no limit for root
		if tr.class.lane != onThisHost {
			limit = fmt.Sprintf("--nofile=%d", 3+tr.rng.IntN(2*fewestFiles))
			tr.how = limit
		} else if err := tr.as(nobody); err != nil {
			return err
		}
	}
	tr.mayBreak = strings.HasPrefix(limit, "--nproc") || strings.HasPrefix(limit, "--as")
	var files int
	ofFiles, _ := fmt.Sscanf(limit, "--nofile=%d", &files)
	for i, args := range [][]string{tr.command(), {"collect"}, {"status", tr.name}} {
		out, code := tr.runUnder([]string{"prlimit", limit}, args...)
		refused := code == exitUsage && strings.Contains(out, "open files")
		switch {
		case ofFiles == 0 || files < 8: // the program may fail to load
		case refused != (files < fewestFiles), files >= fewestFiles && i == 0 && code != exitDone:
			tr.problem("%s under %s: exit code %d: %s", args[0], limit, code, out)
		}
		if code != 0 && !tr.mayBreak && strings.TrimSpace(out) == "" {
			tr.problem("%s under %s: exit code %d, and not a word", args[0], limit, code)
		}
	}
	tr.mayBreak = false
	return nil
}

// ranksLimited limits the resources of the workers and of the programs that they start. The run
// ends as done or with a cause; then the limit is removed.
func ranksLimited(tr *trial) error {
	tr.native = tr.rng.IntN(2) == 0
	tr.files()
	_, limit := tr.limit(33)
	tr.how = fmt.Sprintf("%s, native %v", limit, tr.native)
	if strings.HasPrefix(limit, "ulimit -u") && os.Getuid() == 0 {
		if tr.class.lane != onThisHost {
			limit = "ulimit -n 4"
			tr.how = limit
		} else if err := tr.as(nobody); err != nil {
			return err
		}
	}
	tr.file("limits", limit+"\n", 0o644)
	args := tr.command()
	if tr.class.lane != onThisHost {
		args = append(args, "--wait", "--interval", "1s")
	}
	if out, code := tr.run(args...); code != 0 && code != exitRunsFailed {
		tr.problem("with ranks under %s: exit code %d: %s", limit, code, out)
	}
	return os.Remove(filepath.Join(tr.dir, "limits"))
}
