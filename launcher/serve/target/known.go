package target

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// Known holds the right answer to each request: the expected one from a file, or else the first answer that
// fits the model's description.
type Known struct {
	// Varies is set if the first two answers to one request differ. Then only names, types and shapes of later
	// answers are checked.
	Varies bool

	model     string
	ports     []oip.Port // the model's outputs for a request; −1 is any size
	tolerance float64    // 0 means the default of the datatype
	wants     [][]want   // expected outputs by request; nil if there are none
	first     []atomic.Pointer[reference]
	kept      *atomic.Int64 // bytes of the first answers, limited to mostKept
}

// A reference is the first right answer to a request.
type reference struct {
	body    []byte
	outputs []output // parsed from body
}

// An answer is a parsed answer.
type answer struct {
	model   string // "" if the server does not say
	outputs []output
}

// A differentError reports that an answer differs from the known one.
type differentError string

func (e differentError) Error() string { return string(e) }

// right returns nil for a right answer to a request. Most answers equal the first one byte by byte; read parses
// the others. It is safe for concurrent use.
func (k *Known) right(request int, body []byte, read func(*share) (answer, error)) error {
	first := k.first[request].Load()
	if first != nil && bytes.Equal(body, first.body) {
		return nil
	}
	room := newShare()
	defer room.end()
	a, err := read(room)
	if err == nil && a.model != "" && a.model != k.model {
		err = fmt.Errorf("the answer is of model %q; want %q", a.model, k.model)
	}
	if err == nil {
		err = k.fits(a.outputs)
	}
	if err == nil && k.wants != nil {
		for _, w := range k.wants[request] {
			if err = w.hold(a.outputs, k.tolerance); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if first == nil {
		if err := k.keep(request, body, a.outputs); err != nil {
			return err
		}
	}
	if k.wants != nil || k.Varies {
		return nil
	}
	return compare(a.outputs, k.first[request].Load().outputs, k.tolerance)
}

// keep stores the first answer to a request, unless another goroutine already did.
func (k *Known) keep(request int, body []byte, outputs []output) error {
	size := int64(len(body))
	for _, o := range outputs {
		size += o.cost(len(o.numbers) + len(o.exact))
	}
	if k.kept.Add(size) > mostKept {
		k.kept.Add(-size)
		return fmt.Errorf("the first answers to %d requests hold over %d MiB; take fewer samples, or a model with smaller outputs", len(k.first), mostKept>>20)
	}
	if !k.first[request].CompareAndSwap(nil, &reference{bytes.Clone(body), outputs}) {
		k.kept.Add(-size)
	}
	return nil
}

// learn sends the first request to every replica twice, and keeps the first answer as the known one. Replicas that
// answer differently are an error. With expected answers, learn ignores wrong ones: the load test counts them.
func (k *Known) learn(replicas []string, deadline time.Time, dial func(at string) (loadtest.Sender, error)) error {
	for i, at := range replicas {
		s, err := dial(at)
		if err != nil {
			return err
		}
		for range 2 {
			var differs differentError
			switch err = s.Send(deadline); {
			case errors.As(err, &differs) && k.wants != nil:
				err = nil
			case errors.As(err, &differs) && i == 0:
				k.Varies, err = true, nil
			case errors.As(err, &differs):
				err = fmt.Errorf("%s answers differently from %s: %w", at, replicas[0], err)
			case err != nil:
				err = fmt.Errorf("%s: %w", at, err)
			}
			if err != nil {
				break
			}
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// fits returns an error if outputs do not match the model's description.
func (k *Known) fits(outputs []output) error {
	byName := map[string]output{}
	for _, o := range outputs {
		if _, twice := byName[o.Name]; twice {
			return fmt.Errorf("output %s appears twice", o.Name)
		}
		byName[o.Name] = o
	}
	if len(outputs) == 0 {
		return errors.New("the answer has no outputs")
	}
	for _, want := range k.ports {
		o, ok := byName[want.Name]
		if !ok {
			return fmt.Errorf("the answer has no output %s; it has %s", want.Name, strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
		}
		fits := len(o.Shape) == len(want.Shape)
		for i := 0; fits && i < len(o.Shape); i++ {
			fits = want.Shape[i] == -1 || o.Shape[i] == want.Shape[i]
		}
		if !fits || o.Datatype != want.Datatype {
			return fmt.Errorf("output %s is %s %v; want %s %v", o.Name, o.Datatype, o.Shape, want.Datatype, want.Shape)
		}
	}
	return nil
}
