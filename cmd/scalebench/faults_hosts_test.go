//go:build slurm

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

var hostClasses = []class{
	{name: "two hosts with other clocks", fire: twoHosts, lane: onThisHost},
}

// twoHosts lets two hosts run, watch and collect the study at the same time. The hosts have
// different names, processes and boots, clocks that differ and jump, and the run folders on a
// network file system that loses replies. Without root, which is needed for that, only the
// clocks differ.
func twoHosts(tr *trial) error {
	var under [2][]string
	var clocks [2]string
	if err := os.MkdirAll(tr.runs, 0o755); err != nil {
		return err
	}
	for i := range under {
		clocks[i] = fmt.Sprintf("0:%s%d,%d:%s%d", tr.one("", "-"), int(tr.between(time.Second, 48*time.Hour).Seconds()),
			tr.between(0, 3*time.Second).Milliseconds(), tr.one("", "-"), int(tr.between(time.Second, 3*time.Hour).Seconds()))
		if os.Getuid() != 0 {
			continue
		}
		plan := nfstest.Plan{Lost: 0.1, Stale: 0.05, Memory: 100 * time.Millisecond, Delay: 2 * time.Millisecond, Seed: tr.rng.Uint64()}
		init, stop, err := up(fmt.Sprint("login", i+1), filepath.Join(tr.dir, fmt.Sprint("boot_id.", i)), nfstest.Mount(tr.t, tr.runs, plan).Path, tr.runs)
		if err != nil {
			return err
		}
		defer stop()
		under[i] = enter(init, tr.dir)
	}
	tr.how = clocks[0] + " and " + clocks[1]
	tr.native = tr.rng.IntN(3) == 0
	tr.files()
	ctx, cancel := context.WithTimeout(context.Background(), tr.patience)
	defer cancel()
	defer func() { tr.clock = "" }()
	for _, args := range [][]string{tr.command(), {"status", tr.name}, {"collect"}} {
		var ends []func() (string, int)
		for i := range under {
			tr.clock = clocks[i]
			cmd, out := tr.startUnder(ctx, under[i], args...)
			ends = append(ends, func() (string, int) { return tr.finish(cmd, out) })
		}
		for i, end := range ends {
			if out, code := end(); code != 0 {
				tr.problem("on host %d: %s: exit code %d: %s", i+1, args[0], code, out)
			}
		}
	}
	return nil
}
