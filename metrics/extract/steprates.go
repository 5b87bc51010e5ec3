package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// finish adds the run's figures at the end of the log.
func (s *stepLog) finish() {
	l := s.l
	if s.line == 0 {
		return
	}
	s.from.note(l)
	s.ranksDiffer()
	s.checkTimes()
	s.checkBatch()
	rated := false
	for _, f := range steady {
		values := s.measured[f.Name]
		if len(values) == 0 {
			continue
		}
		rated = true
		f.Reduce = "median"
		f.Note = strings.Join(slices.DeleteFunc([]string{f.Note, "the median over the log's lines, without " + s.leftOut()}, func(s string) bool { return s == "" }), "; ")
		l.reduce(s.timed(f), s.scale[f.Name], values)
	}
	if !rated {
		why := "the log has nothing beyond " + s.leftOut() + ", in which programs compile and fill caches"
		if s.unrated != "" && s.lines > s.format.starting {
			why = s.unrated
		}
		l.note("no rate is taken: %s", why)
	}
	s.peaks()
	s.rates()
	s.losses()
}

func (s *stepLog) peaks() {
	for _, f := range atPeak {
		values := s.measured[f.Name]
		if len(values) == 0 {
			continue
		}
		f.Reduce, f.Note = "max", "of a device, of the ranks that are read; the largest that the log states"
		s.l.reduce(f, s.scale[f.Name], values)
	}
}

// rates adds the rates over all devices: samples/s if the samples per step are known, tokens/s if
// the tokens per step are.
func (s *stepLog) rates() {
	s.samplesRate()
	s.sequence()
	if len(s.measured[tokensPerGPU]) > 0 {
		s.deviceTokens()
		return
	}
	s.stepTokensRate()
}

// median returns the median of the values of a figure in its unit; 0 if the log states none.
func (s *stepLog) median(name string) float64 {
	return scaled(median(s.measured[name]), s.scale[name])
}

// over adds the rate f: each (an amount per step) divided by the median step time.
func (s *stepLog) over(f metrics.Figure, each float64) {
	seconds := s.measured[stepSeconds]
	f.Value = each / s.median(stepSeconds)
	if len(seconds) > 1 {
		f.Reduce = "median"
	}
	if s.wrongBatch != "" {
		f = s.l.contradicted(f, s.wrongBatch)
	} else {
		f = s.timed(f)
	}
	s.l.add(metrics.Event{Figure: &f}, f.Value/median(seconds), seconds...)
}

func (s *stepLog) samplesRate() {
	seconds := s.measured[stepSeconds]
	switch {
	case len(s.samples) > 0:
		s.statedSamples(seconds)
	case s.batch.Line > 0 && len(seconds) > 0:
		s.over(metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Note: "the global batch over the median step time; a sample is a sequence"}, s.batch.Number)
	}
}

