package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// llamaFactory reads trainer_log.jsonl of LLaMA-Factory. The throughput in it is not used: it is
// the tokens of all ranks, padding included, divided by the time since the start, which includes
// start-up; after a restart it also counts the tokens from before. Rates are instead computed
// from the tokens and the time between the first and the last loss since the last start. The
// log's clock counts whole seconds.
var llamaFactory = Extractor{
	Name:  "llama-factory",
	Kind:  "train",
	Apart: true,
	Reads: `trainer_log.jsonl: {"current_steps": N, "total_steps": N, "loss": X, …, "elapsed_time": "H:MM:SS", …, "total_tokens": N}`,
	read:  readLLaMAFactory,
}

// llamaMark is the progress of a training at one line: steps, tokens, and seconds since its
// start.
type llamaMark struct{ steps, tokens, seconds float64 }

// llamaRun is the parser's state while it reads one log of LLaMA-Factory.
type llamaRun struct {
	*stepLog
	begin, end llamaMark
	counted    Value  // the latest total_tokens
	wrong      string // why the rates of the log contradict its tokens and times; "" if they do not
}

func readLLaMAFactory(l *log, r io.Reader) {
	s := &llamaRun{stepLog: newStepLog(l, &stepFormat{program: "LLaMA-Factory", starting: 1})}
	if l.each(r, s.read); s.line == 0 {
		return
	}
	s.from.note(l)
	s.means()
	s.losses()
}

func (s *llamaRun) read(ln line) {
	text := []byte(ln.text)
	if !bytes.HasPrefix(text, []byte(`{"current_steps":`)) {
		return
	}
	if !json.Valid(text) {
		s.l.fail(ln.number, "not JSON: the line is damaged")
	}
	m := s.l.object(value{bytes.TrimSpace(text), ln.number})
	steps := m.count("current_steps")
	if x := m.of["eval_loss"]; !x.null() {
		s.line = ln.number
		s.evaluationOf(ln.number, "step", steps.Number, string(x.text))
		return
	}
	loss := m.of["loss"]
	if loss.null() {
		return // the line at the end, written after the last checkpoint
	}
	if ok := s.takes(ln, int(steps.Number)); !ok {
		return
	}
	s.lossOf(ln.number, "step", steps.Number, string(loss.text))
	s.mark(m, steps.Number)
}

// mark records the progress that a line states.
func (s *llamaRun) mark(m members, steps float64) {
	at := llamaMark{steps: steps}
	var ok bool
	if at.seconds, ok = s.l.llamaSeconds(m.line, m.of["elapsed_time"]); !ok {
		return
	}
	tokens, ok := m.number("total_tokens")
	if ok {
		at.tokens, s.counted = tokens.Number, tokens
	}
	if at.seconds < s.end.seconds && s.lines > 1 {
		s.l.note("the time goes back in line %d: a restart, and rates are those after it", m.line)
		s.lines = 1
	}
	if s.lines == 1 {
		s.begin = at
	}
	s.end = at
	s.stated(m, at)
}

// stated compares the rate that a line states, the tokens over the time since the start, with these.
func (s *llamaRun) stated(m members, at llamaMark) {
	rate, ok := m.number("throughput")
	if own := at.tokens / at.seconds; s.wrong == "" && ok && rate.Number > 0 && own > 0 && finite(own) && !within(rate.Number, own, 1.05+1/at.seconds) {
		s.wrong = fmt.Sprintf("line %d states %.6g tokens/s, and its %.10g tokens in %.4g s are %.6g", m.line, rate.Number, at.tokens, at.seconds, own)
	}
}

// means adds the mean step time and the mean rate of tokens since the last start.
func (s *llamaRun) means() {
	seconds := s.end.seconds - s.begin.seconds
	rate := func(name, unit, better string, x, plusMinus float64, note string) {
		f := metrics.Figure{Name: name, Value: x, Unit: unit, Better: better, PlusMinus: &plusMinus, PlusMinusIs: "one second, the resolution of the log's clock", Note: note}
		if s.wrong != "" {
			f = s.l.contradicted(f, s.wrong)
		}
		s.l.add(metrics.Event{Figure: &f}, 1)
	}
	const between = "between the first and the last loss since the last start, evaluations and checkpoints included"
	switch steps, tokens := s.end.steps-s.begin.steps, s.end.tokens-s.begin.tokens; {
	case !(seconds > 1 && steps > 0):
		s.l.note("the losses are less than 2 s apart, or one: no rate is made of them")
	default:
		rate(stepSeconds, "s", "", seconds/steps, 1/steps, "the mean "+between)
		if tokens > 0 && s.counted.Line > 0 {
			rate(tokensPerSecond, "tokens/s", "higher", tokens/seconds, tokens/seconds/seconds, "of all ranks, padding included, "+between)
		} else {
			s.l.note("%s needs include_num_input_tokens_seen in LLaMA-Factory's settings", tokensPerSecond)
		}
	}
}

// llamaSeconds parses elapsed_time and returns it in seconds; ok is false if it is missing.
func (l *log) llamaSeconds(ln int, v value) (seconds float64, ok bool) {
	if v.null() {
		return 0, false
	}
	text := strings.Trim(string(v.text), `"`)
	r, _ := number.Read(text)
	if !r.Clock || r.Number != text || strings.Count(text, ":") != 2 {
		l.fail(ln, "elapsed_time is %s; want H:MM:SS", clip(string(v.text)))
	}
	return r.Value, true
}
