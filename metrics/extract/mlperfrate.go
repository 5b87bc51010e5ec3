package extract

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// mllogMark is a line of the log that states the progress of the training.
type mllogMark struct {
	key                  string
	at                   int64 // ms since the first line
	line                 int
	epoch, samples, step float64 // NaN: not stated
}

func (m *mllogRun) mark(n int, at int64, e mllogLine) mllogMark {
	number := func(x *float64) float64 {
		if x == nil || !(*x >= 0 && *x <= largestNumber) {
			return math.NaN()
		}
		return *x
	}
	return mllogMark{key: e.Key, at: at, line: n, epoch: number(e.Metadata.Epoch), samples: number(e.Metadata.Samples), step: number(e.Metadata.Step)}
}

const (
	// openImages is the size of the training set of ssd and retinanet. The train_samples in their
	// logs count batches.
	openImages = 1170301
	// largestEpoch is more epochs than any run trains for. A larger epoch_num counts samples
	// (bert) or tokens (gpt3).
	largestEpoch = 1e4
)

// set returns the samples per epoch; 0 if unknown.
func (m *mllogRun) set() float64 {
	n := float64(m.train.TrainSamples)
	switch m.benchmark {
	case "bert", "gpt3": // here train_samples counts the samples trained on
		return 0
	case "ssd", "retinanet":
		if near(n*float64(m.batch)/openImages) || near(n/openImages) {
			return openImages
		}
		return 0
	}
	return n
}

// setKnown reports whether train_samples is the size of the training set.
func (m *mllogRun) setKnown() bool { return m.set() == float64(m.train.TrainSamples) }

// samples returns the number of samples trained on up to a mark; ok is false if the log does not
// tell.
func (m *mllogRun) samples(at mllogMark) (x float64, ok bool) {
	switch {
	case !math.IsNaN(at.samples):
		return at.samples, true
	case !math.IsNaN(at.epoch):
		switch {
		case m.benchmark == "gpt3":
			return at.epoch / float64(m.length), m.length > 0
		case m.benchmark == "bert" || at.epoch >= largestEpoch:
			return at.epoch, true
		}
		return at.epoch * m.set(), m.set() > 0
	case !math.IsNaN(at.step):
		return at.step * float64(m.batch), m.batch > 0
	}
	return 0, false
}

// trained returns the samples trained on up to the last evaluation, and the time of that
// evaluation in ms. ok is false if an evaluation does not state its samples, or if the counts
// decrease.
func (m *mllogRun) trained() (samples, at float64, ok bool) {
	for _, one := range m.evaluations {
		if m.stop.Line > 0 && float64(one.at) > m.stop.Number {
			continue // an evaluation of a checkpoint after training
		}
		x, said := m.samples(m.marks[one.mark])
		if !said || x < samples || x > metrics.MaxCount {
			return 0, 0, false
		}
		samples, at = x, float64(one.at)
	}
	return samples, at, samples > 0
}

// endToEnd returns the rate from run_start to run_stop in samples/s. ok is false if training
// continued after the last count of samples. It is also false if this rate is higher than the
// rate during training, because the counts then mean something else.
func (m *mllogRun) endToEnd(own ownRate) (x float64, ok bool) {
	samples, at, ok := m.trained()
	took := m.stop.Number - m.start.Number
	if !ok || !(took > 0) || m.stop.Number-at > 0.05*took {
		return 0, false
	}
	x = samples / took * 1000
	return x, finite(x) && (own.training == 0 || x <= 1.05*own.training)
}

