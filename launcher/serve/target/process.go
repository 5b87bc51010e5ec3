package target

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// A Local is a model that this process computes itself.
type Local interface {
	Describe() oip.Model
	// Prepare makes ready to compute the outputs of some requests' inputs, again and
	// again: call does, and they are valid until it is called next; end frees what it
	// needs. The inputs stay as they are until then. Several goroutines may each prepare
	// and call at once.
	Prepare(requests [][]oip.Array) (call func(request int) ([]oip.Array, error), end func(), err error)
}

// InProcess asks a model of this process: the same inputs as of a server, and the
// answers are held to the first in the same way. Nothing is encoded or sent.
func InProcess(m Local, in Inputs) (*Question, error) {
	described := Model{Model: m.Describe()}
	requests, known, err := described.requests(in)
	if err != nil {
		return nil, err
	}
	p := &process{Known: known, model: m}
	for _, inputs := range requests {
		var list []oip.Array
		for _, d := range inputs {
			list = append(list, oip.Array{Port: d.Port, Bytes: d.raw})
		}
		p.requests = append(p.requests, list)
	}
	// A model that computes cannot be interrupted: there is nothing to wait for.
	never := time.Now().Add(24 * time.Hour)
	if err := p.learn([]string{"the model"}, never, func(string) (loadtest.Sender, error) { return p.dial(p.requests[:1]) }); err != nil {
		return nil, fmt.Errorf("the first answers: %w", err)
	}
	return &Question{Dial: p.Dial, Varies: p.Varies}, nil
}

// process is a model, and what it is asked.
type process struct {
	Known
	model    Local
	requests [][]oip.Array // computed in turn
	turn     atomic.Uint64
}

func (p *process) Dial() (loadtest.Sender, error) { return p.dial(p.requests) }

func (p *process) dial(requests [][]oip.Array) (loadtest.Sender, error) {
	call, end, err := p.model.Prepare(requests)
	if err != nil {
		return nil, err
	}
	return &caller{of: p, requests: len(requests), call: call, end: end}, nil
}

// caller is one of those that ask at once.
type caller struct {
	of       *process
	requests int
	call     func(request int) ([]oip.Array, error)
	end      func()
	body     []byte
}

// Send computes once. What takes longer than the deadline is computed to its end, and
// late.
func (c *caller) Send(deadline time.Time) error {
	_, request := next(&c.of.turn, 1, c.requests)
	outputs, err := c.call(request)
	if err != nil {
		return err
	}
	late := time.Now().After(deadline)
	c.body = c.body[:0]
	for _, o := range outputs {
		c.body = append(c.body, o.Bytes...)
	}
	err = c.of.right(request, c.body, func(room *share) (a answer, err error) {
		for _, array := range outputs {
			tensor := oip.Tensor{Name: array.Name, Datatype: array.Datatype, Shape: array.Shape}
			o, err := newOutput(tensor, append([]byte{}, array.Bytes...), room)
			if err != nil {
				return a, fmt.Errorf("output %s: %w", array.Name, err)
			}
			a.outputs = append(a.outputs, o)
		}
		return a, nil
	})
	if err == nil && late {
		err = fmt.Errorf("no answer: %w", os.ErrDeadlineExceeded)
	}
	return err
}

func (c *caller) Close() error {
	c.end()
	return nil
}
