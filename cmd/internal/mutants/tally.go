package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A tally counts the outcomes of mutants by package.
type tally struct {
	by         map[string]*counts
	equivalent int // drawn and not tested
	invalid    int // drawn and not tested, because they do not compile
}

type counts struct{ killed, survived int }

func (t *tally) add(pkg string, o outcome) {
	if t.by == nil {
		t.by = map[string]*counts{}
	}
	if t.by[pkg] == nil {
		t.by[pkg] = &counts{}
	}
	switch o.verdict {
	case killed:
		t.by[pkg].killed++
	case survived:
		t.by[pkg].survived++
	}
}

func (t *tally) total() counts {
	var sum counts
	for _, c := range t.by {
		sum.killed += c.killed
		sum.survived += c.survived
	}
	return sum
}

func (c counts) tested() int { return c.killed + c.survived }

func (t *tally) print(w io.Writer) {
	fmt.Fprintln(w)
	for _, pkg := range slices.Sorted(maps.Keys(t.by)) {
		fmt.Fprintf(w, "%3d of %3d killed  %s\n", t.by[pkg].killed, t.by[pkg].tested(), pkg)
	}
	sum := t.total()
	if tested := sum.tested(); tested > 0 {
		low, high := interval(sum.killed, tested)
		fmt.Fprintf(w, "%3d of %3d killed: %.0f %%, 95 %% interval %.0f to %.0f %%; drawn as well: %d equivalent, %d that do not compile\n",
			sum.killed, tested, 100*float64(sum.killed)/float64(tested), 100*low, 100*high, t.equivalent, t.invalid)
	}
}

// interval returns the exact 95 % interval of a probability if k of n trials
// succeeded (Clopper & Pearson, Biometrika 26, 1934).
func interval(k, n int) (low, high float64) {
	low, high = 0, 1
	if k > 0 {
		low = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(0.025)
	}
	if k < n {
		high = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.975)
	}
	return low, high
}
