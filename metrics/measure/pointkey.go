package measure

// This file names the keys of a point that do not change what it measures. They are
// not part of a point's identity (launcher/study) and do not separate curves
// (metrics/scaling).

// BoundKeys returns the keys that limit a run without changing what it measures:
// raising a time limit keeps existing results. In a sweep they count like any other
// key.
func BoundKeys() []string {
	return []string{"resources.time", "resources.memory", ExclusiveKey}
}

// ExclusiveKey says whether runs had whole nodes. Scheduler runs record it even if the
// study does not set it.
const ExclusiveKey = "resources.exclusive"

// TargetsKey holds the target accuracies of a study. Any run with evaluations
// can answer, so adding a target to a study keeps its results.
const TargetsKey = "workload.targets"

// The keys that ask for a run's MFU: the convention, the peak, and what is recomputed.
const (
	MFUKey       = "workload.mfu"
	MFUPeakKey   = "workload.peak_tflops"
	RecomputeKey = "workload.recompute" // needed for the HFU

	// The keys that a plan derives from them.
	FLOPsPerTokenKey         = "mfu.flops_per_token"
	HardwareFLOPsPerTokenKey = "mfu.hardware_flops_per_token" // including recomputation; absent if unknown
)

// SampleKey says what a sample is, which sets the unit of rates. SampleTokens is the
// number of tokens in a sample, if the plan knows it.
const (
	SampleKey       = "workload.sample"
	SampleTokensKey = "sample.tokens"
)

// utilisationKeys returns the keys by which a study asks for an MFU.
func utilisationKeys() []string { return []string{MFUKey, MFUPeakKey, RecomputeKey} }

// AnnotationKeys returns the keys that say how to interpret a run's figures. A point
// has only those that the study sets.
func AnnotationKeys() []string { return append(utilisationKeys(), SampleKey) }

// QuestionKeys returns the keys that ask something of a run and change nothing in it.
func QuestionKeys() []string {
	return append([]string{TargetsKey, FLOPsPerTokenKey, HardwareFLOPsPerTokenKey, SampleTokensKey}, AnnotationKeys()...)
}

// ReadingKeys returns the keys that say how to read a command's output. [[extract]]
// does too, but is not a key of a point.
func ReadingKeys() []string { return []string{"command.extract", "command.log", "command.columns"} }