// deviceTokens adds the tokens/s of all devices, computed from the stated tokens/s of one.
func (s *stepLog) deviceTokens() {
	l, n, each := s.l, s.devices(), s.measured[tokensPerGPU]
	s.utilisation(s.median(tokensPerGPU), func(f metrics.Figure, scale float64) {
		f.Reduce = "median"
		l.reduce(s.timed(f), s.scale[tokensPerGPU]*scale, each)
	})
	switch {
	case s.undivided != "":
		l.note("%s is left out, because the number of devices to multiply a device's rate by is unknown: %s", tokensPerSecond, s.undivided)
		return
	case n == 0:
		l.note("%s needs the number of devices, which the log does not say: give --workers", tokensPerSecond)
		return
	}
	if l.res.Workers == 0 {
		l.note("%s is a device's rate times the workers, each of which is taken to be one device", tokensPerSecond)
	}
	l.reduce(s.timed(metrics.Figure{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher", Reduce: "median", Note: "a device's rate times the number of devices, not a measured aggregate"}), s.scale[tokensPerGPU]*n, each)
}

// stepTokensRate adds the tokens/s of all devices and of one device, computed from the tokens per
// step.
func (s *stepLog) stepTokensRate() {
	seconds, n := s.measured[stepSeconds], s.devices()
	if len(seconds) == 0 || s.stepTokens.Line == 0 && (s.batch.Line == 0 || !(s.tokens.Number > 0)) {
		return
	}
	tokens, of := s.stepTokens.Number, "the tokens of a step"
	if s.stepTokens.Line == 0 {
		tokens, of = s.batch.Number*s.tokens.Number, "the global batch times the sequence length"
	}
	if s.over(metrics.Figure{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher", Note: of + " over the median step time"}, tokens); n == 0 {
		return
	}
	s.over(metrics.Figure{Name: tokensPerGPU, Unit: "tokens/s", Note: of + " over the median step time and the number of devices"}, tokens/n)
	s.utilisation(tokens/n/s.median(stepSeconds), func(f metrics.Figure, scale float64) { s.over(f, tokens/n*scale) })
}

// statedSamples adds the samples/s that the log states, unless the batch divided by the step time
// contradicts them.
func (s *stepLog) statedSamples(seconds []Value) {
	f := metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Reduce: "median", Note: "as the program states it, of all devices; a sample is a sequence"}
	stated, own := median(s.samples), s.batch.Number/s.median(stepSeconds)
	if len(seconds) > 0 && s.batch.Line > 0 && !within(stated, own, sameValue) {
		f = s.l.contradicted(f, fmt.Sprintf("it states %.4g samples/s; its batch of %g over the time of a step is %.4g", stated, s.batch.Number, own))
	} else {
		f = s.timed(f)
	}
	s.l.reduce(f, 1, s.samples)
}

// sequence sets the tokens per sample to the model's sequence length if the log does not state
// them.
func (s *stepLog) sequence() {
	m := s.l.o.Model
	switch {
	case m == nil:
	case s.tokens.Line == 0:
		s.tokens.Number = float64(m.Sequence)
	case s.tokens.Number != float64(m.Sequence):
		s.l.fail(s.tokens.Line, "a sample has %g tokens; the model has sequence = %d", s.tokens.Number, m.Sequence)
	}
}

// utilisation adds the MFU by each convention if the model and the device are known, and the HFU if
// it is known which operations are recomputed. tokens is the rate of one device in tokens/s. The
// function add appends a figure; scale is the factor from a rate in tokens/s to the figure.
func (s *stepLog) utilisation(tokens float64, add func(f metrics.Figure, scale float64)) {
	l, m := s.l, s.l.o.Model
	if m == nil {
		return
	}
	l.utilised = true
	peak := must(m.Peak())
	figure := func(name string, flops float64, err error, share func(flops, tokens, peak float64) (float64, error), says string) bool {
		if err == nil {
			_, err = share(flops, tokens, peak)
		}
		if err != nil {
			l.note("no %s: %v", name, err)
			return false
		}
		add(metrics.Figure{Name: name, Note: fmt.Sprintf("%.4g FLOPs a token%s; of a peak of %.4g TFLOP/s in %s", flops, says, peak/1e12, m.Dtype)}, flops/peak)
		return true
	}
	for _, c := range measure.Conventions {
		flops, err := c.FLOPs(m.Architecture)
		if !figure(mfuBy+c.Name, flops, err, measure.Utilisation, ": "+c.Says) {
			continue
		}
		if c.Name == s.format.convention {
			s.restated(flops*tokens, tokens, flops*tokens/peak)
		}
		if m.Recompute != "" {
			flops, err = c.HardwareFLOPs(m.Architecture, m.Recompute)
			figure(hfuBy+c.Name, flops, err, measure.HardwareUtilisation, " with what is computed again ("+m.Recompute+")")
		}
	}
}

// restated adds a note if the FLOP/s and the MFU that the program states differ from what its
// convention gives for the model.
func (s *stepLog) restated(flops, tokens, share float64) {
	stated, own := s.median(flopsPerGPU), s.median(reportedMFU)
	if own > 0 {
		s.l.note("%s", measure.RestatedMFU(measure.MFUStatement{MFU: own, FLOPS: stated}, measure.MFUStatement{MFU: share, FLOPS: flops}, mfuBy+s.format.convention, tokens))
	}
	if stated > 0 && math.Abs(stated/flops-1) > 0.02 {
		s.l.note("%s reports %.4g TFLOP/s per device, %s's FLOP count of this model gives %.4g: check the model, or its version counts differently", s.format.program, stated/1e12, s.format.convention, flops/1e12)
	}
}

// losses adds the last losses as figures of the run, and then all losses. The last ones come
// first because there may be very many of the others.
func (s *stepLog) losses() {
	final := func(name string, v Value, note string) {
		s.l.add(metrics.Event{Figure: &metrics.Figure{Name: name, Value: v.Number, Note: note}}, 1, v)
	}
	switch {
	case s.undefined > 0:
		s.l.note("the loss is no finite number in line %d, the last that states one: the training diverged", s.undefined)
	case s.loss.Line > 0:
		if n := len(s.infinite); n > 0 {
			s.l.note("the loss is no finite number in %s, from line %d on, and is one again later: see whether the training went on", number.Count(n, "line"), s.infinite[0])
		}
		final(finalLoss, s.loss, "the last training loss that the log states")
	}
	if s.evalLoss.Line > 0 {
		final(finalEvalLoss, s.evalLoss, "the last evaluation's loss that the log states")
	}
	if len(s.stated) == 0 {
		return
	}
	seconds, how, why := s.clock.seconds(s.median(stepSeconds))
	if s.clock.why == "" && s.stated[0].at != "step" {
		why = "its losses stand at epochs, not at steps"
	}
	for _, one := range s.stated { // times need all lines of the log
		if why == "" && (one.at != "step" || s.clock.began > 0 && one.time < s.clock.began || !(seconds(one.of, one.time) <= metrics.MaxSeconds)) {
			why = "a loss stands at no step, or before the first"
		}
	}
	if why == "" {
		s.l.note("losses are timed by %s", how)
		s.l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	} else {
		s.l.note("no time to a loss, because the log gives no time for each loss: %s", why)
	}
	for _, one := range s.stated {
		e := metrics.Event{Figure: &metrics.Figure{Name: one.name, Value: one.v.Number, At: map[string]any{one.at: one.of}}}
		if why == "" {
			e.Time = seconds(one.of, one.time)
		}
		s.l.add(e, 1, one.v)
	}
}
