package extract

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// mlperf reads the :::MLLOG lines of MLPerf Training. MLPerf's clock runs from run_start to
// run_stop and includes evaluations, like our training clock. If run_stop has the status success,
// the run reached the benchmark's target, and the time until then is MLPerf's result. In some
// benchmarks, eval_accuracy is a loss or a distance.
//
// Lines are not always in time order. stable_diffusion evaluates its checkpoints after training,
// outside the measured time, and then writes run_stop with an earlier time.
var mlperf = Extractor{
	Name:  "mlperf",
	Kind:  "train",
	Reads: ":::MLLOG lines with run_start, eval_accuracy, tracked_stats, blocks and epochs, run_stop",
	read:  readMLPerf,
}

// mlperfAccuracy maps the benchmarks in which eval_accuracy is a fraction that should rise to the
// name of that metric. In other benchmarks, eval_accuracy is stored as a figure and not as an
// accuracy.
var mlperfAccuracy = map[string]string{
	"resnet": "top-1 accuracy", "bert": "masked-word accuracy", "rgat": "classification accuracy", "gnn": "classification accuracy",
	"ssd": "mean average precision", "retinanet": "mean average precision", "maskrcnn": "mean average precision",
	"dlrm": "area under the ROC curve", "dlrm_dcnv2": "area under the ROC curve", "dlrm_dcn": "area under the ROC curve",
	"unet3d": "mean Dice score", "deepcam": "mean intersection over union", "minigo": "share of games won", "ncf": "hit rate at 10",
}

type mllogLine struct {
	TimeMS   *int64          `json:"time_ms"`
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Metadata struct {
		Status  string   `json:"status"`
		Metric  string   `json:"metric"` // name of the metric if eval_accuracy is one of several
		Epoch   *float64 `json:"epoch_num"`
		Samples *float64 `json:"samples_count"`
		Step    *float64 `json:"step_num"`
	} `json:"metadata"`
}

var mllog = regexp.MustCompile(`:::MLLOG (\{.*\})\s*$`)

// mllogRun is the parser's state for the lines of one process. Times are in ms since the first
// line of the log.
type mllogRun struct {
	l             *log
	source        string // the process's prefix, which the launcher adds
	benchmark     string
	began         int64 // time of the first line, ms since 1970; -1: none yet
	start, stop   Value // times of run_start and run_stop; Line 0: not seen yet
	status        string
	train         metrics.Train
	batch, length int64 // samples per step and tokens per sample; 0: unknown
	evaluations   []mllogEvaluation
	marks         []mllogMark
	rates         []Value // throughput of tracked_stats
	stepSeconds   []Value // train_step_time of tracked_stats
	wrong         error   // first error in a line of a process that does not train
	errors        []mllogEvaluation
	ranks         Value    // number_of_ranks; Line 0: not stated
	accelerators  [2]Value // number_of_nodes, accelerators_per_node
}

type mllogEvaluation struct {
	v      Value
	at     int64
	metric string
	epoch  float64
	mark   int // index of the mark with its progress
}

// mllogProcesses holds the processes that write a log. Any process may write init_start, with or
// without a launcher's prefix. The process that writes run_start usually writes everything else
// too. If other ranks evaluate during the training, one of them writes the evaluations and
// run_stop.
type mllogProcesses struct {
	l          *log
	began      int64 // time of the first line, ms since 1970; -1: none yet
	of         map[string]*mllogRun
	run, judge *mllogRun // the process that writes run_start, and the first other process that writes run_stop
}

func readMLPerf(l *log, r io.Reader) {
	p := &mllogProcesses{l: l, began: -1, of: map[string]*mllogRun{}}
	if l.each(r, p.line); p.run == nil {
		return
	}
	if p.judge != nil && p.run.stop.Line == 0 {
		failIf(p.judge.wrong)
		p.run.take(p.judge)
	}
	p.run.finish()
}

