package target

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// A Local is a model that this process computes.
type Local interface {
	Describe() oip.Model
	// Prepare returns call, which computes the outputs of one of the requests and may be called repeatedly. The
	// outputs are valid until the next call. end frees the resources; the inputs must not change until then.
	// Several goroutines may each prepare and call concurrently.
	Prepare(requests [][]oip.Array) (call func(request int) ([]oip.Array, error), end func(), err error)
}

// InProcess queries a model in this process with the inputs that a server would get, and checks its answers in
// the same way. Nothing is encoded or sent.
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
	// A computation in this process cannot be interrupted, so the deadline is never reached.
	never := time.Now().Add(24 * time.Hour)
	if err := p.learn([]string{"the model"}, never, func(string) (loadtest.Sender, error) { return p.dial(p.requests[:1]) }); err != nil {
		return nil, fmt.Errorf("the first answers: %w", err)
	}
	return &Question{Dial: p.Dial, Varies: p.Varies}, nil
}

// A process is a model that this process computes, with the requests to it.
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

// A caller is one of the concurrent clients of a local model.
type caller struct {
	of       *process
	requests int
	call     func(request int) ([]oip.Array, error)
	end      func()
	body     []byte
}

// Send computes once. A computation that exceeds the deadline runs to its end and counts as late.
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
