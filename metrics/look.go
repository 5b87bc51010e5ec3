package metrics

// A Look is one look at the results of a study that is measured until its question is
// decided, for one series.
type Look struct {
	Series      string   `json:"series"`
	Number      int      `json:"look"` // from 1 on
	Unix        float64  `json:"unix"` // when, seconds since 1970
	Runs        int      `json:"runs"` // good ones of the series so far
	Most        int      `json:"max_repeats"`
	Confidence  float64  `json:"confidence"`  // of an interval at each look, a fraction
	Workers     *int     `json:"workers"`     // the answer; null: none yet
	Probability *float64 `json:"probability"` // of the answer, a fraction; null: not known
	Decided     bool     `json:"decided"`
	// Rival is the count that the answer was compared with, 0 for none, and Ratio how many
	// times as fast the larger of the two was, with its interval; null: not known. Price is
	// what Ratio must exceed for the larger to be worth it; null: the question has limits.
	Rival int      `json:"rival"`
	Ratio *float64 `json:"ratio"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Price *float64 `json:"price"`
	Text  string   `json:"text"` // the answer in words
}
