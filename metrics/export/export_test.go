package export

import (
	"bytes"
	"compress/flate"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// A family's name ends with its unit, as OpenMetrics requires, and says it once.
func TestMetricName(t *testing.T) {
	for _, test := range []struct{ measure, unit, name, word string }{
		{"throughput", "samples/s", "scalebench_throughput_samples_per_second", "samples_per_second"},
		{"train_seconds", "s", "scalebench_train_seconds", "seconds"},
		{"step_p50", "s", "scalebench_step_p50_seconds", "seconds"},
		{"peak_memory", "B", "scalebench_peak_memory_bytes", "bytes"},
		{"busbw", "B/s", "scalebench_busbw_bytes_per_second", "bytes_per_second"},
		{"to_0.75", "s", "scalebench_to_0_75_seconds", "seconds"},
		{"skew", "", "scalebench_skew", ""},
		{"own", "tokens/s/<GPU>", "scalebench_own_tokens_per_second_per__GPU_", "tokens_per_second_per__GPU_"},
	} {
		if name, word := metricName(test.measure, test.unit); name != test.name || word != test.word {
			t.Errorf("%s in %q: %s, %s; want %s, %s", test.measure, test.unit, name, word, test.name, test.word)
		}
	}
}

// Samples that come in any order, and are packed at any time, make one piece per family: its header
// once, then its samples in the order in which they came.
func TestFamilies(t *testing.T) {
	packer, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	all := families{}
	want := "# HELP a_seconds time\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n"
	for i := range 25 {
		all.add("a_seconds", "seconds", "time", float64(i)+0.5, pairs("run", strconv.Itoa(i)))
		want += fmt.Sprintf("a_seconds{run=\"%d\"} %d.5\n", i, i)
		if i%5 == 0 {
			all.add("b", "", "count", 1, nil)
		}
		if i%10 == 3 {
			if err := all.pack(packer, 10); err != nil {
				t.Fatal(err)
			}
		}
	}
	want += "# HELP b count\n# TYPE b gauge\n" + strings.Repeat("b 1.0\n", 5)
	var got strings.Builder
	if err := all.write(&got, packer); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Names stay apart, stay within their folder, and stay short enough for a file system.
func TestNames(t *testing.T) {
	names := []string{"a", "a/b", "a_b", "a\x00b", "a\nb", "", ".", "..", "...", "../../x", "ü", strings.Repeat("x", 300), strings.Repeat("x", 301)}
	var made []string
	for _, name := range names {
		safe := mlflowName(name)
		if len(safe) > 255 || safe == "" || strings.ContainsAny(safe, "/\x00\n") || strings.Trim(safe, ".") == "" || slices.Contains(made, safe) {
			t.Errorf("%q: %q", name, safe)
		}
		made = append(made, safe)
	}
	if got := mlflowName("to_0.75"); got != "to_0.75" {
		t.Errorf("a name that needs no change: %q", got)
	}
}

// Which runs fail a build.
func TestJUnitCase(t *testing.T) {
	for _, test := range []struct {
		status  metrics.Status
		attempt int
		done    int // last attempt that is done
		want    string
	}{
		{metrics.Done, 1, 1, ""},
		{metrics.Failed, 1, 0, "failure"},
		{metrics.Failed, 1, 2, "skipped"},
		{metrics.Failed, 2, 1, "failure"},
		{metrics.TimedOut, 1, 0, "failure"},
		{metrics.OutOfMemory, 1, 0, "failure"},
		{metrics.Incomplete, 1, 0, "failure"},
		{metrics.NodeFailed, 1, 0, "error"},
		{metrics.Lost, 1, 0, "error"},
		{metrics.Cancelled, 1, 0, "skipped"},
		{metrics.Running, 1, 0, "skipped"},
	} {
		r := &store.RunFacts{RunRow: store.RunRow{Run: "s/p-r1-a1", Status: test.status, Attempt: test.attempt, Detail: "first line\nsecond"}}
		c := caseOf(r, test.done)
		got := map[bool]string{true: "failure"}[c.Failure != nil] + map[bool]string{true: "error"}[c.Error != nil] + map[bool]string{true: "skipped"}[c.Skipped != nil]
		if got != test.want {
			t.Errorf("%s, attempt %d of which %d is done: %q, want %q", test.status, test.attempt, test.done, got, test.want)
		}
		if c.Failure != nil && (c.Failure.Message != string(test.status)+": first line" || c.Failure.Text != r.Detail) {
			t.Errorf("%+v", c.Failure)
		}
	}
}

// The test vector is one of RFC 3720, B.4: the CRC-32C of 32 zeros is 8a9136aa. By hand, masked: rotated right by 15
// bits it is 6d551522, and with a282ead8 added 0fd7fffa.
func TestRecord(t *testing.T) {
	var out bytes.Buffer
	b := board{w: &out}
	b.record(make([]byte, 32))
	if b.err != nil || out.Len() != 8+4+32+4 {
		t.Fatal(b.err, out.Len())
	}
	if got := hex.EncodeToString(out.Bytes()[8+4+32:]); got != "faffd70f" { // little-endian
		t.Errorf("checksum %s", got)
	}
	if got := hex.EncodeToString(out.Bytes()[:8]); got != "2000000000000000" {
		t.Errorf("length %s", got)
	}
}

// Steps follow each other from the start of the training. After an evaluation the next one begins when that ended.
// The second rank's clock began half a second later.
func TestTraceClock(t *testing.T) {
	timeline := func(rank int, unix float64, events ...metrics.Event) store.Timeline {
		return store.Timeline{Start: metrics.Start{Rank: rank, Ranks: 1, Unix: unix}, Events: events}
	}
	train := metrics.Event{Time: 2, Train: &metrics.Train{}}
	list := []store.Timeline{
		timeline(0, 1000, train, metrics.Event{Time: 2.5, Epoch: &metrics.Epoch{Epoch: 1, Step: 2}}, metrics.Event{Time: 4, Evaluation: &metrics.Evaluation{Epoch: 1, Step: 2, Seconds: 1.5}}),
		timeline(1, 1000.5, train),
	}
	var out bytes.Buffer
	tracer := tracer{w: &out}
	if origin := tracer.align(list); origin != 1000 {
		t.Errorf("origin %v", origin)
	}
	var got []float64
	for _, step := range []store.RankStep{
		{Rank: 0, Step: 0, Duration: 0.25}, {Rank: 0, Step: 1, Duration: 0.25}, {Rank: 0, Step: 2, Duration: 0.25}, {Rank: 0, Step: 3, Duration: 0.25},
		{Rank: 1, Step: 0, Duration: 0.25}, {Rank: 1, Step: 1, Duration: 0.5},
	} {
		if err := tracer.step(step); err != nil {
			t.Fatal(err)
		}
		c := tracer.ranks[[2]int{0, step.Rank}]
		got = append(got, c.Unix-tracer.origin+c.next-step.Duration)
	}
	if d := cmp.Diff([]float64{2, 2.25, 4, 4.25, 2.5, 2.75}, got); d != "" {
		t.Error(d)
	}
}
