package gpucheck

import (
	"fmt"
	"math"
	"time"
)

// This file defines checks of results that a test and the GPU check both run. A
// *testing.T is a T, so `go test` runs a check against the fakes of CUDA's
// libraries. Run runs the same function in a program, on a GPU, and keeps what a
// failure needs to be understood later: the first values that differ, and the
// kernel launch that wrote them.

// A Check is one function that a GPU, or the fake of one, must pass.
type Check struct {
	Name     string // "kernels/sgd": its group, then its own name
	Estimate time.Duration
	PyTorch  bool // needs the interpreter in PythonVariable, with PyTorch
	NCCL     bool
	Run      func(T)
}

// PythonVariable names the environment variable with the interpreter that has
// PyTorch.
const PythonVariable = "SCALEBENCH_GPU_CHECK_PYTHON"

// T is the part of *testing.T that checks use.
type T interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Logf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A Launch is the call that put a kernel, or a product of cuBLAS, on a stream.
type Launch struct {
	Kernel    string `json:"kernel"`
	Blocks    int64  `json:"blocks,omitempty"`
	Threads   int    `json:"threads_per_block,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

func (l Launch) String() string {
	if l.Blocks == 0 {
		return l.Kernel + " " + l.Arguments
	}
	return fmt.Sprintf("%s<<<%d, %d>>> %s", l.Kernel, l.Blocks, l.Threads, l.Arguments)
}

// A Difference is one array that is not as expected.
type Difference struct {
	What      string  `json:"what"`
	Shape     string  `json:"shape"`
	Elements  int     `json:"elements"`
	Wrong     int     `json:"wrong"` // how many of the elements
	First     []Value `json:"first"` // the first wrong elements, at most mostValues
	Tolerance string  `json:"tolerance"`
	Launch    *Launch `json:"launch,omitempty"` // launch that wrote the array; nil: unknown
}

// A Value is one wrong element. Values are text because JSON has no NaN.
type Value struct {
	Index int    `json:"index"`
	Got   string `json:"got"`
	Want  string `json:"want"`
}

// mostValues is the number of wrong elements kept of an array.
const mostValues = 4

// Near compares numbers with a reference: each may differ by tolerance times the
// larger of 1 and the expected magnitude.
func Near[G, W float32 | float64](t T, d Difference, got []G, want []W, tolerance float64) bool {
	t.Helper()
	d.Tolerance = fmt.Sprintf("%g of the larger of 1 and the expected magnitude", tolerance)
	return compare(t, d, got, want, func(g G, w W) bool {
		return math.Abs(float64(g)-float64(w)) <= tolerance*max(math.Abs(float64(w)), 1)
	})
}

// Same compares values that must be equal.
func Same[V comparable](t T, d Difference, got, want []V) bool {
	t.Helper()
	d.Tolerance = "none"
	return compare(t, d, got, want, func(g, w V) bool { return g == w })
}

func compare[G, W any](t T, d Difference, got []G, want []W, equal func(G, W) bool) bool {
	t.Helper()
	if d.Elements = len(want); d.Shape == "" {
		d.Shape = fmt.Sprint(len(want))
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", d.What, len(got), len(want))
		return false
	}
	for i, w := range want {
		d.Add(i, got[i], w, equal(got[i], w))
	}
	if d.Wrong == 0 {
		return true
	}
	if r, ok := t.(interface{ differ(Difference) }); ok {
		r.differ(d)
	}
	t.Errorf("%s", d)
	return false
}

// Add adds an element, unless it is as expected.
func (d *Difference) Add(index int, got, want any, equal bool) {
	if equal {
		return
	}
	if d.Wrong++; len(d.First) < mostValues {
		d.First = append(d.First, Value{index, fmt.Sprint(got), fmt.Sprint(want)})
	}
}

func (d Difference) String() string {
	text := fmt.Sprintf("%s: %d of %d elements are wrong (shape %s, tolerance %s)", d.What, d.Wrong, d.Elements, d.Shape, d.Tolerance)
	for _, v := range d.First {
		text += fmt.Sprintf("; element %d is %s, want %s", v.Index, v.Got, v.Want)
	}
	if d.Launch != nil {
		text += "; written by " + d.Launch.String()
	}
	return text
}
