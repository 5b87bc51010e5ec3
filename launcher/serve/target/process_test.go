package target

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// A doubling answers y = 2x in this process. change may modify each answer, by the number of calls before it.
type doubling struct {
	change func(call int, y []oip.Array) error
	calls  atomic.Int64
	open   atomic.Int64 // callers
}

func (*doubling) Describe() oip.Model {
	return oip.Model{Name: "double", Inputs: []oip.Port{{Name: "x", Datatype: "FP32", Shape: []int{-1, 3}}}, Outputs: []oip.Port{{Name: "y", Datatype: "FP32", Shape: []int{-1, 3}}}}
}

func (d *doubling) Prepare(requests [][]oip.Array) (func(int) ([]oip.Array, error), func(), error) {
	d.open.Add(1)
	return func(request int) ([]oip.Array, error) {
		inputs := requests[request]
		y := make([]byte, len(inputs[0].Bytes))
		for i := 0; i < len(y); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(inputs[0].Bytes[i:]))
			binary.LittleEndian.PutUint32(y[i:], math.Float32bits(2*v))
		}
		out := []oip.Array{{Port: oip.Port{Name: "y", Datatype: "FP32", Shape: inputs[0].Shape}, Bytes: y}}
		n := int(d.calls.Add(1)) - 1
		if d.change == nil {
			return out, nil
		}
		return out, d.change(n, out)
	}, func() { d.open.Add(-1) }, nil
}

// The model gets the inputs that a server would get, its answers are compared with the first one, and each caller
// is closed.
func TestInProcess(t *testing.T) {
	broken := errors.New("out of memory")
	for name, c := range map[string]struct {
		change       func(call int, y []oip.Array) error
		learn, later string
		varies       bool
	}{
		"right":      {},
		"error":      {change: func(int, []oip.Array) error { return broken }, learn: "the model: out of memory"},
		"later":      {change: func(n int, _ []oip.Array) error { return map[bool]error{n > 1: broken}[true] }, later: "out of memory"},
		"shape":      {change: func(_ int, y []oip.Array) error { y[0].Shape = []int{3, 2}; return nil }, learn: "output y is FP32 [3 2]; want FP32 [2 3]"},
		"size":       {change: func(_ int, y []oip.Array) error { y[0].Bytes = y[0].Bytes[4:]; return nil }, learn: "6 elements, but 5 came"},
		"name":       {change: func(_ int, y []oip.Array) error { y[0].Name = "z"; return nil }, learn: "the answer has no output y; it has z"},
		"another":    {change: func(n int, y []oip.Array) error { y[0].Bytes[3] ^= byte(n >> 1 << 7); return nil }, later: "element 0 of output y"},
		"no number":  {change: func(_ int, y []oip.Array) error { copy(y[0].Bytes, "\xff\xff\xff\xff"); return nil }, learn: "element 0 is NaN"},
		"it differs": {change: func(n int, y []oip.Array) error { y[0].Bytes[3] ^= byte(n << 7); return nil }, varies: true},
	} {
		d := &doubling{change: c.change}
		q, err := InProcess(d, Inputs{Batch: 2, Seed: 3})
		if c.learn != "" {
			if err == nil || !strings.Contains(err.Error(), c.learn) || !strings.HasPrefix(err.Error(), "the first answers: ") {
				t.Errorf("%s: %v, want %q", name, err, c.learn)
			}
		} else if err != nil || q.Varies != c.varies {
			t.Errorf("%s: %v, varies %v", name, err, q.Varies)
		} else {
			s, err := q.Dial()
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(s.Send(soon()), s.Close())
			if c.later == "" && err != nil || c.later != "" && (err == nil || !strings.Contains(err.Error(), c.later)) {
				t.Errorf("%s: then %v, want %q", name, err, c.later)
			}
		}
		if n := d.open.Load(); n != 0 {
			t.Errorf("%s: %d callers are open", name, n)
		}
	}
}

// A server and a model in this process get the same inputs.
func TestInProcessInputs(t *testing.T) {
	m := &Model{Model: (&doubling{}).Describe(), Server: oip.Server{Extensions: []string{oip.BinaryExtension}}}
	in := Inputs{Batch: 2, Seed: 3}
	p, err := m.Payload(in)
	if err != nil {
		t.Fatal(err)
	}
	sent := p.Bodies[0][p.JSONLength:]
	seen := 0
	_, err = InProcess(&doubling{change: func(_ int, y []oip.Array) error {
		for i := 0; i < len(sent); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(sent[i:]))
			if got := math.Float32frombits(binary.LittleEndian.Uint32(y[0].Bytes[i:])); got != 2*x {
				t.Errorf("y[%d] is %g; %g was sent", i/4, got, x)
			}
			seen++
		}
		return nil
	}}, in)
	if err != nil || seen != 12 {
		t.Errorf("%v, %d numbers", err, seen)
	}
	if _, err := InProcess(&doubling{}, Inputs{Batch: 0}); err == nil || !strings.Contains(err.Error(), "a batch of 0") {
		t.Errorf("a batch of 0: %v", err)
	}
}

// A right answer after the deadline is late.
func TestInProcessLate(t *testing.T) {
	q, err := InProcess(&doubling{}, Inputs{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(time.Now().Add(-time.Second)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := s.Send(soon()); err != nil {
		t.Errorf("then %v", err)
	}
}