func (p *mllogProcesses) line(ln line) {
	m := mllog.FindStringSubmatch(ln.text)
	if m == nil {
		return
	}
	var e mllogLine
	if err := json.Unmarshal([]byte(m[1]), &e); err != nil {
		p.l.fail(ln.number, "a :::MLLOG line that %s", unread(err))
	}
	if e.TimeMS == nil || *e.TimeMS <= 0 || *e.TimeMS > 1e14 {
		p.l.fail(ln.number, "a :::MLLOG line without a time_ms in milliseconds since 1970")
	}
	if *e.TimeMS >= 1e8 && *e.TimeMS < 1e11 { // 2001 to 2286 in seconds
		p.l.fail(ln.number, "time_ms is %d, a day of 1970 in milliseconds: it seems to be in seconds. MLPerf logs milliseconds", *e.TimeMS)
	}
	if p.began < 0 {
		p.began = *e.TimeMS
	}
	own := p.of[ln.source]
	if p.run != nil && own != p.run {
		p.other(ln, e)
		return
	}
	if own == nil {
		own = p.process(ln.source)
	}
	if e.Key == "run_start" {
		p.run = own
	}
	own.line(ln.number, e)
}

// process returns the state of the process with this prefix, and creates it if necessary.
func (p *mllogProcesses) process(source string) *mllogRun {
	if p.of[source] == nil {
		p.of[source] = &mllogRun{l: p.l, began: p.began, source: source}
	}
	return p.of[source]
}

// other handles a line of a process other than the one that writes run_start.
func (p *mllogProcesses) other(ln line, e mllogLine) {
	switch e.Key {
	case "run_start":
		p.l.note("several ranks write the same lines; only rank %s is read", p.run.source)
		return
	case "eval_start", "eval_accuracy", "eval_stop", "run_stop":
	default:
		return
	}
	own := p.process(ln.source)
	own.start = p.run.start
	if p.judge == nil && e.Key == "run_stop" {
		p.judge = own
	}
	if err := try(func() { own.line(ln.number, e) }); err != nil && own.wrong == nil {
		own.wrong = err
	}
}

// take copies the end of the run from the process that evaluates. It also copies the evaluations
// if this process does not log it.
func (m *mllogRun) take(judge *mllogRun) {
	m.stop, m.status = judge.stop, judge.status
	m.l.note("run_stop is rank %s's, which evaluates while other ranks train: the training time lasts until its evaluation ends", judge.source)
	if len(m.evaluations) > 0 {
		return
	}
	for _, one := range judge.evaluations {
		one.mark += len(m.marks)
		m.evaluations = append(m.evaluations, one)
	}
	m.marks = append(m.marks, judge.marks...)
}

// unread says why a line is not valid JSON. Unlike the errors of package json, it does not quote
// long values.
func unread(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		is, value, _ := strings.Cut(wrong.Value, " ")
		want := map[reflect.Kind]string{reflect.Int64: "a whole number", reflect.Float64: "a number", reflect.String: "text"}[wrong.Type.Kind()]
		if want == "" {
			want = "an object"
		}
		switch {
		case value != "": // a number of another type, or a number that is too large
			is = clip(value)
		case strings.HasPrefix(is, "a") || strings.HasPrefix(is, "o"):
			is = "an " + is
		default:
			is = "a " + is
		}
		return fmt.Sprintf("has %s as %s; want %s", is, cmp.Or(wrong.Field, "the whole"), want)
	}
	return "is not JSON: " + err.Error()
}

// line handles a line of the process that trains, or of one that evaluates.
func (m *mllogRun) line(n int, e mllogLine) {
	at := *e.TimeMS - m.began
	var count int64
	if into := m.counter(e.Key, &count); into != nil {
		if err := json.Unmarshal(e.Value, into); err != nil || *into < 1 {
			m.l.fail(n, "%s is %s; want a whole number, 1 or more", e.Key, clip(string(e.Value)))
		}
	}
	switch e.Key {
	case "submission_benchmark":
		if err := json.Unmarshal(e.Value, &m.benchmark); err != nil {
			m.l.fail(n, "submission_benchmark is not text: %w", err)
		}
	case "global_batch_size":
		m.train.GlobalBatch = int(min(m.batch, math.MaxInt32))
	case "number_of_ranks":
		m.ranks = Value{float64(count), n}
	case "number_of_nodes":
		m.accelerators[0] = Value{float64(count), n}
	case "accelerators_per_node":
		m.accelerators[1] = Value{float64(count), n}
	case "run_start":
		m.begin(n, at)
	case "run_stop":
		m.end(n, at, e.Metadata.Status)
	case "eval_accuracy", "eval_error":
		m.evaluation(n, at, e)
	case "block_start", "block_stop", "epoch_start", "epoch_stop", "eval_start", "eval_stop":
		if m.start.Line > 0 {
			m.marks = append(m.marks, m.mark(n, at, e))
		}
	case "tracked_stats":
		m.stats(n, e.Value)
	}
}

