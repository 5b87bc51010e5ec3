package extract

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"

	"github.com/scalebench/scalebench/metrics"
)

// mlperf reads the :::MLLOG lines of MLPerf Training. Its clock runs from
// run_start to run_stop, evaluations included: the training clock as ours. What
// it calls eval_accuracy is, in some benchmarks, a loss or a distance.
var mlperf = Extractor{
	Name:  "mlperf",
	Kind:  "train",
	Reads: ":::MLLOG lines with run_start, eval_accuracy, tracked_stats, run_stop",
	read:  readMLPerf,
}

// mlperfAccuracy says what eval_accuracy is in the benchmarks where it is a
// share of 1 that rises; in all others it is kept as a figure.
var mlperfAccuracy = map[string]string{
	"resnet": "top-1 accuracy", "bert": "masked-word accuracy", "rgat": "classification accuracy", "gnn": "classification accuracy",
	"ssd": "mean average precision", "retinanet": "mean average precision", "maskrcnn": "mean average precision",
	"dlrm": "area under the ROC curve", "dlrm_dcnv2": "area under the ROC curve", "dlrm_dcn": "area under the ROC curve",
	"unet3d": "mean Dice score", "minigo": "share of games won", "ncf": "hit rate at 10",
}

type mllogLine struct {
	TimeMS   *int64          `json:"time_ms"`
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Metadata struct {
		Status string   `json:"status"`
		Epoch  *float64 `json:"epoch_num"`
	} `json:"metadata"`
}

var mllog = regexp.MustCompile(`:::MLLOG (\{.*\})\s*$`)

// mllogRun is what has been read of a log.
type mllogRun struct {
	l           *log
	benchmark   string
	began       int64 // ms: the first line's
	last        int64
	start, stop Value // run_start, run_stop, in ms since began; Line 0: not yet
	train       metrics.Train
	evaluations []Value
	epochs      []float64
	at          []int64 // ms since began, of the evaluations
	rates       []Value
}

func readMLPerf(l *log, r io.Reader) error {
	run := mllogRun{l: l, began: -1}
	var from first
	err := l.each(r, func(ln line) error {
		m := mllog.FindStringSubmatch(ln.text)
		if m == nil || !from.takes(ln) {
			return nil
		}
		var e mllogLine
		if err := json.Unmarshal([]byte(m[1]), &e); err != nil {
			return l.errorAt(ln.number, "a :::MLLOG line that is not JSON: %w", err)
		}
		if e.TimeMS == nil || *e.TimeMS <= 0 || *e.TimeMS > 1e14 {
			return l.errorAt(ln.number, "a :::MLLOG line without a time_ms since 1970")
		}
		if run.began < 0 {
			run.began = *e.TimeMS
		}
		return run.line(ln.number, e)
	})
	if err != nil {
		return err
	}
	from.note(l)
	return run.finish()
}

func (m *mllogRun) line(n int, e mllogLine) error {
	at := *e.TimeMS - m.began
	integer := func(into *int64) error {
		if err := json.Unmarshal(e.Value, into); err != nil || *into < 1 {
			return m.l.errorAt(n, "%s is %s; want a whole number from 1 on", e.Key, clip(string(e.Value)))
		}
		return nil
	}
	switch e.Key {
	case "submission_benchmark":
		if err := json.Unmarshal(e.Value, &m.benchmark); err != nil {
			return m.l.errorAt(n, "submission_benchmark is no text: %w", err)
		}
	case "global_batch_size":
		var batch int64
		if err := integer(&batch); err != nil {
			return err
		}
		m.train.GlobalBatch = int(min(batch, math.MaxInt32))
	case "train_samples":
		return integer(&m.train.TrainSamples)
	case "eval_samples":
		return integer(&m.train.TestSamples)
	case "run_start":
		if m.start.Line > 0 {
			return m.l.errorAt(n, "a second run_start; the first stands in line %d. One log is one run: split it", m.start.Line)
		}
		if at < 0 {
			return m.l.errorAt(n, "run_start is %d ms before the first line", -at)
		}
		m.start, m.last = Value{float64(at), n}, at
	case "run_stop":
		if m.stop.Line > 0 {
			return m.l.errorAt(n, "a second run_stop; the first stands in line %d", m.stop.Line)
		}
		m.stop = Value{float64(at), n}
		if e.Metadata.Status != "success" {
			m.l.res.Failed = fmt.Sprintf("MLPerf's run_stop says %q", e.Metadata.Status)
		}
		return m.forward(n, e.Key, at)
	case "eval_accuracy":
		v, err := m.l.parse(n, string(e.Value))
		if err != nil {
			return err
		}
		epoch := 0.0
		if x := e.Metadata.Epoch; x != nil && *x > 0 {
			epoch = *x
		}
		m.evaluations, m.epochs, m.at = append(m.evaluations, v), append(m.epochs, epoch), append(m.at, at)
		return m.forward(n, e.Key, at)
	case "tracked_stats":
		var stats struct {
			Throughput *json.Number `json:"throughput"`
		}
		if json.Unmarshal(e.Value, &stats) != nil || stats.Throughput == nil {
			return nil
		}
		v, err := m.l.parse(n, stats.Throughput.String())
		m.rates = append(m.rates, v)
		return err
	}
	return nil
}

