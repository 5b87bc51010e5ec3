package measure

import (
	"cmp"
	"slices"
)

// A Kind is a kind of workload: what its runs measure, and which questions they can
// answer. Analyses, tables, figures, prices and advice read these fields and never
// test the name. To add a kind, declare one value in a new file, such as train.go, and
// add one line to kinds.
type Kind struct {
	Name     string
	Measures []Measure // in display order
	// Main lists the figures of a log that are analysed as curves; nil means all.
	Main []string
	// Trains reports whether runs have steps, epochs and targets, and therefore a
	// training throughput, a speedup and times to targets.
	Trains bool
	// Exchanges is the kind of the benchmark that measures what workers exchange in a
	// step; "" if they exchange nothing.
	Exchanges string
	// PerWorker reports whether the work per worker is constant, as in weak scaling,
	// even if no key says so.
	PerWorker bool
	// Loads reports whether measures belong to a load, which a log's name may state.
	Loads bool
	// Worker is the word for a worker; "" means "worker".
	Worker string

	// Advises is the measure that advise uses to recommend a worker count; "" means
	// that --measure is required. A training's times to targets take precedence.
	Advises string
	// Clock is the measure of the seconds that are paid for; "" if only whole jobs
	// have a price.
	Clock string
	// Rate is the measure of the largest rate within a limit; "" for kinds without one.
	// advise --rate uses it, and the price of a million answers is calculated at it.
	Rate string
}

var kinds = []Kind{
	train,
	collective,
	serve,
	preprocess,
}

// defaultKind is the kind of runs that do not record one.
const defaultKind = "train"

// KindOf returns the kind with the given name; "" means training. An undeclared kind
// has a name but no measures and answers no questions.
func KindOf(name string) Kind {
	name = cmp.Or(name, defaultKind)
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Name: name}
}

// Has reports whether runs of the kind may have the measure.
func (k Kind) Has(name string) bool {
	return slices.ContainsFunc(ForKind(k.Name), func(m Measure) bool { return m.Name == name })
}

// Like reports whether runs of both kinds are analysed together: runs of any kind that
// have a throughput are analysed like trainings.
func (k Kind) Like(other Kind) bool {
	return k.Name == other.Name || k.Trains && other.Has(Throughput)
}

// WorkerName returns the word for a worker: "worker" or "replica".
func (k Kind) WorkerName() string { return cmp.Or(k.Worker, "worker") }

// Declare adds measures to a kind for a test; undo removes them.
func Declare(kind string, list ...Measure) (undo func()) {
	before := kinds
	k := KindOf(kind)
	k.Measures = slices.Concat(k.Measures, list)
	kinds = append(slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k.Name == kind }), k)
	placed.Store(nil)
	return func() {
		kinds = before
		placed.Store(nil)
	}
}
