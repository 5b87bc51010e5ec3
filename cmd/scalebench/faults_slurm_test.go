//go:build slurm

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	faultCount = flag.Int("faults", 0, "faults that TestSlurmFaults fires; 0: one of each class; 1000 are the full suite")
	faultSeed  = flag.Uint64("fault-seed", 1, "seed of the faults' choice and timing; 0: a new one, which is printed")
	faultClass = flag.String("fault-class", "", "fire only faults of these classes, separated by commas")
)

// A class is a kind of fault.
type class struct {
	name string
	// fire starts a study, injects the fault and heals it. It returns an error if the fault could
	// not be injected.
	fire func(*trial) error
	lane lane
	// late faults leave attempts that count as lost only after minutes of grace. They are injected
	// early, and settled after all others.
	late bool
	// blind faults may leave a job that no lookup shows. The attempt is then rightly submitted
	// again, and only its claim prevents it from
	// running twice.
	blind bool
}

// A lane says which faults may run concurrently.
type lane int

const (
	alone      lane = iota // affects the cluster, which no other trial may use meanwhile
	onCluster              // affects one study on the cluster
	onThisHost             // affects one study on this machine, without Slurm
)

// abreast is the number of concurrent faults in each lane.
var abreast = map[lane]int{alone: 1, onCluster: 4, onThisHost: 3}

// classes are all fault classes; each file defines the classes of its subject.
var classes = slices.Concat(toolClasses, daemonClasses, jobClasses, folderClasses,
	leaseClasses, hostileClasses, limitClasses, strangerClasses, clockClasses, hostClasses, signalClasses, changeClasses, databaseClasses)

// TestSlurmFaults injects faults into the real binaries and a real cluster, with a separate
// study for each. After a fault is healed, `submit --wait` or `run` is repeated until
// nothing is left to do. Then every planned point must have exactly one good result and
// every other attempt a cause; no attempt may have run twice; the database must contain
// exactly that, with figures that agree with what the ranks wrote.
func TestSlurmFaults(t *testing.T) {
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	t.Logf("again with: go test -tags slurm ./cmd/scalebench -run TestSlurmFaults -faults %d -fault-seed %d", *faultCount, seed)
	deck := deal(max(0, *faultCount), seed)
	if len(deck) == 0 {
		t.Fatalf("no such class in -fault-class %q", *faultClass)
	}
	s := &suite{rig: newRig(t), tally: newTally(), seed: seed}
	// First come faults of the cluster itself, since some take long to settle, concurrently
	// with faults that need no cluster; then those that share the cluster.
	var lanes sync.WaitGroup
	lanes.Go(func() { s.fire(deck, onThisHost) })
	s.fire(deck, alone)
	s.fire(deck, onCluster)
	lanes.Wait()
	// Settle several trials at the same time, because they mostly wait.
	late := make(chan *trial)
	for range 8 {
		lanes.Go(func() {
			for tr := range late {
				tr.skipGrace()
				tr.settle(8 * time.Minute)
				s.tally.add(t, tr)
			}
		})
	}
	for _, tr := range s.late {
		late <- tr
	}
	close(late)
	lanes.Wait()
	t.Log(s.tally)
}

// A suite runs the faults and collects their results.
type suite struct {
	*rig
	tally *tally
	seed  uint64
	late  []*trial
}

// A dealt is a fault to inject; its number seeds its random numbers, independent of the order
// in which lanes take faults.
type dealt struct {
	class
	number int
}

// fire injects the faults of a lane, one after the other.
func (s *suite) fire(deck []dealt, l lane) {
	faults := make(chan dealt)
	var lanes sync.WaitGroup
	for range abreast[l] {
		lanes.Go(func() {
			for d := range faults {
				s.one(d)
			}
		})
	}
	for _, late := range []bool{true, false} {
		for _, d := range deck {
			if d.lane == l && d.late == late {
				faults <- d
			}
		}
	}
	close(faults)
	lanes.Wait()
}

// one injects one fault. Traces of earlier faults may prevent the injection.
func (s *suite) one(d dealt) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(d.number)))
	for try := range 3 {
		tr := s.trial(fmt.Sprintf("f%03d-%d", d.number, try), d.class, rng)
		began := time.Now()
		var err error
		if d.lane != onThisHost {
			err = s.calm()
		}
		if err == nil {
			err = d.fire(tr)
		}
		tr.fired = time.Now()
		if err != nil {
			s.t.Logf("%s %s could not be fired: %v", tr.name, d.name, err)
			if try == 2 {
				s.t.Errorf("%s could not be fired:\n%s", d.name, tr.story())
			}
		} else {
			s.tally.count(d.name)
		}
		if d.late {
			s.late = append(s.late, tr) // only lane alone has late faults, and it is one goroutine
		} else {
			tr.settle(7 * time.Minute) // a job that Slurm has forgotten counts as lost after 5
			s.tally.add(s.t, tr)
		}
		s.t.Logf("%s %-30s %4.1f s (%s)", tr.name, d.name, time.Since(began).Seconds(), tr.how)
		if err == nil {
			return
		}
	}
}

// deal returns n faults in random order, with all classes equally often.
func deal(n int, seed uint64) []dealt {
	of := classes
	if *faultClass != "" {
		names := strings.Split(*faultClass, ",")
		of = slices.DeleteFunc(slices.Clone(classes), func(c class) bool { return !slices.Contains(names, c.name) })
		if len(of) < len(names) {
			return nil
		}
	}
	if n == 0 {
		n = len(of)
	}
	rng := rand.New(rand.NewPCG(seed, 1<<40))
	var deck []dealt
	for len(deck) < n {
		for _, i := range rng.Perm(len(of)) {
			deck = append(deck, dealt{of[i], len(deck)})
		}
	}
	return deck[:n]
}

// A tally counts the injected faults and the problems found.
type tally struct {
	sync.Mutex
	fired                       map[string]int
	points, lost, double, wrong int
}

func newTally() *tally { return &tally{fired: map[string]int{}} }

func (a *tally) count(class string) {
	a.Lock()
	defer a.Unlock()
	a.fired[class]++
}

func (a *tally) add(t *testing.T, tr *trial) {
	t.Helper()
	f := tr.check()
	a.Lock()
	defer a.Unlock()
	a.points += f.points
	a.lost += len(f.lost)
	a.double += len(f.doubled)
	a.wrong += len(f.wrong)
	if all := slices.Concat(f.lost, f.doubled, f.wrong, f.other); len(all) > 0 {
		t.Errorf("%s %s (%s):\n  %s\n%s", tr.name, tr.class.name, tr.how, strings.Join(all, "\n  "), tr.story())
	}
}

func (a *tally) String() string {
	var fired, not []string
	total := 0
	for _, c := range classes {
		if n := a.fired[c.name]; n > 0 {
			fired = append(fired, fmt.Sprintf("%s %d", c.name, n))
			total += n
		} else {
			not = append(not, c.name)
		}
	}
	text := fmt.Sprintf("%d faults of %d classes, %d planned points", total, len(fired), a.points)
	if len(not) > 0 {
		text += "\nnot fired this time: " + strings.Join(not, ", ")
	}
	return text + fmt.Sprintf("\nfired: %s · lost %d, doubled %d, wrong figures %d", strings.Join(fired, ", "), a.lost, a.double, a.wrong)
}
