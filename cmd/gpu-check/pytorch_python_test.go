//go:build python

package main

import (
	"context"
	"io"
	"testing"
)

// PyTorch trains in each way on a CPU, or says why not (Debian's lacks a compiler). The rates are
// not checked.
func TestPyTorchWays(t *testing.T) {
	c := &checker{options: options{Log: io.Discard}, python: "/usr/bin/python3"}
	list, err := c.pytorchWays(context.Background(), "cpu", workload{"cnn", 4}, true, 0.02)
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
	if len(list) != 9 || len(seen) != 9 {
		t.Errorf("%d ways, %d of them different; want 9: two layouts and a compiled one, in three precisions", len(list), len(seen))
	}
}
