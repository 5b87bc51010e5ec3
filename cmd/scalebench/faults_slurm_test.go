//go:build slurm

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	faultCount = flag.Int("faults", 30, "faults that TestSlurmFaults fires; 210 are the full suite")
	faultSeed  = flag.Uint64("fault-seed", 1, "seed of the faults' choice and timing; 0: a new one, which is printed")
	faultClass = flag.String("fault-class", "", "fire only faults of this class")
)

// class is a kind of fault.
type class struct {
	name string
	// fire brings a study under way, lets the fault happen and heals it. An
	// error is that the fault could not be made to happen.
	fire func(*trial) error
	// late: what it leaves is known to be lost only after minutes of grace. It
	// is fired early, and settled when all others are done.
	late bool
	// blind: Slurm may hold a submission that no lookup shows, so that the same
	// attempt is rightly handed over again, and only its claim keeps it from
	// running twice.
	blind bool
}

var classes = []class{
	{name: "submit killed", fire: submitKilled},
	{name: "collect killed", fire: collectKilled},
	{name: "retry killed", fire: retryKilled},
	{name: "slurmctld down", fire: controllerDown},
	{name: "slurmctld hung", fire: controllerHung, blind: true},
	{name: "slurmctld killed after sbatch", fire: controllerKilled, late: true, blind: true},
	{name: "slurmctld restarted", fire: controllerRestarted, late: true},
	{name: "job id reused", fire: idReused, late: true, blind: true},
	{name: "a submission unseen", fire: submissionUnseen, blind: true},
	{name: "array's answer lost", fire: arrayLost},
	{name: "accounting down or hung", fire: accountingAway},
	{name: "node crashed", fire: nodeCrashed},
	{name: "slurmd restarted", fire: slurmdRestarted},
	{name: "job requeued", fire: jobRequeued},
	{name: "job preempted", fire: jobPreempted},
	{name: "job cancelled by hand", fire: jobCancelled},
	{name: "job timed out", fire: jobTimedOut},
	{name: "job out of memory", fire: jobOutOfMemory},
	{name: "job held by a limit", fire: jobHeld},
	{name: "run folder full or read-only", fire: folderNotWritable, late: true},
	{name: "database locked", fire: databaseLocked},
}

// TestSlurmFaults fires faults at the real binaries and a real cluster, one
// after the other, each at a study of its own. After each one is healed,
// `submit --wait` is repeated until it has nothing left to do; then every
// planned point must have exactly one good result, every other attempt a stated
// cause, no attempt may have run twice, and the database must hold just that.
func TestSlurmFaults(t *testing.T) {
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	t.Logf("again with: go test -tags slurm ./cmd/scalebench -run TestSlurmFaults -faults %d -fault-seed %d", *faultCount, seed)
	deck := deal(*faultCount, seed)
	if len(deck) == 0 {
		t.Fatalf("no faults: -faults is %d, -fault-class %q", *faultCount, *faultClass)
	}
	r := newRig(t)
	tally := newTally()
	var late []*trial
	for i, c := range deck {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for try := range 3 { // what earlier faults left may keep one from happening
			tr := r.trial(fmt.Sprintf("f%03d-%d", i, try), c, rng)
			began := time.Now()
			err := r.calm()
			if err == nil {
				err = c.fire(tr)
			}
			if err == nil {
				tally.fired[c.name]++
			} else if t.Logf("%s %s could not be fired: %v", tr.name, c.name, err); try == 2 {
				t.Errorf("%s could not be fired:\n%s", c.name, tr.story())
			}
			if c.late {
				late = append(late, tr)
			} else {
				tr.settle(4 * time.Minute)
				tally.add(t, tr)
			}
			t.Logf("%s %-30s %4.1f s (%s)", tr.name, c.name, time.Since(began).Seconds(), tr.how)
			if err == nil {
				break
			}
		}
	}
	// All at once: most of it is waiting.
	settled := make(chan *trial)
	for _, tr := range late {
		go func() { tr.settle(8 * time.Minute); settled <- tr }()
	}
	for range late {
		tally.add(t, <-settled)
	}
	t.Log(tally)
}

// deal is so many faults in random order, all classes as often as each other;
// those that settle late come first.
func deal(n int, seed uint64) []class {
	if *faultClass != "" && !slices.ContainsFunc(classes, func(c class) bool { return c.name == *faultClass }) {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 1<<40))
	var deck []class
	for len(deck) < n {
		for _, i := range rng.Perm(len(classes)) {
			if *faultClass == "" || *faultClass == classes[i].name {
				deck = append(deck, classes[i])
			}
		}
	}
	deck = deck[:n]
	slices.SortStableFunc(deck, func(a, b class) int {
		switch {
		case a.late == b.late:
			return 0
		case a.late:
			return -1
		}
		return 1
	})
	return deck
}

// tally counts what was fired and what was found.
type tally struct {
	fired                map[string]int
	points, lost, double int
}

func newTally() *tally { return &tally{fired: map[string]int{}} }

func (a *tally) add(t *testing.T, tr *trial) {
	t.Helper()
	f := tr.check()
	a.points += f.points
	a.lost += len(f.lost)
	a.double += len(f.doubled)
	if wrong := slices.Concat(f.lost, f.doubled, f.other); len(wrong) > 0 {
		t.Errorf("%s %s (%s):\n  %s\n%s", tr.name, tr.class.name, tr.how, strings.Join(wrong, "\n  "), tr.story())
	}
}

func (a *tally) String() string {
	var b strings.Builder
	b.WriteString("faults fired:\n")
	total := 0
	for _, c := range classes {
		fmt.Fprintf(&b, "  %-30s %3d\n", c.name, a.fired[c.name])
		total += a.fired[c.name]
	}
	fmt.Fprintf(&b, "  %-30s %3d\n%d planned points: lost %d, doubled %d", "all", total, a.points, a.lost, a.double)
	return b.String()
}
