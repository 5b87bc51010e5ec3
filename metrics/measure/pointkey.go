package measure

// This file names the keys of a point that do not change what it measures. They
// take no part in a point's identity (launcher/study) or in telling curves apart
// (metrics/scaling).

// BoundKeys limit a run and do not change what it measures: raising a time limit
// keeps the results that are there. In a sweep they count like any other key.
func BoundKeys() []string {
	return []string{"resources.time", "resources.memory", ExclusiveKey}
}

// ExclusiveKey is the key of whether runs had whole nodes. Runs of a scheduler have it
// even where the study leaves it out.
const ExclusiveKey = "resources.exclusive"

// TargetsKey is the key of the accuracies whose time is asked for. It is a question
// to a run that has its evaluations, whenever it is asked: a study that adds a
// target keeps its results.
const TargetsKey = "workload.targets"

// MFUKey, its peak and what is computed again are questions, too: of what share of a
// device's peak a run used, by which convention.
const (
	MFUKey       = "workload.mfu"
	MFUPeakKey   = "workload.peak_tflops"
	RecomputeKey = "workload.recompute" // for the HFU

	// What a plan answers them with.
	FLOPsPerTokenKey         = "mfu.flops_per_token"
	HardwareFLOPsPerTokenKey = "mfu.hardware_flops_per_token" // with what is computed again; absent: not known
)

// SampleKey is the key of what a sample is, by which rates have their unit, and SampleTokens
// how many tokens the plan knows that one has.
const (
	SampleKey       = "workload.sample"
	SampleTokensKey = "sample.tokens"
)

// utilisationKeys are the keys by which a study asks for an MFU.
func utilisationKeys() []string { return []string{MFUKey, MFUPeakKey, RecomputeKey} }

// AnnotationKeys are the keys by which a study says what to make of its runs' figures; a point
// has only those that are given.
func AnnotationKeys() []string { return append(utilisationKeys(), SampleKey) }

// QuestionKeys are keys that ask of a run and change nothing in it.
func QuestionKeys() []string {
	return append([]string{TargetsKey, FLOPsPerTokenKey, HardwareFLOPsPerTokenKey, SampleTokensKey}, AnnotationKeys()...)
}

// ReadingKeys are what a command's output is read as. [[extract]] is one more, and
// no key of a point.
func ReadingKeys() []string { return []string{"command.extract", "command.log", "command.columns"} }
