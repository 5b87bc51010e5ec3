package measure

import (
	"cmp"
	"slices"
)

// A Kind is a kind of workload: what its runs measure, and which questions have an answer
// for them. Analyses, tables, figures, prices and advice ask these fields and never look at
// the name. A new kind is one value in a file of its own, such as train.go, and one line in
// kinds.
type Kind struct {
	Name     string
	Measures []Measure // in the order in which a reader wants them
	// Main are the figures in a log of which curves are made; nil: any.
	Main []string
	// Trains reports whether runs have steps, epochs and targets, and so a throughput of
	// training, a speedup and times to targets.
	Trains bool
	// Exchanges is the kind of benchmark whose runs measure what workers exchange in a
	// step; "": they exchange nothing.
	Exchanges string
	// PerWorker reports whether the work of a worker stays the same however many there
	// are, as in weak scaling, without a key that says it.
	PerWorker bool
	// Loads reports whether measures are of a load, which the name of a log may state.
	Loads bool
	// Worker is what a worker is called; "": "worker".
	Worker string

	// Advises is the measure by which advise recommends a number of workers; "": it needs
	// --measure. A training's times to targets go before it.
	Advises string
	// Clock is the measure of the seconds of a run that are paid for; "": only jobs have a
	// price.
	Clock string
	// Rate is the measure of the largest rate within a limit: advise --rate recommends
	// workers by it, and the price is of a million answers at it. "": none.
	Rate string
}

var kinds = []Kind{
	train,
	collective,
	serve,
	preprocess,
}

// defaultKind is that of runs which do not record one.
const defaultKind = "train"

// KindOf returns the kind of that name; "" is a training. A kind that nobody declares has
// no measures and no answers, only its name.
func KindOf(name string) Kind {
	name = cmp.Or(name, defaultKind)
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Name: name}
}

// Has reports whether runs of the kind may have the measure.
func (k Kind) Has(name string) bool {
	return slices.ContainsFunc(Of(k.Name), func(m Measure) bool { return m.Name == name })
}

// Like reports whether runs of the other kind are asked together with those of this one:
// runs with a throughput are asked like trainings.
func (k Kind) Like(other Kind) bool {
	return k.Name == other.Name || k.Trains && other.Has(Throughput)
}

// WorkerName is what a worker is called: "worker" or "replica".
func (k Kind) WorkerName() string { return cmp.Or(k.Worker, "worker") }

// Declare adds measures to a kind of workload, and undo takes them out again: for
// kinds and measures that live in a test.
func Declare(kind string, list ...Measure) (undo func()) {
	before := kinds
	k := KindOf(kind)
	k.Measures = slices.Concat(k.Measures, list)
	kinds = append(slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k.Name == kind }), k)
	return func() { kinds = before }
}
