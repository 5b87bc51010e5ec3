package metrics

// A Look is an interim analysis of one series, for a study that is measured until its question is
// decided.
type Look struct {
	Series      string   `json:"series"`
	Number      int      `json:"look"` // number of the look, from 1
	Unix        float64  `json:"unix"` // time of the analysis, seconds since 1970
	Runs        int      `json:"runs"` // good runs of the series so far
	Most        int      `json:"max_repeats"`
	Confidence  float64  `json:"confidence"`  // confidence level of the intervals at each look, a fraction
	Workers     *int     `json:"workers"`     // the recommended worker count; null: none yet
	Probability *float64 `json:"probability"` // probability that Workers is right, a fraction; null: unknown
	Decided     bool     `json:"decided"`
	// Rival is the worker count that Workers was compared with; 0: none. Ratio is the speed of the
	// larger of the two counts divided by that of the smaller, with its interval; null: unknown.
	// Price is the ratio above which the larger count is worth it; null: the question has limits.
	Rival int      `json:"rival"`
	Ratio *float64 `json:"ratio"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Price *float64 `json:"price"`
	Text  string   `json:"text"` // the answer in words
}

// Contrast reports whether the look compares two settings, such as two frameworks, and not
// worker counts: Ratio is then the value of the second setting divided by that of the first.
func (l Look) Contrast() bool { return l.Workers == nil && l.Ratio != nil }
