// Package pointkey names those keys of a point that say nothing of what it measures,
// for the two that ask: what makes a point another one (launcher/study), and what
// makes a curve another one (metrics/scaling). It is pure.
package pointkey

// Bounds limit a run and do not change what it measures: raising a time limit
// keeps the results that are there. In a sweep they count like any other key.
func Bounds() []string {
	return []string{"resources.time", "resources.memory", Exclusive}
}

// Exclusive is the key of whether runs had whole nodes. Runs of a scheduler have it
// even where the study leaves it out.
const Exclusive = "resources.exclusive"

// Targets is the key of the accuracies whose time is asked for. It is a question
// to a run that has its evaluations, whenever it is asked: a study that adds a
// target keeps its results.
const Targets = "workload.targets"

// MFU, its peak and what is computed again are questions, too: of what share of a
// device's peak a run used, by which convention.
const (
	MFU       = "workload.mfu"
	MFUPeak   = "workload.peak_tflops"
	Recompute = "workload.recompute" // for the HFU

	// What a plan answers them with.
	FLOPsPerToken         = "mfu.flops_per_token"
	HardwareFLOPsPerToken = "mfu.hardware_flops_per_token" // with what is computed again; absent: not known
)

// Sample is the key of what a sample is, by which rates have their unit, and SampleTokens
// how many tokens the plan knows that one has.
const (
	Sample       = "workload.sample"
	SampleTokens = "sample.tokens"
)

// Utilisation are the keys by which a study asks for an MFU.
func Utilisation() []string { return []string{MFU, MFUPeak, Recompute} }

// Sayings are the keys by which a study says what to make of its runs' figures; a point
// has only those that are given.
func Sayings() []string { return append(Utilisation(), Sample) }

// Questions are keys that ask of a run and change nothing in it.
func Questions() []string {
	return append([]string{Targets, FLOPsPerToken, HardwareFLOPsPerToken, SampleTokens}, Sayings()...)
}

// Readings are what a command's output is read as. [[extract]] is one more, and
// no key of a point.
func Readings() []string { return []string{"command.extract", "command.log", "command.columns"} }
