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

// Known is the right answer to each of some requests: what is wanted of it, or else the
// first one that is as the model describes its outputs.
type Known struct {
	// Varies: the first two answers to one request differ, so that of later ones only
	// names, types and shapes are checked.
	Varies bool

	model     string
	ports     []oip.Port // of the model's outputs for a request; −1 is any size
	tolerance float64    // 0: by datatype
	wants     [][]want   // by request; nil: nothing is
	first     []atomic.Pointer[reference]
	kept      *atomic.Int64 // bytes of the first answers, at most mostKept
}

// A reference is the first right answer to a request.
type reference struct {
	body    []byte
	outputs []output // what it says
}

// An answer is what a server says.
type answer struct {
	model   string // "": it does not say
	outputs []output
}

// A differentError is an answer that says something else than the known one.
type differentError string

func (e differentError) Error() string { return string(e) }

// right is nil for a right answer to a request, of which most are equal to the first,
// byte by byte; read reads the others. Several goroutines may ask.
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

// keep makes an answer the first one to its request, unless another goroutine was
// earlier.
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

// learn asks every replica for the first request twice, and takes the first answer as the
// known one. Replicas that answer differently are an error; with answers that are
// wanted, those are wrong ones, which the load counts.
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

// fits says how outputs are not those that the model describes.
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
