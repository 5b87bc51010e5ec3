package collective

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// rankVariable makes the test program one rank, with an assignment as its value.
const rankVariable = "COLLECTIVE_TEST_RANK"

// An assignment says what a process of the test program does as a rank.
type assignment struct {
	World     world.World
	Transport Transport
	Timeout   time.Duration
	Host      string

	// Times are "bytes:batches:operations" of all-reduces to be timed; without
	// them the rank makes all-reduces of Elements until one fails, and prints
	// why.
	Times    []string
	Elements int
}

func TestMain(m *testing.M) {
	text := os.Getenv(rankVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var a assignment
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		err = a.run()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func (a assignment) run() error {
	g, err := Join(context.Background(), a.World, "nonce", Options{Transport: a.Transport, Timeout: a.Timeout, host: a.Host})
	if err != nil {
		return err
	}
	defer g.Close()
	for _, t := range a.Times {
		if err := timeAllReduce(g, t); err != nil {
			return err
		}
	}
	if a.Times != nil {
		return nil
	}
	fmt.Println("joined")
	for v := make([]float32, a.Elements); ; {
		if err := g.AllReduce(context.Background(), v); err != nil {
			return err
		}
	}
}

// timeAllReduce prints the bytes and, of every batch, the seconds that one
// operation took in it.
func timeAllReduce(g *Group, what string) error {
	ctx := context.Background()
	var size, batches, operations int
	if _, err := fmt.Sscanf(what, "%d:%d:%d", &size, &batches, &operations); err != nil {
		return fmt.Errorf("%q: %w", what, err)
	}
	v := make([]float32, size/4)
	line := strconv.Itoa(size)
	for batch := -1; batch < batches; batch++ { // the first batch is a warm-up
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		begin := time.Now()
		for range operations {
			if err := g.AllReduce(ctx, v); err != nil {
				return err
			}
		}
		if batch >= 0 {
			line += fmt.Sprintf(" %.9g", time.Since(begin).Seconds()/float64(operations))
		}
	}
	if g.Rank() == 0 {
		fmt.Println(line)
	}
	return nil
}

// A process is a rank in a separate process.
type process struct {
	*exec.Cmd
	output output
}

// output holds what a process has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns once the process has printed words.
func (o *output) await(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(o.String(), words); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q, want %q in it", o, words)
		}
	}
}

// startRanks starts a process for each rank; those that still run are killed
// when the test ends.
func startRanks(t testing.TB, size int, change func(a *assignment)) []*process {
	t.Helper()
	places, l := worlds(t, size)
	l.Close() // rank 0's process listens there
	list := make([]*process, size)
	for r, w := range places {
		a := assignment{World: w}
		change(&a)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		p := &process{Cmd: command(r, os.Args[0])}
		p.Env = append(os.Environ(), rankVariable+"="+string(text), "GOMAXPROCS=1")
		p.Stdout, p.Stderr = &p.output, &p.output
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		list[r] = p
	}
	return list
}

// command returns a rank's program. If there is a core for each rank, it is bound to one, as mpirun does by
// default.
func command(rank int, program string, args ...string) *exec.Cmd {
	if taskset, err := exec.LookPath("taskset"); err == nil && rank < runtime.NumCPU() {
		args = append([]string{"-c", strconv.Itoa(rank), program}, args...)
		program = taskset
	}
	return exec.Command(program, args...)
}