// forward refuses a time before the one that came last: one of the two is
// wrong, and which cannot be known.
func (m *mllogRun) forward(n int, key string, at int64) error {
	switch {
	case m.start.Line == 0:
		return m.l.errorAt(n, "%s before run_start", key)
	case at < m.last:
		return m.l.errorAt(n, "%s is %d ms before the line that it follows", key, m.last-at)
	}
	m.last = at
	return nil
}

func (m *mllogRun) finish() error {
	l := m.l
	if m.start.Line == 0 {
		return nil
	}
	l.res.StartUnix = float64(m.began) / 1000
	l.add(metrics.Event{Time: m.start.Number / 1000, Train: &m.train}, 1e-3, m.start)
	if m.benchmark != "" {
		l.label("workload.model", m.benchmark)
	}
	if m.train.GlobalBatch > 0 {
		l.label("global_batch", int64(m.train.GlobalBatch))
	}
	is, share := mlperfAccuracy[m.benchmark]
	switch {
	case m.benchmark == "":
		is, share = "accuracy", true
		l.note("the log does not name its benchmark; eval_accuracy is taken for an accuracy")
	case !share:
		l.note("in MLPerf's %s, eval_accuracy is no accuracy (a loss, for most models); it is kept as the figure eval_accuracy", m.benchmark)
	}
	for i, v := range m.evaluations {
		seconds := float64(m.at[i]) / 1000
		if !share {
			f := &metrics.Figure{Name: "eval_accuracy", Value: v.Number}
			if m.epochs[i] > 0 {
				f.At = map[string]any{"epoch": m.epochs[i]}
			}
			l.add(metrics.Event{Time: seconds, Figure: f}, 1, v)
			continue
		}
		e := metrics.Event{Time: seconds, Evaluation: &metrics.Evaluation{Samples: m.train.TestSamples}}
		if x := m.epochs[i]; x < 1e4 { // some count samples there
			e.Evaluation.Epoch = int(math.Ceil(x))
		}
		if err := l.accuracy(e, 1, v); err != nil {
			return err
		}
	}
	if share && is != "accuracy" {
		l.note("accuracy is what MLPerf's %s takes for it: %s", m.benchmark, is)
	}
	if len(m.rates) > 0 {
		if i := slices.IndexFunc(m.rates, func(v Value) bool { return v.Number <= 0 }); i >= 0 {
			return l.errorAt(m.rates[i].Line, "a throughput of %g samples/s", m.rates[i].Number)
		}
		if err := l.reduced("throughput", "samples/s", "median", 1, m.rates,
			"as the program states it in tracked_stats, between evaluations; how it measures is not said"); err != nil {
			return err
		}
	}
	if m.stop.Line == 0 {
		l.note("the log has no run_stop: the run did not end, or the log was cut off")
		return nil
	}
	seconds := (m.stop.Number - m.start.Number) / 1000
	l.add(metrics.Event{Time: m.stop.Number / 1000, Figure: &metrics.Figure{Name: "train_seconds", Value: seconds, Unit: "s",
		Note: "from run_start to run_stop, evaluations included: what MLPerf takes for the time to train"}}, 1e-3, m.start, m.stop)
	return nil
}