// ownRate returns the rate computed from the counts of samples in the log and the training time
// between them, without evaluations and pauses between blocks. It is the median over the
// intervals between counts. The first interval is left out, because it includes the start of
// training.
func (m *mllogRun) ownRate() ownRate {
	marks := slices.DeleteFunc(slices.Clone(m.marks), func(one mllogMark) bool {
		return float64(one.at) < m.start.Number || m.stop.Line > 0 && float64(one.at) > m.stop.Number
	})
	slices.SortStableFunc(marks, func(a, b mllogMark) int { return cmp.Compare(a.at, b.at) })
	// The counts at evaluations come first, because MLPerf's own checker uses them. In some logs,
	// the count at the end of a block equals the count at its start.
	for _, key := range []string{"eval_start", "eval_accuracy", "block_start", "block_stop", "epoch_stop"} {
		rates, whole := m.between(marks, key)
		if len(rates) > 1 {
			rates = rates[1:]
		}
		if rate, err := reduceBy("median", rates); err == nil && finite(rate) && finite(whole) {
			return ownRate{rate, whole}
		}
	}
	return ownRate{}
}

// trainedTime measures the time spent training since a count of samples.
type trainedTime struct {
	before float64 // seconds of training before the latest pause
	since  float64 // when training resumed, in ms; NaN: it is paused
}

// at returns the seconds of training up to a time in ms.
func (t trainedTime) at(ms float64) float64 {
	if math.IsNaN(t.since) {
		return t.before
	}
	return t.before + (ms-t.since)/1000
}

// pass handles a line whose key says that training pauses or resumes.
func (t *trainedTime) pass(key string, ms float64) {
	switch key {
	case "block_stop", "epoch_stop", "eval_start":
		*t = trainedTime{t.at(ms), math.NaN()}
	case "block_start", "epoch_start", "eval_stop":
		if math.IsNaN(t.since) {
			t.since = ms
		}
	}
}

// counted sets the training time to 0 at a count of samples.
func (t *trainedTime) counted(ms float64) {
	if t.before = 0; !math.IsNaN(t.since) {
		t.since = ms
	}
}

// between returns the rates between consecutive lines with a key, in time order from the start of
// training, and the overall rate. It returns none if the counts decrease, or if they belong to
// earlier checkpoints.
func (m *mllogRun) between(marks []mllogMark, key string) (rates []float64, whole float64) {
	before, farthest := 0.0, 0.0 // samples at the previous line; largest count of any block
	trained := trainedTime{since: m.start.Number}
	for _, one := range marks {
		at := float64(one.at)
		if samples, ok := m.samples(one); ok && one.key == key {
			seconds := trained.at(at)
			switch {
			case samples < before || samples < farthest:
				return nil, 0
			case samples > before && seconds > 0:
				rates, whole = append(rates, (samples-before)/seconds), samples/(at-m.start.Number)*1000
			}
			if samples > before {
				before = samples
				trained.counted(at)
			}
		}
		if strings.HasPrefix(one.key, "block") && one.samples > farthest {
			farthest = one.samples
		}
		trained.pass(one.key, at)
	}
	return rates, whole
}

// throughput adds the run's rate. It is the rate that the log states, checked against the log's
// own counts of samples; without one, it is computed from these counts.
func (m *mllogRun) throughput(own ownRate) {
	const counts = "the log's own samples over the training time; the median between evaluations or blocks"
	rates := m.rates
	if len(m.stepSeconds) > 0 && m.batch > 0 {
		x := float64(m.batch) / median(m.stepSeconds)
		if h := m.l.hold(x, own); h.keep && h.times == 1 && finite(x) {
			m.l.reduced(stepSeconds, "s", "median", 1, m.stepSeconds, "the train_step_time that the program states; "+h.note)
			if len(rates) == 0 {
				m.l.add(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureThroughput, Value: x, Unit: "samples/s", Reduce: "median",
					Note: "the global batch over the median train_step_time that the program states; " + h.note}}, x/median(m.stepSeconds), m.stepSeconds...)
				return
			}
		}
	}
	switch {
	case len(rates) > 0:
		m.l.rate("median", 1, rates, "as the program states it in tracked_stats, between evaluations", own, counts)
	case own.training > 0:
		m.l.add(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureThroughput, Value: own.training, Unit: "samples/s", Note: counts}}, 1)
	}
}
