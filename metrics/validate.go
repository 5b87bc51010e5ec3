package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Limits of the numbers in an event. Event files are written by other programs, and may be damaged
// or forged. A number beyond these limits cannot be a measurement, and would overflow in a sum or a
// conversion. The limits are far above what any cluster reaches.
const (
	MaxCount   = 1 << 53        // bytes, samples and other counts; exact as a float64
	MaxStep    = 1 << 40        // index of a step, epoch or restart
	MaxRanks   = 1<<31 - 1      // number of ranks, CPUs or processes
	MaxSamples = 1 << 32        // samples per step and rank, so that the sum over a run does not overflow
	MaxTicks   = 1 << 53        // per step
	MaxSeconds = 1e10           // 317 years
	MinTick    = 1e-12          // seconds
	MaxRate    = 1e18           // samples or bytes per second
	MinRate    = 1 / MaxSeconds // per second, for rates that are not zero
	MaxUnix    = 253402300799   // seconds since the epoch: the end of the year 9999
)

// Unix converts a time to seconds since the epoch. The zero time, which means unknown, becomes 0.
// (time.Time.UnixNano overflows outside the years 1678 to 2262.)
func Unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix()) + float64(t.Nanosecond())/1e9
}

// Time converts seconds since the epoch to a time. If CheckUnix rejects them, it returns the zero
// time.
func Time(seconds float64) time.Time {
	if CheckUnix(seconds) != nil {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

// CheckUnix returns an error unless the seconds are a time between 1970 and 9999.
func CheckUnix(seconds float64) error {
	if !(seconds >= 0 && seconds <= MaxUnix) {
		return fmt.Errorf("%g is not a time; want seconds since 1970, up to %d (the year 9999)", seconds, MaxUnix)
	}
	return nil
}

// Validate returns an error if the event is not valid. The reader validates every line, so later
// code can rely on the ranges of numbers and the lengths of columns.
func (e *Event) Validate() error {
	set := 0
	for _, is := range []bool{e.Start != nil, e.Environment != nil, e.Staged != nil, e.Train != nil, e.Steps != nil,
		e.Epoch != nil, e.Gradients != nil, e.Evaluation != nil, e.Figure != nil, e.Note != nil, e.Phase != nil, e.Telemetry != nil, e.Error != nil, e.Stop != nil} {
		if is {
			set++
		}
	}
	switch {
	case set == 0:
		return errors.New("no known payload (want one of start, environment, staged, train, steps, epoch, gradients, evaluation, figure, note, phase, telemetry, error, stop)")
	case set > 1:
		return fmt.Errorf("%d payloads in one event, want exactly one", set)
	case e.Time < 0:
		return fmt.Errorf("t = %g is before the writer's start", e.Time)
	case !(e.Time <= MaxSeconds):
		return fmt.Errorf("t = %g seconds, want at most %g", e.Time, float64(MaxSeconds))
	}
	switch {
	case e.Start != nil:
		return e.Start.validate()
	case e.Environment != nil:
		return e.Environment.validate()
	case e.Staged != nil:
		return e.Staged.validate()
	case e.Train != nil:
		return e.Train.validate()
	case e.Steps != nil:
		return e.Steps.validate()
	case e.Epoch != nil:
		return e.Epoch.validate()
	case e.Gradients != nil:
		return e.Gradients.validate()
	case e.Evaluation != nil:
		return e.Evaluation.validate()
	case e.Figure != nil:
		return e.Figure.validate()
	case e.Telemetry != nil:
		return e.Telemetry.validate()
	case e.Stop != nil:
		return e.Stop.validate()
	}
	return nil
}

// bounded is a number that must be from 0 to most.
type bounded struct {
	name        string
	value, most float64
}

func within(list ...bounded) error {
	for _, b := range list {
		if !(b.value >= 0 && b.value <= b.most) {
			return fmt.Errorf("%s = %.17g, want 0 to %.17g", b.name, b.value, b.most)
		}
	}
	return nil
}

func (s *Start) validate() error {
	switch {
	case s.Format < 1 || s.Format > FormatVersion:
		return fmt.Errorf("start.format = %d; this version of scalebench reads 1 to %d", s.Format, FormatVersion)
	case s.WorldSize < 1 || s.WorldSize > MaxRanks:
		return fmt.Errorf("start.world_size = %d, want 1 to %d", s.WorldSize, MaxRanks)
	case s.Rank < 0 || s.Rank >= s.WorldSize:
		return fmt.Errorf("start.rank = %d is outside a world of %d", s.Rank, s.WorldSize)
	case s.Ranks < 0 || s.Covers() > s.WorldSize-s.Rank:
		return fmt.Errorf("start.ranks = %d from rank %d on is outside a world of %d", s.Ranks, s.Rank, s.WorldSize)
	}
	if err := CheckUnix(s.Unix); err != nil {
		return fmt.Errorf("start.unix: %w", err)
	}
	return within(bounded{"start.local_rank", float64(s.LocalRank), MaxRanks}, bounded{"start.restart", float64(s.Restart), MaxStep},
		bounded{"start.pid", float64(s.PID), MaxRanks})
}

// maxGPUs is the maximum number of GPUs of one process. Without it, a line of {}, {}, … would take
// many times its length in memory.
const maxGPUs = 4096

func (e *Environment) validate() error {
	if len(e.GPUs) > maxGPUs {
		return fmt.Errorf("environment.gpus has %d entries, want at most %d", len(e.GPUs), maxGPUs)
	}
	for _, g := range e.GPUs {
		if err := within(bounded{"environment.gpus.memory_bytes", float64(g.MemoryBytes), MaxCount},
			bounded{"environment.gpus.power_limit_watts", g.PowerLimitWatts, 1e6}); err != nil {
			return err
		}
	}
	if e.Interface != nil {
		if err := within(bounded{"environment.interface.speed_bits_per_second", float64(e.Interface.SpeedBitsPer), MaxCount}); err != nil {
			return err
		}
	}
	return within(bounded{"environment.cpus", float64(e.CPUs), MaxRanks}, bounded{"environment.threads", float64(e.Threads), MaxRanks},
		bounded{"environment.memory_bytes", float64(e.MemoryBytes), MaxCount})
}

func (s *Staged) validate() error {
	if s.Item == "" || s.Path == "" {
		return fmt.Errorf("staged names no item (%q) or no path (%q)", s.Item, s.Path)
	}
	return within(bounded{"staged.bytes", float64(s.Bytes), MaxCount}, bounded{"staged.seconds", s.Seconds, MaxSeconds})
}

func (t *Train) validate() error {
	return within(bounded{"train.parameters", float64(t.Parameters), MaxCount}, bounded{"train.gradient_bytes", float64(t.GradientBytes), MaxCount},
		bounded{"train.train_samples", float64(t.TrainSamples), MaxCount}, bounded{"train.test_samples", float64(t.TestSamples), MaxCount},
		bounded{"train.global_batch", float64(t.GlobalBatch), MaxSamples}, bounded{"train.steps_per_epoch", float64(t.StepsPerEpoch), MaxStep})
}

func (s *Steps) validate() error {
	n := len(s.Duration)
	switch {
	case n == 0:
		return errors.New("steps.duration is empty")
	case s.First < 0 || s.First > MaxStep-n:
		return fmt.Errorf("steps.first = %d of %d steps; steps are counted from 0 to %d", s.First, n, MaxStep)
	case !(s.Tick > 0):
		return fmt.Errorf("steps.tick = %g seconds, want more than 0", s.Tick)
	case !(s.Tick >= MinTick && s.Tick <= MaxSeconds):
		return fmt.Errorf("steps.tick = %g seconds, want %g to %g", s.Tick, MinTick, float64(MaxSeconds))
	case len(s.Samples) != n:
		return fmt.Errorf("steps.samples has %d entries, duration has %d", len(s.Samples), n)
	}
	ticks := int64(min(MaxTicks, MaxSeconds/s.Tick))
	for _, c := range []struct {
		name   string
		values []int64
		most   int64
	}{{"duration", s.Duration, ticks}, {"samples", s.Samples, MaxSamples}, {"data_wait", s.DataWait, ticks},
		{"compute", s.Compute, ticks}, {"communication", s.Communication, ticks}} {
		if c.values != nil && len(c.values) != n {
			return fmt.Errorf("steps.%s has %d entries, duration has %d", c.name, len(c.values), n)
		}
		for i, v := range c.values {
			switch {
			case v < 0:
				return fmt.Errorf("step %d has a negative value %d", s.First+i, v)
			case v > c.most:
				return fmt.Errorf("step %d has a value of %d in %s, more than %d: the line is damaged", s.First+i, v, c.name, c.most)
			}
		}
	}
	return nil
}

func (p *Epoch) validate() error {
	return within(bounded{"epoch.epoch", float64(p.Epoch), MaxStep}, bounded{"epoch.step", float64(p.Step), MaxStep},
		bounded{"epoch.samples", float64(p.Samples), MaxCount}, bounded{"epoch.seconds", p.Seconds, MaxSeconds})
}

func (g *Gradients) validate() error {
	n := len(g.Steps)
	switch {
	case g.Epoch < 1 || g.Epoch > MaxStep:
		return fmt.Errorf("gradients.epoch = %d, want 1 to %d", g.Epoch, MaxStep)
	case g.Samples < 1 || g.GlobalSamples <= g.Samples || g.GlobalSamples > MaxSamples:
		return fmt.Errorf("gradients.samples = %d of gradients.global_samples = %d; want 1 or more, more over all ranks, and at most %d", g.Samples, g.GlobalSamples, MaxSamples)
	case n == 0:
		return errors.New("gradients.steps is empty")
	case len(g.Own) != n || len(g.Averaged) != n:
		return fmt.Errorf("gradients.own has %d entries and averaged %d, steps has %d", len(g.Own), len(g.Averaged), n)
	}
	for i, steps := range g.Steps {
		if steps < 1 || steps > MaxStep {
			return fmt.Errorf("gradients.steps[%d] = %d, want 1 to %d", i, steps, MaxStep)
		}
		for _, v := range []float64{g.Own[i], g.Averaged[i]} {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("a squared norm of %g in block %d of gradients, want a number that is not negative", v, i)
			}
		}
	}
	return within(bounded{"gradients.step", float64(g.Step), MaxStep})
}

func (v *Evaluation) validate() error {
	if a := v.Accuracy; !(a >= 0 && a <= 1) {
		return fmt.Errorf("evaluation.accuracy = %g, want a fraction from 0 to 1", a)
	}
	return within(bounded{"evaluation.epoch", float64(v.Epoch), MaxStep}, bounded{"evaluation.step", float64(v.Step), MaxStep},
		bounded{"evaluation.samples", float64(v.Samples), MaxCount}, bounded{"evaluation.seconds", v.Seconds, MaxSeconds},
		bounded{"evaluation.trained", float64(v.Trained), MaxCount})
}

func (f *Figure) validate() error {
	if f.Name == "" {
		return errors.New("figure.name is empty")
	}
	if !slices.Contains([]string{"", "higher", "lower"}, f.Better) {
		return fmt.Errorf("figure.better = %q, want \"higher\", \"lower\" or nothing", f.Better)
	}
	for key, v := range f.At {
		switch v := v.(type) {
		case string:
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("figure.at.%s = %g, want a finite number or a text", key, v)
			}
		default:
			return fmt.Errorf("figure.at.%s = %v, want a number or a text", key, v)
		}
	}
	for name, v := range map[string]*float64{"value": &f.Value, "plus_minus": f.PlusMinus} {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			return fmt.Errorf("figure.%s = %g, want a finite number", name, *v)
		}
	}
	// Results are computed from these; other values are shown unchanged.
	if most, named := map[string]float64{FigureThroughput: MaxRate, FigureEndToEnd: MaxRate, FigureTrainSeconds: MaxSeconds}[f.Name]; named {
		if err := within(bounded{f.Name, f.Value, most}); err != nil {
			return err
		}
		if most == MaxRate && f.Value > 0 && f.Value < MinRate {
			return fmt.Errorf("figure.value of %s = %g, want 0, or from %g on", f.Name, f.Value, MinRate)
		}
	}
	return within(bounded{"figure.of", float64(f.Of), MaxCount}, bounded{"figure.line", float64(f.Line), MaxCount})
}

func (s *Stop) validate() error {
	switch s.Status {
	case StopDone, StopFailed, StopInterrupted:
	default:
		return fmt.Errorf("stop.status = %q, want %s, %s or %s", s.Status, StopDone, StopFailed, StopInterrupted)
	}
	return within(bounded{"stop.steps", float64(s.Steps), MaxStep}, bounded{"stop.epochs", float64(s.Epochs), MaxStep})
}
