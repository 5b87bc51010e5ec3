package loadtest

// An Outcome is one finished request, as exported. Times are in seconds.
type Outcome struct {
	At      float64 `json:"at" parquet:"at"`     // scheduled send time, from the start of the load
	Sent    float64 `json:"sent" parquet:"sent"` // time when the request was sent
	Latency float64 `json:"latency" parquet:"latency"`
	Result  string  `json:"result" parquet:"result"` // "ok", "wrong", "late" or "cancelled"
	Error   string  `json:"error,omitempty" parquet:"error,optional"`
	Replica *int    `json:"replica,omitempty" parquet:"replica,optional"`

	TTFT      float64   `json:"ttft,omitempty" parquet:"ttft,optional"`
	TTFO      float64   `json:"ttfo,omitempty" parquet:"ttfo,optional"`
	TPOT      float64   `json:"tpot,omitempty" parquet:"tpot,optional"`
	ITL       []float64 `json:"itl,omitempty" parquet:"itl,list"`
	Tokens    int       `json:"output_tokens,omitempty" parquet:"output_tokens,optional"`
	Input     int       `json:"input_tokens,omitempty" parquet:"input_tokens,optional"`
	Cached    int       `json:"cached_tokens,omitempty" parquet:"cached_tokens,optional"`
	Reasoning int       `json:"reasoning_tokens,omitempty" parquet:"reasoning_tokens,optional"`
}

// outcome returns the request as it is exported.
func (q request) outcome() Outcome {
	o := Outcome{At: q.at.Seconds(), Sent: q.sent.Seconds(), Latency: (q.now - q.at).Seconds(), Result: "ok"}
	switch {
	case q.cancelled:
		o.Result = "cancelled"
	case q.err != nil && late(q.err):
		o.Result = "late"
	case q.err != nil:
		o.Result = "wrong"
	}
	if q.err != nil {
		o.Error = q.err.Error()
	}
	if q.replica >= 0 {
		o.Replica = &q.replica
	}
	if a := q.answer; a != nil {
		lag := (q.sent - q.at).Seconds()
		o.TTFT = lag + a.First.Seconds()
		if a.FirstOutput > 0 {
			o.TTFO = lag + a.FirstOutput.Seconds()
		}
		o.TPOT, _ = a.PerToken()
		for _, gap := range a.Gaps {
			o.ITL = append(o.ITL, gap.Seconds())
		}
		o.Tokens, o.Input, o.Cached, o.Reasoning = a.Tokens, a.Input, a.Cached, a.Reasoning
	}
	return o
}
