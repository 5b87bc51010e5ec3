package scaling

import (
	"math"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A Row is a point of a curve as it is printed and exported. Throughputs are in samples/s.
// Efficiency and Karp and Flatt's serial fraction are fractions. Missing values are null.
type Row struct {
	Series         string   `json:"series"`
	Axis           string   `json:"axis,omitempty"` // the axis, if it is not workers
	At             any      `json:"at,omitempty"`   // position on the axis: a number or a word
	Workers        int      `json:"workers"`        // 0 if the runs of the point differ in it
	Runs           int      `json:"runs"`           // runs with a throughput
	Throughput     *float64 `json:"throughput"`
	ThroughputLow  *float64 `json:"throughput_low"`
	ThroughputHigh *float64 `json:"throughput_high"`
	Speedup        *float64 `json:"speedup"`
	SpeedupLow     *float64 `json:"speedup_low"`
	SpeedupHigh    *float64 `json:"speedup_high"`
	Efficiency     *float64 `json:"efficiency"`
	EfficiencyLow  *float64 `json:"efficiency_low"`
	EfficiencyHigh *float64 `json:"efficiency_high"`
	KarpFlatt      *float64 `json:"karp_flatt"`
	KarpFlattLow   *float64 `json:"karp_flatt_low"`
	KarpFlattHigh  *float64 `json:"karp_flatt_high"`
	EndToEnd       *float64 `json:"end_to_end"` // samples/s over the whole training time
	EndToEndLow    *float64 `json:"end_to_end_low"`
	EndToEndHigh   *float64 `json:"end_to_end_high"`
	Skew           *float64 `json:"skew"` // fraction of the step time
	// Fractions of the step time that the all-reduce of gradients takes, measured and predicted
	// from a benchmark of the collectives.
	Communication              *float64 `json:"communication"`
	CommunicationLow           *float64 `json:"communication_low"`
	CommunicationHigh          *float64 `json:"communication_high"`
	CommunicationPredicted     *float64 `json:"communication_predicted"`
	CommunicationPredictedLow  *float64 `json:"communication_predicted_low"`
	CommunicationPredictedHigh *float64 `json:"communication_predicted_high"`
	// CommunicationPredictedFrom names the benchmark, or says why the prediction is missing.
	CommunicationPredictedFrom string `json:"communication_predicted_from"`

	TimeToAccuracy map[string]RowSeconds `json:"time_to_accuracy"` // by target: "0.75", "loss_2", "target" for the program's own; never null
	Base           *RowBase              `json:"base"`             // null: the base point has no successful run
	Scaling        string                `json:"scaling"`          // "weak", "strong"; "" where not recorded
	Fingerprint    fingerprint.Print     `json:"fingerprint"`      // hardware and software of the curve's runs; null: nothing recorded
	Warnings       []string              `json:"warnings"`         // warnings about the curve and the point; never null
}

// RowSeconds is the time to one target in seconds.
type RowSeconds struct {
	Seconds     *float64 `json:"seconds"` // null: too many runs miss the target; the time is at least seconds_low
	SecondsLow  *float64 `json:"seconds_low"`
	SecondsHigh *float64 `json:"seconds_high"`
	// The base's time to the target divided by this point's.
	Speedup     *float64 `json:"speedup"`
	SpeedupLow  *float64 `json:"speedup_low"`
	SpeedupHigh *float64 `json:"speedup_high"`
	Reached     int      `json:"reached"`
	Runs        int      `json:"runs"`
}

// RowBase is the base of the curve as it is printed and exported.
type RowBase struct {
	Axis       string   `json:"axis,omitempty"`
	At         any      `json:"at,omitempty"`
	Workers    int      `json:"workers"`
	Throughput *float64 `json:"throughput"` // samples/s, the median over its runs; null: no run has a steady state
	Runs       int      `json:"runs"`       // runs with a throughput
	Unit       string   `json:"-"`          // unit of the throughput
}

// Row returns the base in the form that is printed and exported; nil without a base.
func (b *Base) Row() *RowBase {
	if b == nil {
		return nil
	}
	s := b.Of(measure.Throughput)
	r := &RowBase{Workers: b.Workers, Runs: s.Runs}
	r.Axis, r.At = along(b.axis, b.At)
	r.Throughput, _, _ = s.Median.columns()
	r.Unit = s.Unit
	return r
}

// Along returns the axis and the base's position on it.
func (b *RowBase) Along() (string, Value) {
	if b.Axis == "" {
		return Workers, At(b.Workers)
	}
	return b.Axis, ValueOf(b.At)
}

// along returns the axis and the position for a row. They are empty for the axis workers, whose
// value a row has anyway.
func along(axis string, v Value) (string, any) {
	if axis == Workers {
		return "", nil
	}
	return axis, v.Any()
}

// Rows returns one row for each point of the curves, series by series; never nil.
func Rows(curves []Curve) []Row {
	rows := []Row{}
	for _, c := range curves {
		for _, p := range c.Points {
			x := p.Of(measure.Throughput)
			karpFlatt, serial := x.KarpFlatt()
			r := Row{
				Series: c.Series, Workers: p.Workers, Runs: x.Runs, KarpFlatt: finite(karpFlatt),
				TimeToAccuracy: map[string]RowSeconds{},
				Base:           c.Base.Row(), Scaling: c.Scaling, Fingerprint: c.Fingerprint,
				Warnings: append(append([]string{}, c.Warnings...), p.Warnings...),
			}
			for _, d := range p.RunWarnings {
				r.Warnings = append(r.Warnings, d.Line(len(p.Runs)))
			}
			r.Axis, r.At = along(c.Axis, p.At)
			r.KarpFlattLow, r.KarpFlattHigh = serial.ends()
			r.Throughput, r.ThroughputLow, r.ThroughputHigh = x.Median.columns()
			r.Speedup, r.SpeedupLow, r.SpeedupHigh = x.Gain().columns()
			r.Efficiency, r.EfficiencyLow, r.EfficiencyHigh = x.Efficiency().columns()
			r.EndToEnd, r.EndToEndLow, r.EndToEndHigh = p.Of(measure.EndToEnd).Median.columns()
			r.Skew, _, _ = p.Of(measure.Skew).Median.columns()
			r.Communication, r.CommunicationLow, r.CommunicationHigh = p.Of(measure.Communication).Median.columns()
			if q := p.Predicted; q != nil {
				r.CommunicationPredicted, r.CommunicationPredictedLow, r.CommunicationPredictedHigh = q.Share.columns()
				r.CommunicationPredictedFrom = q.From + q.Why
			}
			for _, t := range p.Targets() {
				s := RowSeconds{Reached: t.Reached(), Runs: t.Runs}
				s.Seconds, s.SecondsLow, s.SecondsHigh = t.Median.columns()
				if t.AtLeast != nil {
					s.SecondsLow = t.AtLeast
				}
				s.Speedup, s.SpeedupLow, s.SpeedupHigh = t.Gain().columns()
				r.TimeToAccuracy[t.Goal()] = s
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func (e *Estimate) columns() (value, low, high *float64) {
	if e == nil {
		return nil, nil, nil
	}
	low, high = e.Interval.ends()
	return finite(&e.Value), low, high
}

func (in *Interval) ends() (low, high *float64) {
	if in == nil {
		return nil, nil
	}
	return finite(&in.Low), finite(&in.High)
}

// finite returns x, or nil if it is a value that JSON cannot represent.
func finite(x *float64) *float64 {
	if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
		return nil
	}
	return x
}
