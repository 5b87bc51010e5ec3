package measure

// The measures of a collective benchmark. All have the coordinates op and in_place (1,
// or 0 for out of place); message measures also have the size in bytes.
const (
	Latency   = "latency"   // alpha of Hockney's model, fitted to all sizes of an operation
	Bandwidth = "bandwidth" // of a long message, from the same fit
	FitLow    = "fit_low"   // largest errors of the fit, as model over measured - 1
	FitHigh   = "fit_high"  //
	FitSizes  = "fit_sizes" // number of sizes fitted
	BusBW     = "busbw"     // AlgBW times the operation's factor
	AlgBW     = "algbw"     // size over Time
	Time      = "time"      // median over iterations; nccl-tests: their mean
	TimeMin   = "time_min"
	TimeMean  = "time_mean"
	TimeP99   = "time_p99"
	TimeCV    = "time_cv" // standard deviation over mean
)

// The coordinates of a collective benchmark.
const (
	Op      = "op"
	InPlace = "in_place"
	Bytes   = "bytes"
)

const (
	ofOperation Coordinates = InPlace + " " + Op
	ofMessage   Coordinates = Bytes + " " + InPlace + " " + Op
)

var collective = Kind{Name: "collective", Measures: collectives, Main: []string{BusBW}}

var collectives = []Measure{
	{Name: Latency, Title: "latency", Unit: "s", Better: Lower, Show: Seconds, At: ofOperation},
	{Name: Bandwidth, Title: "bandwidth", Unit: "B/s", Better: Higher, At: ofOperation},
	{Name: FitLow, Title: "fit off by", Show: Percent, At: ofOperation},
	{Name: FitHigh, Title: "to", Show: Percent, At: ofOperation},
	{Name: FitSizes, Title: "sizes", At: ofOperation},
	{Name: BusBW, Title: "bus bandwidth", Unit: "B/s", Better: Higher, At: ofMessage, Axis: Bytes},
	{Name: AlgBW, Title: "algorithm bandwidth", Unit: "B/s", Better: Higher, At: ofMessage, Axis: Bytes},
	{Name: Time, Title: "time", Unit: "s", Better: Lower, Show: Seconds, At: ofMessage, Axis: Bytes},
	{Name: TimeMin, Title: "least time", Unit: "s", Better: Lower, Show: Seconds, At: ofMessage, Axis: Bytes},
	{Name: TimeMean, Title: "mean time", Unit: "s", Better: Lower, Show: Seconds, At: ofMessage, Axis: Bytes},
	{Name: TimeP99, Title: "time p99", Unit: "s", Better: Lower, Show: Seconds, At: ofMessage, Axis: Bytes},
	{Name: TimeCV, Title: "cv of the time", Better: Lower, Show: Percent, At: ofMessage, Axis: Bytes},
}
