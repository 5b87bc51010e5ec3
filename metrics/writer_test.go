package metrics

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ms(n int) *time.Duration {
	d := time.Duration(n) * time.Millisecond
	return &d
}

func mustWriter(t testing.TB, w io.Writer) *Writer {
	t.Helper()
	writer, err := NewWriter(w, Start{Writer: "rank", Framework: "native", Rank: 1, WorldSize: 4, LocalRank: 1, Host: "n1", PID: 77})
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

// readAll returns all events, and fails the test on a bad line.
func readAll(t testing.TB, content string) (events []Event) {
	t.Helper()
	r := NewReader(strings.NewReader(content), "f", 0, 0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// Every kind of event survives a round trip, in the order of the calls, with times that never
// decrease.
func TestWriterRoundTrip(t *testing.T) {
	loss := 1.25
	written := []Event{
		{Environment: &Environment{Hostname: "n1", CPUs: 4, GPUs: []GPU{{Name: "A100", MemoryBytes: 40 << 30}},
			Interface: &Interface{Name: "ib0", Address: "10.0.0.1", SpeedBitsPer: 1e11},
			Versions:  map[string]string{"go": "go1.26"}, Variables: map[string]string{"SLURM_JOB_ID": "7"}}},
		{Train: &Train{Parameters: 10, GradientBytes: 40, TrainSamples: 100, TestSamples: 20, GlobalBatch: 8, StepsPerEpoch: 12, ParameterSHA256: "ab"}},
		{Epoch: &Epoch{Epoch: 1, Step: 12, Samples: 24, Seconds: 1.5, Loss: &loss, LearningRate: 0.1}},
		{Gradients: &Gradients{Epoch: 1, Step: 12, Samples: 8, GlobalSamples: 32, Steps: []int{1, 1}, Own: []float64{2.5, 0}, Averaged: []float64{1.25, 0}}},
		{Evaluation: &Evaluation{Epoch: 1, Step: 12, Accuracy: 0, Samples: 20, Seconds: 0.25}},
		{Figure: &Figure{Name: FigureThroughput, Value: 432.8, Unit: "samples/s", At: map[string]any{"epoch": 2.0}, PlusMinus: &loss,
			PlusMinusIs: "1.96 σ", Reduce: "median", Of: 3, Note: "rank 0's rate times 4", File: "log", Line: 7}},
		{Note: &Note{Text: "rank 0's rate times 4"}},
		{Error: &Error{Where: "train", Message: "line 1\nline 2 \"quoted\" \u2028"}},
		{Stop: &Stop{Status: StopFailed, Cause: "x", Steps: 12, Epochs: 1}},
	}
	var file bytes.Buffer
	w := mustWriter(t, &file)
	before := time.Now()
	for _, e := range written {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	got := readAll(t, file.String())
	start := got[0].Start
	if start == nil || start.Format != FormatVersion || start.Rank != 1 || start.WorldSize != 4 || start.Writer != "rank" || start.PID != 77 ||
		math.Abs(start.Unix-float64(before.UnixNano())/1e9) > 5 {
		t.Fatalf("start %+v", start)
	}
	last := 0.0
	for i := range got {
		if got[i].Time < last || got[i].Time > 60 {
			t.Errorf("event %d is at %v, the one before at %v", i, got[i].Time, last)
		}
		last = got[i].Time
		got[i].Time = 0
	}
	if diff := cmp.Diff(written, got[1:]); diff != "" {
		t.Errorf("written (-) and read (+) differ:\n%s", diff)
	}
}

// Steps are written as columns, before any later event. A part that was not measured is absent, not
// zero. If the measured parts change, a new line starts.
func TestWriterSteps(t *testing.T) {
	var file bytes.Buffer
	w := mustWriter(t, &file)
	for i := range 250 {
		s := Step{Duration: time.Duration(i) * time.Millisecond, Samples: 32, Compute: ms(i), Communication: ms(0)}
		if i >= 240 {
			s.Communication, s.DataWait = nil, ms(1)
		}
		if err := w.Step(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(Event{Stop: &Stop{Status: StopDone, Steps: 250}}); err != nil {
		t.Fatal(err)
	}
	events := readAll(t, file.String())
	next := 0
	for _, e := range events[1 : len(events)-1] {
		s := e.Steps
		if s == nil {
			t.Fatalf("an event of kind %s among the steps", e.Kind())
		}
		if s.First != next {
			t.Errorf("steps from %d, want %d", s.First, next)
		}
		for k, d := range s.Duration {
			i := s.First + k
			seconds := float64(d) * s.Tick
			if math.Abs(seconds-float64(i)/1000) > 1e-9 || s.Samples[k] != 32 || s.Compute[k] != d {
				t.Fatalf("step %d: %v s, %d samples, compute %d of %d", i, seconds, s.Samples[k], s.Compute[k], d)
			}
			if measured := i < 240; (s.Communication != nil) != measured || (s.DataWait == nil) != measured {
				t.Fatalf("step %d: communication %v, data wait %v", i, s.Communication, s.DataWait)
			}
		}
		next += len(s.Duration)
	}
	if next != 250 || events[len(events)-1].Stop == nil {
		t.Errorf("%d steps were read, and %s last", next, events[len(events)-1].Kind())
	}
	if strings.Contains(file.String(), "null") {
		t.Error("an absent part was written as null")
	}
}

// lines is a writer that records each Write.
type lines struct {
	writes chan string
}

func (l lines) Write(b []byte) (int, error) {
	l.writes <- string(b)
	return len(b), nil
}

// Each event is one Write of a complete line, and steps are buffered no longer than the flush
// interval.
func TestWriterFlushesWholeLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := lines{make(chan string, 100)}
		w := mustWriter(t, file)
		<-file.writes
		if err := w.Step(Step{Duration: time.Millisecond, Samples: 1}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		line := <-file.writes
		if !strings.HasSuffix(line, "\n") || strings.Count(line, "\n") != 1 || !strings.Contains(line, `"steps"`) {
			t.Errorf("one Write is %q", line)
		}
		if waited := time.Since(began); waited != flushInterval {
			t.Errorf("the step waited %v, want %v", waited, flushInterval)
		}
		for range stepsPerLine {
			if err := w.Step(Step{Duration: time.Millisecond, Samples: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(file.writes); n != 1 {
			t.Errorf("%d writes of %d steps, want 1", n, stepsPerLine)
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWriterKeepsItsFirstError(t *testing.T) {
	if _, err := NewWriter(broken{}, Start{WorldSize: 1}); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("NewWriter: %v", err)
	}
	var file bytes.Buffer
	w := mustWriter(t, &file)
	w.w = broken{}
	for range 2 {
		if err := w.Write(Event{Stop: &Stop{Status: StopDone}}); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("Write: %v", err)
		}
	}
	if err := w.Step(Step{}); err == nil {
		t.Error("Step hides that writing has failed")
	}
}
