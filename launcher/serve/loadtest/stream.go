package loadtest

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Stream holds the times of one answer that arrived in pieces, as from a language model. Times count from
// when the request was sent.
type Stream struct {
	First time.Duration // to the first text, reasoning included (time to first token)
	// FirstOutput is the time to the first text after the model's reasoning; 0 if there was none.
	FirstOutput time.Duration
	Last        time.Duration // to the last text
	Gaps        []time.Duration
	// Tokens is the number of output tokens that the service reports, or else the number of texts. A text can
	// hold several tokens.
	Tokens  int
	Counted bool // the service reported Tokens
	// Input is the number of tokens of the request, and Cached how many of them the service took from its
	// cache. Reasoning is the part of Tokens before the answer. All as the service reports them.
	Input, Cached, Reasoning int
}

// PerToken returns the time per token after the first, (Last − First)/(Tokens − 1), in seconds. ok is false
// with fewer than two tokens.
func (s Stream) PerToken() (seconds float64, ok bool) {
	if s.Tokens < 2 {
		return 0, false
	}
	return (s.Last - s.First).Seconds() / float64(s.Tokens-1), true
}

// A Streamer is a Sender whose answers may arrive in pieces.
type Streamer interface {
	Sender
	// Streamed returns the times of the last answer, valid until the next Send. ok is false if the answer did
	// not arrive in pieces.
	Streamed() (s Stream, ok bool)
}

// A Time is one of the measured times of an answer.
type Time int

// The times of an answer. Latency, FirstToken and FirstOutput count from the scheduled send time.
const (
	Latency     Time = iota // to the end of the answer
	FirstToken              // to the first text
	PerToken                // per token after the first, see Stream.PerToken
	Gap                     // between two texts
	FirstOutput             // to the first text after the reasoning
)

// streams holds the times of a window's streamed answers.
type streams struct {
	tokens    int64
	uncounted bool // for some answer the service did not report the tokens
	thought   bool // some answer began with reasoning
	input     int64
	cached    int64
	reasoning int64
	times     [FirstOutput + 1]*hdrhistogram.PackedHistogram
	least     [FirstOutput + 1]*hdrhistogram.PackedHistogram // as Window.Least, for times that count from the scheduled send time
}

func newStreams() *streams {
	s := &streams{}
	for t := FirstToken; t <= FirstOutput; t++ {
		s.times[t] = histogram()
	}
	s.least[FirstToken], s.least[FirstOutput] = histogram(), histogram()
	return s
}

// add records an answer that was sent lag after its scheduled time. The client's lateness added at most delay
// to its times.
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

// Tokens returns the number of tokens in right answers, and whether the service counted them all. It is 0 if
// answers are not streamed.
func (w *Window) Tokens() (n int64, counted bool) {
	if w.streams == nil {
		return 0, false
	}
	return w.streams.tokens, !w.streams.uncounted
}

// OutputThroughput returns the tokens of right answers per second, or 0 if answers are not streamed.
func (w *Window) OutputThroughput() float64 {
	tokens, _ := w.Tokens()
	return w.perSecond(float64(tokens))
}

// Reasoned reports whether answers began with a model's reasoning, so that the first token does not belong to
// the answer itself.
func (w *Window) Reasoned() bool { return w.streams != nil && w.streams.thought }

// Shares returns the mean number of input tokens per request, the share of them that the service took from its
// cache, and the share of output tokens spent on reasoning. Values are 0 if the service does not report them.
func (w *Window) Shares() (input, cached, reasoning float64) {
	if s := w.streams; s != nil && w.Good > 0 {
		input = float64(s.input) / float64(w.Good)
		cached = float64(s.cached) / float64(max(1, s.input))
		reasoning = float64(s.reasoning) / float64(max(1, s.tokens))
	}
	return input, cached, reasoning
}

// times returns the histogram of a time, or nil if nothing was recorded.
func (w *Window) times(of Time) *hdrhistogram.PackedHistogram {
	switch {
	case of == Latency:
		return w.Latency
	case w.streams == nil:
		return nil
	}
	return w.streams.times[of]
}

// within reports whether all times of an answer are within their bounds.
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