// counter returns where to store the count that a key states, nil if the key is not a count.
func (m *mllogRun) counter(key string, other *int64) *int64 {
	switch key {
	case "global_batch_size":
		return &m.batch
	case "max_sequence_length":
		return &m.length
	case "train_samples":
		return &m.train.TrainSamples
	case "eval_samples":
		return &m.train.TestSamples
	case "number_of_ranks", "number_of_nodes", "accelerators_per_node":
		return other
	}
	return nil
}

func (m *mllogRun) begin(n int, at int64) {
	m.l.once(n, "run_start", m.start)
	if at < 0 {
		m.l.fail(n, "run_start is %d ms before the first line", -at)
	}
	m.start = Value{float64(at), n}
}

func (m *mllogRun) end(n int, at int64, status string) {
	m.l.once(n, "run_stop", m.stop)
	switch {
	case m.start.Line == 0:
		m.l.fail(n, "run_stop before run_start")
	case at < int64(m.start.Number):
		m.l.fail(n, "run_stop is %d ms before run_start in line %d", int64(m.start.Number)-at, m.start.Line)
	}
	m.stop, m.status = Value{float64(at), n}, status
}

func (m *mllogRun) evaluation(n int, at int64, e mllogLine) {
	v := m.l.parse(n, string(e.Value))
	one := mllogEvaluation{v: v, at: at, metric: e.Metadata.Metric, mark: len(m.marks)}
	if x := e.Metadata.Epoch; x != nil && *x > 0 {
		one.epoch = *x
	}
	if e.Key == "eval_error" {
		m.errors = append(m.errors, one)
		return
	}
	if m.start.Line == 0 {
		m.l.fail(n, "eval_accuracy before run_start")
	}
	m.evaluations, m.marks = append(m.evaluations, one), append(m.marks, m.mark(n, at, e))
}

func (m *mllogRun) stats(n int, text json.RawMessage) {
	var stats struct {
		Throughput *json.Number `json:"throughput"`
		StepTime   *json.Number `json:"train_step_time"`
	}
	if json.Unmarshal(text, &stats) != nil {
		return
	}
	for _, of := range []struct {
		number *json.Number
		name   string
		into   *[]Value
	}{{stats.Throughput, "throughput", &m.rates}, {stats.StepTime, "train_step_time", &m.stepSeconds}} {
		if of.number == nil {
			continue
		}
		v := m.l.parse(n, of.number.String())
		if v.Number <= 0 {
			m.l.fail(n, "a %s of %g; want more than 0", of.name, v.Number)
		}
		*of.into = append(*of.into, v)
	}
}

func (m *mllogRun) finish() {
	l := m.l
	l.res.StartUnix = float64(m.began) / 1000
	train := m.train
	if !m.setKnown() { // train_samples of bert and gpt3 counts the samples trained on, that of ssd counts batches
		train.TrainSamples = 0
	}
	l.add(metrics.Event{Time: m.start.Number / 1000, Train: &train}, 1e-3, m.start)
	if m.benchmark != "" {
		l.label("workload.model", m.benchmark)
	}
	if m.train.GlobalBatch > 0 {
		l.label("global_batch", int64(m.train.GlobalBatch))
	}
	m.workers()
	m.evaluate()
	for _, one := range m.errors {
		f := &metrics.Figure{Name: "eval_error", Value: one.v.Number, Note: "of the evaluation, as the program states it; less is better", At: map[string]any{}}
		if one.epoch > 0 {
			f.At["epoch"] = one.epoch
		}
		l.add(metrics.Event{Time: max(0, float64(one.at)/1000), Figure: f}, 1, one.v)
	}
	own := m.ownRate()
	m.throughput(own)
	if m.stop.Line == 0 {
		l.note("the log has no run_stop: the run did not end, or the log was cut off")
		return
	}
	seconds := (m.stop.Number - m.start.Number) / 1000
	figure := func(name, note string) {
		l.add(metrics.Event{Time: m.stop.Number / 1000, Figure: &metrics.Figure{Name: name, Value: seconds, Unit: "s", Note: note}}, 1e-3, m.start, m.stop)
	}
	figure(metrics.FigureTrainSeconds, "from run_start to run_stop, evaluations included")
	if x, ok := m.endToEnd(own); ok {
		l.add(metrics.Event{Time: m.stop.Number / 1000, Figure: &metrics.Figure{Name: metrics.FigureEndToEnd, Value: x, Unit: "samples/s",
			Note: "the log's count of samples at its last evaluation over the time from run_start to run_stop"}}, 1)
	}
	switch m.status {
	case "success":
		figure(metrics.FigureToTarget, "MLPerf's time to train: from run_start to a run_stop that says success")
	case "aborted":
		figure(metrics.FigureMissedTarget, "MLPerf's run_stop says aborted: the run ended without reaching its target")
		l.note("MLPerf's run_stop says aborted: the run missed its target, and counts as a miss")
	default:
		l.res.Failed = fmt.Sprintf("MLPerf's run_stop says %q", m.status)
	}
}

