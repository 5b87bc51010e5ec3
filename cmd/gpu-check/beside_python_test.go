//go:build python

package main

import (
	"context"
	"io"
	"testing"
)

// PyTorch trains in each way on a CPU, or says why not: Debian's has no compiler. What
// the rates are is not looked at.
func TestPyTorchWays(t *testing.T) {
	c := &checker{options: options{Python: "/usr/bin/python3", Log: io.Discard}}
	list, err := c.pytorchWays(context.Background(), "../../"+programs, "cpu", "cnn", 8, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[way]bool{}
	for _, w := range list {
		if w.Median > 0 && !(w.Least > 0 && w.Least <= w.Median && w.Median <= w.Most) || w.Mode == "eager" && w.Why != "" {
			t.Errorf("%+v", w)
		}
		seen[way{Precision: w.Precision, Layout: w.Layout, Mode: w.Mode}] = true
	}
	if len(list) != 8 || len(seen) != 8 {
		t.Errorf("%d ways, %d of them different; want 8", len(list), len(seen))
	}
}
