package loadtest

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Stream is the times of one answer that came text by text, as language models give
// it. They count from the moment at which the request was sent.
type Stream struct {
	First time.Duration // to the first text, reasoning included: time to first token
	// FirstOutput is the time to the first text of the answer itself, behind a model's
	// reasoning; 0: there was none.
	FirstOutput time.Duration
	Last        time.Duration // to the last text
	Gaps        []time.Duration
	// Tokens is how many the service says it made, and where it does not, how many
	// texts came: a text can hold several tokens.
	Tokens  int
	Counted bool // the service said so
	// Input tokens are those of the request, of which Cached were not computed again,
	// and Reasoning are those of Tokens that precede the answer, as the service says.
	Input, Cached, Reasoning int
}

// PerToken is the time of a token behind the first, (Last − First)/(Tokens − 1) in
// seconds; ok is false where there is only one.
func (s Stream) PerToken() (seconds float64, ok bool) {
	if s.Tokens < 2 {
		return 0, false
	}
	return (s.Last - s.First).Seconds() / float64(s.Tokens-1), true
}

// Streamer is a Sender whose answers may come text by text.
type Streamer interface {
	Sender
	// Streamed is the times of the last answer, the caller's until the next Send;
	// ok is false where it did not come text by text.
	Streamed() (s Stream, ok bool)
}

// Time is one of the times of an answer.
type Time int

// The times of an answer. Latency and FirstToken count from the time at which the
// request was to be sent, the others from text to text.
const (
	Latency     Time = iota // to the end of the answer
	FirstToken              // to the first text
	PerToken                // of a token behind the first, Stream.PerToken
	Gap                     // between two texts
	FirstOutput             // to the first text behind the reasoning
)

// streams are the times of a window's streams; nil where there are none.
type streams struct {
	tokens    int64
	uncounted bool // by a service, of some answer
	thought   bool // some answer began with reasoning
	input     int64
	cached    int64
	reasoning int64
	times     [FirstOutput + 1]*hdrhistogram.PackedHistogram
	least     [FirstOutput + 1]*hdrhistogram.PackedHistogram // as Window.Least, of those that count from the intended time
}

func newStreams() *streams {
	s := &streams{}
	for t := FirstToken; t <= FirstOutput; t++ {
		s.times[t] = histogram()
	}
	s.least[FirstToken], s.least[FirstOutput] = histogram(), histogram()
	return s
}

// add records an answer that was sent so long after it was to be, and of whose times the
// client's lateness caused at most delay.
func (s *streams) add(lag, delay time.Duration, a Stream) {
	s.tokens += int64(a.Tokens)
	s.uncounted = s.uncounted || !a.Counted
	s.input, s.cached, s.reasoning = s.input+int64(a.Input), s.cached+int64(a.Cached), s.reasoning+int64(a.Reasoning)
	put(s.times[FirstToken], lag+a.First)
	put(s.least[FirstToken], lag+a.First-delay)
	if a.FirstOutput > 0 {
		put(s.times[FirstOutput], lag+a.FirstOutput)
		put(s.least[FirstOutput], lag+a.FirstOutput-delay)
	}
	s.thought = s.thought || a.FirstOutput > a.First || a.FirstOutput == 0
	if seconds, ok := a.PerToken(); ok {
		put(s.times[PerToken], time.Duration(seconds*float64(time.Second)))
	}
	for _, gap := range a.Gaps {
		put(s.times[Gap], gap)
	}
}

func (s *streams) merge(o *streams) {
	s.tokens += o.tokens
	s.uncounted = s.uncounted || o.uncounted
	s.thought = s.thought || o.thought
	s.input, s.cached, s.reasoning = s.input+o.input, s.cached+o.cached, s.reasoning+o.reasoning
	for t := FirstToken; t <= FirstOutput; t++ {
		s.times[t].Merge(o.times[t])
		if s.least[t] != nil {
			s.least[t].Merge(o.least[t])
		}
	}
}

// Tokens is how many there were in right answers, and counted whether the service
// counted them all; 0 where answers do not come text by text.
func (w *Window) Tokens() (n int64, counted bool) {
	if w.streams == nil {
		return 0, false
	}
	return w.streams.tokens, !w.streams.uncounted
}

// OutputThroughput is tokens of right answers a second; 0 where answers do not come
// text by text.
func (w *Window) OutputThroughput() float64 {
	tokens, _ := w.Tokens()
	return w.perSecond(float64(tokens))
}

// Reasoned reports whether answers began with a model's reasoning, so that the first
// token is not the first of the answer.
func (w *Window) Reasoned() bool { return w.streams != nil && w.streams.thought }

// Shares are the tokens of a request on average, which share of them the service had in
// its cache, and which share of the tokens that it made was reasoning; 0 where it does
// not say.
func (w *Window) Shares() (input, cached, reasoning float64) {
	if s := w.streams; s != nil && w.Good > 0 {
		input = float64(s.input) / float64(w.Good)
		cached = float64(s.cached) / float64(max(1, s.input))
		reasoning = float64(s.reasoning) / float64(max(1, s.tokens))
	}
	return input, cached, reasoning
}

// times are what was recorded of a time; nil: nothing.
func (w *Window) times(of Time) *hdrhistogram.PackedHistogram {
	switch {
	case of == Latency:
		return w.Latency
	case w.streams == nil:
		return nil
	}
	return w.streams.times[of]
}

// within reports whether an answer's own times are all within bounds.
func within(bounds map[Time]time.Duration, latency, lag time.Duration, a *Stream) bool {
	for of, most := range bounds {
		switch {
		case of == Latency && latency > most:
			return false
		case of == Latency || a == nil:
		case of == FirstToken && lag+a.First > most:
			return false
		case of == FirstOutput && lag+a.FirstOutput > most:
			return false
		case of == PerToken:
			if seconds, ok := a.PerToken(); ok && seconds > most.Seconds() {
				return false
			}
		case of == Gap:
			for _, gap := range a.Gaps {
				if gap > most {
					return false
				}
			}
		}
	}
	return true
}
