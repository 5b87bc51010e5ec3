package loadtest

// An Outcome is one finished request, as exported. Times are in seconds.
type Outcome struct {
	At      float64 `json:"at"`   // scheduled send time, from the start of the load
	Sent    float64 `json:"sent"` // time when the request was sent
	Latency float64 `json:"latency"`
	Result  string  `json:"result"` // "ok", "wrong", "late" or "cancelled"
	Error   string  `json:"error,omitempty"`
	Replica *int    `json:"replica,omitempty"`

	TTFT      float64   `json:"ttft,omitempty"`
	TTFO      float64   `json:"ttfo,omitempty"`
	TPOT      float64   `json:"tpot,omitempty"`
	ITL       []float64 `json:"itl,omitempty"`
	Tokens    int       `json:"output_tokens,omitempty"`
	Input     int       `json:"input_tokens,omitempty"`
	Cached    int       `json:"cached_tokens,omitempty"`
	Reasoning int       `json:"reasoning_tokens,omitempty"`
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