// workers sets the number of workers. The logs of MLPerf HPC state the number of ranks, of
// accelerators, or both.
func (m *mllogRun) workers() {
	nodes, each := m.accelerators[0], m.accelerators[1]
	devices := nodes.Number * each.Number
	switch {
	case devices > metrics.MaxRanks || m.ranks.Number > metrics.MaxRanks:
		m.l.note("the log states %.4g workers, more than %d; the number is not used", max(devices, m.ranks.Number), metrics.MaxRanks)
	case devices > 0 && m.ranks.Line > 0 && devices != m.ranks.Number:
		m.l.note("the log has %g ranks and %g accelerators, so the number of workers is not known", m.ranks.Number, devices)
	case m.ranks.Line > 0:
		m.l.workersAre(int(m.ranks.Number), "number_of_ranks", m.ranks.Line)
	case devices > 0:
		m.l.workersAre(int(devices), "number_of_nodes × accelerators_per_node", each.Line)
	}
}

// uncounted adds an evaluation as a figure. It is for evaluations outside the measured time, and
// for values that are not an accuracy.
func (m *mllogRun) uncounted(one mllogEvaluation) {
	f := &metrics.Figure{Name: "eval_accuracy", Value: one.v.Number, At: map[string]any{}}
	if one.epoch > 0 {
		f.At["epoch"] = one.epoch
	} else if samples, ok := m.samples(m.marks[one.mark]); ok && samples > 0 {
		f.At["samples"] = samples
	}
	if one.metric != "" {
		f.At["metric"] = one.metric
	}
	m.l.add(metrics.Event{Time: max(0, float64(one.at)/1000), Figure: f}, 1, one.v)
}

// evaluate adds the evaluations. Evaluations of checkpoints after the end of the measured time,
// and values that are not fractions, become figures.
func (m *mllogRun) evaluate() {
	l := m.l
	is, share := mlperfAccuracy[m.benchmark]
	switch {
	case len(m.evaluations) == 0:
		return
	case m.benchmark == "":
		is, share = "accuracy", true
		l.note("the log does not name its benchmark; eval_accuracy is taken as an accuracy")
	case !share:
		l.note("in MLPerf's %s, eval_accuracy is not an accuracy (a loss, for most models); it is kept as the figure eval_accuracy", m.benchmark)
	}
	late, last := false, m.start
	_, _, counted := m.trained()
	for _, one := range m.evaluations {
		seconds := float64(one.at) / 1000
		after := m.stop.Line > 0 && float64(one.at) > m.stop.Number
		if after || !share {
			late = late || after
			m.uncounted(one)
			continue
		}
		// One of the two times is wrong, and the log does not tell which.
		if float64(one.at) < last.Number {
			l.fail(one.v.Line, "eval_accuracy is %d ms earlier than line %d, which it follows", int64(last.Number)-one.at, last.Line)
		}
		last = Value{float64(one.at), one.v.Line}
		e := metrics.Event{Time: seconds, Evaluation: &metrics.Evaluation{Samples: m.train.TestSamples}}
		if one.epoch < largestEpoch {
			e.Evaluation.Epoch = int(math.Ceil(one.epoch))
		}
		if counted {
			samples, _ := m.samples(m.marks[one.mark])
			e.Evaluation.Trained = int64(math.Round(samples))
		}
		l.accuracy(e, 1, one.v, nil)
	}
	if late {
		l.note("evaluations after run_stop (of checkpoints) have no training time; they are kept as figures")
	}
	if share && !strings.HasSuffix(is, "accuracy") {
		l.note("in MLPerf's %s, the accuracy is %s", m.benchmark, is)
	}
}
