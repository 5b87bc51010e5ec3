// Package prompts makes requests to a language model: from a dataset, with drawn lengths, or from a trace.
// Sending one request over and over would measure the service's prefix cache.
//
// A template, such as the study's payload, gives every request its other fields. Its "messages" or "prompt"
// is replaced, and "max_tokens" if the length of the answer is given.
package prompts

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Turn is one question of a session.
type Turn struct {
	Text   string
	Answer string // the dataset's answer; if "", the service's own answer becomes part of the session
	Output int    // tokens to ask for; 0: as the template says
}

// A maker makes the turns of the n-th session, from 0.
type maker interface {
	session(n uint64, scale scale) []Turn
	// turns returns the mean number of turns of a session.
	turns() float64
}

// A scale converts tokens into the words that make them. The zero value takes a word for a token.
type scale struct {
	perWord  float64 // tokens per word; 0: 1
	overhead float64 // tokens of a request without words, such as those of a chat template
}

// words returns the words of a text that is the only one of a request, or a part of one.
func (s scale) words(tokens float64) int {
	if s.perWord > 0 {
		tokens /= s.perWord
	}
	return max(int(tokens+0.5), 0)
}

// A Source makes sessions. Several goroutines may use it.
type Source struct {
	spec     study.PromptSpec
	maker    maker
	template *template
	scale    scale
	next     atomic.Uint64
}

// Open reads the files of the prompts.
func Open(p study.Prompts, payload []byte, seed uint64) (*Source, error) {
	s := &Source{spec: p.Of()}
	var err error
	if s.template, err = newTemplate(payload); err != nil {
		return nil, fmt.Errorf("workload.payload: %w", err)
	}
	switch {
	case s.spec.Trace != "":
		s.maker, err = readTrace(s.spec.Trace, seed)
	case s.spec.File != "":
		s.maker, err = readDataset(s.spec.File, s.spec)
	default:
		s.maker = &synthetic{spec: s.spec, seed: seed}
	}
	if err != nil {
		return nil, fmt.Errorf("workload.prompts: %w", err)
	}
	return s, nil
}

// Session begins the next session. No number is used twice, so synthetic prompts never repeat, not even in
// another load of the run.
func (s *Source) Session() *Session {
	return &Session{of: s, turns: s.maker.session(s.next.Add(1)-1, s.scale)}
}

// Rewind makes a trace start from its first request again. It does not affect other prompts.
func (s *Source) Rewind() {
	if _, ok := s.maker.(*trace); ok {
		s.next.Store(0)
	}
}

// Turns returns the mean number of turns of a session.
func (s *Source) Turns() float64 { return s.maker.turns() }

// Times returns when a trace's requests came, in seconds from the first; nil for other prompts.
func (s *Source) Times() []float64 {
	if t, ok := s.maker.(*trace); ok {
		return t.times
	}
	return nil
}

// Lengths returns the distributions of input and output tokens that synthetic prompts ask for; those of other
// prompts and of sessions, whose inputs grow, are not set.
func (s *Source) Lengths() (input, output study.TokenLength) {
	if s.spec.Turns < 2 {
		input = s.spec.Input
	}
	return input, s.spec.Output
}

const (
	// Calibrate asks with a quarter of the words and with all of them: as many as the requested input tokens, within
	// these bounds. Longer requests might not fit the model's context.
	fewestWords, mostWords = 40, 288
	// longProbes is the number of requests with all words, since words differ in tokens.
	longProbes = 3
	// probeAnswer is the number of tokens of their answers: a single one may have no text.
	probeAnswer = 8
)

// Calibrate measures how many tokens a word and a request without words have for the service, so that
// prompts get the lengths asked for. ask posts a body and returns the number of input tokens that the service
// counted; 0 if it does not count them, which leaves a word for a token.
func (s *Source) Calibrate(ask func(body []byte) (tokens int, err error)) error {
	if s.spec.File != "" {
		return nil
	}
	mean, _ := s.spec.Input.Moments()
	long := int(min(max(mean, fewestWords), mostWords))
	short := long / 4
	var few, many float64
	for i := range longProbes + 1 {
		words := long
		if i == 0 {
			words = short
		}
		n, err := ask(s.template.body([]message{{"user", text(random(0, uint64(1<<60+i)), words)}}, probeAnswer))
		if err != nil || n == 0 {
			return err
		}
		if i == 0 {
			few = float64(n)
		} else {
			many += float64(n) / longProbes
		}
	}
	if perWord := (many - few) / float64(long-short); perWord > 0 {
		s.scale = scale{perWord: perWord, overhead: max(few-perWord*float64(short), 0)}
	}
	return nil
}

// A Session holds the turns of one caller, who asks them in order.
type Session struct {
	of      *Source
	turns   []Turn
	asked   int
	history []message
}

// Ask returns the body of the next request. ok is false after the last turn.
func (s *Session) Ask() (body []byte, ok bool) {
	if s.asked >= len(s.turns) {
		return nil, false
	}
	turn := s.turns[s.asked]
	s.asked++
	s.history = append(s.history, message{"user", turn.Text})
	return s.of.template.body(s.history, turn.Output), true
}

// Answer records the service's answer to the last request.
func (s *Session) Answer(text string) {
	if s.asked < len(s.turns) {
		if own := s.turns[s.asked-1].Answer; own != "" {
			text = own
		}
		s.history = append(s.history, message{"assistant", text})
	}
}

// More reports whether the session has another turn, and how long the caller thinks before it.
func (s *Session) More() (think time.Duration, ok bool) {
	return s.of.spec.Think, s.asked < len(s.turns)
}

// mostFile bounds a file of prompts: 1 GiB.
const mostFile = 1 << 30

// readFile reads a dataset or trace, which must be a regular file.
func readFile(path string) ([]byte, error) {
	b, err := sharedfs.ReadFile(path, mostFile)
	if err == nil && len(bytes.TrimSpace(b)) == 0 {
		err = fmt.Errorf("%s is empty", filepath.Base(path))
	}
	return b, err
}

// Check reports problems with the file of the prompts, without keeping its content.
func Check(p study.Prompts) error {
	spec := p.Of()
	var err error
	switch {
	case spec.Trace != "":
		_, err = readTrace(spec.Trace, 0)
	case spec.File != "":
		_, err = readDataset(spec.File, spec)
	}
	return err
}

// CheckTemplate reports what is wrong with the file of a payload as the template of prompts.
func CheckTemplate(path string) error {
	payload, err := readFile(path)
	if err == nil {
		_, err = newTemplate(payload)
	}
	return err
}

// random returns the random numbers of one session.
func random(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n^0x9c0ffee)) }

var errNoPlace = errors.New(`has neither "messages" nor "prompt" to put the prompts into`)
