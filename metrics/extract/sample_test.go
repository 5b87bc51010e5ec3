package extract

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// sample is output of a real program; testdata/SOURCE.md says of which.
type sample struct {
	file, format string
	options      Options
	want         []string // findings, written by hand from the file
	notes        []string // parts of notes, on the whole or on a figure
	workers      int
}

var samples = []sample{
	{file: "horovod-synthetic.log", format: "horovod-synthetic", workers: 2,
		want:  []string{"15 throughput 2951.6 samples/s ±7.9", "14 throughput_per_worker 1475.8 samples/s ±3.9"},
		notes: []string{"rank 0's rate times 2, not a measured aggregate"}},
	{file: "horovod-synthetic-pytorch.log", format: "horovod-synthetic", workers: 4,
		want: []string{"17 throughput 432.8 samples/s ±4.9", "16 throughput_per_worker 108.2 samples/s ±1.2"}},
	{file: "tf-cnn-benchmarks.log", format: "tf-cnn-benchmarks",
		want:  []string{"14 throughput 204.75 samples/s"},
		notes: []string{"one worker's images"}},
	{file: "mlperf-dlrm.log", format: "mlperf",
		want: []string{"23 train at 126.903", "accuracy 0.795728325843811 at 160.287 epoch 1", "accuracy 0.8025602102279663 at 290.604 epoch 1",
			"45 throughput 1.6888181759373963e+07 samples/s", "train_seconds "},
		notes: []string{"area under the ROC curve", "tracked_stats"}},
	{file: "mlperf-rgat.log", format: "mlperf",
		want:  []string{"76 throughput ", "79 train_seconds ", "accuracy 0.6792228817939758 at "},
		notes: []string{"classification accuracy"}},
	{file: "mlperf-llama2.log", format: "mlperf",
		want:  []string{"eval_accuracy 0.9391088485717773", "eval_accuracy 0.9321259260177612"},
		notes: []string{"is not an accuracy"}},
	{file: "timm.log", format: "timm",
		want:  []string{"20 accuracy 1 at 0 epoch 1", "throughput 8.81 samples/s median of 2"},
		notes: []string{"without the first", "of all ranks together"}},
	{file: "lightning-csv.csv", format: "lightning-csv", options: Options{Workers: 1},
		want:  []string{"14 accuracy 0.5361328125 at 0 epoch 1 step 64", "throughput "},
		notes: []string{"rank 0's rate times 1"}},
	{file: "keras-csvlogger.csv", format: "keras-csvlogger",
		want: []string{"2 accuracy 0.546875 at 0 epoch 1", "7 accuracy 0.546875 at 0 epoch 6", "7 val_loss 0.6900054812431335"}},
	{file: "tensorboard/validation/keras.v2", format: "tensorboard",
		want:  []string{"accuracy 0.546875 at ", "accuracy 0.515625 at ", "epoch 6", "epoch_loss 0.690005"},
		notes: []string{"by the writer's wall clock"}},
	{file: "tensorboard/hf-trainer", format: "tensorboard",
		want: []string{"accuracy 0.765625 at ", "step 48", "train/train_samples_per_second 217.666"}},
	{file: "hf-trainer-state.json", format: "hf-trainer-state",
		want:  []string{"accuracy 0.703125 at 0 epoch 1 step 16", "accuracy 0.765625 at 0 epoch 3 step 48", "throughput 217.666 samples/s", "train_seconds 3.5283 s"},
		notes: []string{"evaluations and checkpoints included"}},
	{file: "nccl-tests.log", format: "nccl-tests", workers: 1, // the log begins with the last rank's line
		want: []string{"6 busbw 586060000000 B/s bytes 536870912 in_place 0", "10 busbw 846820000000 B/s bytes 8589934592 in_place 1",
			"10 time 0.020006 s bytes 8589934592 in_place 1", "12 avg_busbw 745530000000 B/s"}},
}

func (s sample) path() string { return filepath.Join("testdata", filepath.FromSlash(s.file)) }

func (s sample) extract(data []byte) (Content, error) {
	e, err := Find(s.format)
	if err != nil {
		return Content{}, err
	}
	o := s.options
	o.File = s.path()
	return e.Extract(bytes.NewReader(data), o)
}

// written is a finding in a line.
func written(f Finding) string {
	line := fmt.Sprintf("%d ", f.Line)
	switch e := f.Event; {
	case e.Train != nil:
		return line + fmt.Sprintf("train at %.10g", e.Time)
	case e.Evaluation != nil:
		line += fmt.Sprintf("accuracy %v at %.10g epoch %d", e.Evaluation.Accuracy, e.Time, e.Evaluation.Epoch)
		if e.Evaluation.Step > 0 {
			line += fmt.Sprintf(" step %d", e.Evaluation.Step)
		}
	case e.Figure != nil:
		g := e.Figure
		line += fmt.Sprintf("%s %v %s", g.Name, g.Value, g.Unit)
		if g.Value == math.Trunc(g.Value) || g.Value*1e6 == math.Trunc(g.Value*1e6) {
			line = fmt.Sprintf("%d %s %.15g %s", f.Line, g.Name, g.Value, g.Unit)
		}
		if g.PlusMinus != nil {
			line += fmt.Sprintf(" ±%g", *g.PlusMinus)
		}
		if g.Reduce != "" {
			line += fmt.Sprintf(" %s of %d", g.Reduce, g.Of)
		}
		for _, key := range []string{"bytes", "in_place", "epoch", "step"} {
			if v, ok := g.At[key]; ok {
				line += fmt.Sprintf(" %s %.15g", key, v)
			}
		}
	}
	return line
}

func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples {
		seen[s.format] = true
		t.Run(s.file, func(t *testing.T) {
			data, err := os.ReadFile(s.path())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.extract(data)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			said := strings.Join(r.Notes, "\n")
			for f := range r.Findings() {
				lines = append(lines, written(f))
				if f.Event.Figure != nil {
					said += "\n" + f.Event.Figure.Note
				}
			}
			all := strings.Join(lines, "\n")
			for _, w := range s.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not among\n%s", w, all)
				}
			}
			for _, n := range s.notes {
				if !strings.Contains(said, n) {
					t.Errorf("no note says %q:\n%s", n, said)
				}
			}
			if r.Workers != s.workers {
				t.Errorf("%d workers, want %d", r.Workers, s.workers)
			}
			checkEvents(t, r)
		})
	}
	for _, e := range All {
		if !seen[e.Name] && e.Name != ncclTestsJSON.Name { // testdata/SOURCE.md says why
			t.Errorf("no sample of %s", e.Name)
		}
	}
}

// checkEvents holds what every result keeps: events that the reader takes, in
// the order of time, and figures that are what their values make.
func checkEvents(t *testing.T, r Content) {
	t.Helper()
	for e := range r.Events() {
		if err := e.Validate(); err != nil {
			t.Errorf("%s event: %v", e.Kind(), err)
		}
	}
	for f := range r.Findings() {
		value, known := math.NaN(), true
		switch e := f.Event; {
		case e.Evaluation != nil:
			value = e.Evaluation.Accuracy
		case e.Figure != nil:
			value = e.Figure.Value
		default:
			known = false
		}
		if !known {
			continue
		}
		if !finite(value) || !finite(f.Event.Time) {
			t.Errorf("%s", written(f))
		}
		if e := f.Event.Figure; e != nil && len(f.Values) == 2 && slices.Contains([]string{metrics.FigureTrainSeconds, metrics.FigureToTarget, metrics.FigureMissedTarget}, e.Name) {
			if want := (f.Values[1].Number - f.Values[0].Number) * f.Scale; math.Abs(value-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s, made of %v", written(f), f.Values)
			}
			continue
		}
		if e := f.Event.Figure; e != nil && len(f.Values) == 0 && slices.Contains([]string{metrics.FigureThroughput, metrics.FigureEndToEnd}, e.Name) {
			continue // of counts and times all over the log
		}
		how := "last"
		if f.Event.Figure != nil && f.Event.Figure.Reduce != "" {
			how = f.Event.Figure.Reduce
		}
		var numbers []float64
		for _, v := range f.Values {
			numbers = append(numbers, v.Number)
		}
		if want, err := Reduce(how, numbers); err != nil || math.Abs(value-want*f.Scale) > 1e-9*math.Abs(value) {
			t.Errorf("%s, made of %v: %v", written(f), f.Values, err)
		}
	}
}
