package measure

// The measures of training, used by laws, advice and costs.
const (
	Throughput    = "throughput"     // long-run rate over all ranks, after warm-up
	EndToEnd      = "end_to_end"     // over the whole training time, with warm-up and evaluations
	TrainSeconds  = "train_seconds"  // from the start of the training clock to the last step or evaluation
	InitSeconds   = "init_seconds"   // from the start of the slowest rank to the start of the training clock
	RunSeconds    = "run_seconds"    // of a user's program: from start to end of the slowest rank
	StepP50       = "step_p50"       // quantiles of the slowest rank's step time in steady state
	StepP95       = "step_p95"       //
	StepP99       = "step_p99"       //
	Skew          = "skew"           // share of the step time that the average rank waits for the slowest
	DataWait      = "data_wait"      // shares of the mean rank's step time
	Compute       = "compute"        //
	Communication = "communication"  //
	FinalAccuracy = "final_accuracy" // of the last evaluation
	NoiseScale    = "noise_scale"    // gradient noise scale of the last epoch that has one

	// ToTarget is the time to the target that the program itself sets and judges
	// (MLPerf's time to train). It may be a loss or several figures at once, and may
	// not appear in the log. A study's targets have the measures of Target.Time
	// instead.
	ToTarget = "to_target"
)

// Figures of language models. They are not declared: the program reports them like any
// user figure, or package summary derives them from TokensPerSample.
const (
	TokensPerSecond = "tokens_per_second"         // over all devices
	TokensPerGPU    = "tokens_per_second_per_gpu" // per device of any kind
	TokensPerSample = "tokens_per_sample"         // if a sample is a sequence
	ReportedMFU     = "reported_mfu"              // as stated by a log, by its own count and peak
	ReportedFLOPS   = "reported_flops_per_gpu"    // model FLOP/s per device, by the program's count
)

// WhyResumed explains why a run resumed from a checkpoint has no total training time:
// earlier attempts spent time that is not in it.
const WhyResumed = "the run went on from a checkpoint of an earlier attempt, whose time is not in it"

// throughput is shared by training and preprocessing.
var throughput = Measure{Name: Throughput, Title: "throughput", Unit: "samples/s", Better: Higher, Scales: true}

var train = Kind{
	Name: "train", Measures: training,
	Main:   []string{Throughput, TokensPerSecond, ToTarget, "missed_target", TrainSeconds},
	Trains: true, Exchanges: "collective",
	Advises: Throughput, Clock: TrainSeconds,
}

var training = []Measure{
	throughput,
	{Name: EndToEnd, Title: "end to end", Unit: "samples/s", Better: Higher, Scales: true},
	{Name: TrainSeconds, Title: "train seconds", Unit: "s", Better: Lower, Show: Seconds, Scales: true},
	{Name: ToTarget, Title: "time to target", Unit: "s", Better: Lower, Show: Seconds, Missable: true, Scales: true},
	{Name: InitSeconds, Title: "init seconds", Unit: "s", Better: Lower, Show: Seconds},
	{Name: RunSeconds, Title: "run time", Unit: "s", Better: Lower, Show: Seconds, Scales: true},
	{Name: StepP50, Title: "step p50", Unit: "s", Better: Lower, Show: Seconds},
	{Name: StepP95, Title: "step p95", Unit: "s", Better: Lower, Show: Seconds},
	{Name: StepP99, Title: "step p99", Unit: "s", Better: Lower, Show: Seconds},
	{Name: Skew, Title: "skew", Better: Lower, Show: Percent},
	{Name: DataWait, Title: "data wait", Better: Lower, Show: Percent},
	{Name: Compute, Title: "compute", Show: Percent},
	{Name: Communication, Title: "communication", Better: Lower, Show: Percent},
	{Name: FinalAccuracy, Title: "final accuracy", Better: Higher, Show: Percent},
	{Name: NoiseScale, Title: "gradient noise scale", Unit: "samples"},
}

// Recorded returns the training measures that come only from what ranks record, never
// from a figure of the same name.
func Recorded() []string {
	return []string{InitSeconds, StepP50, StepP95, StepP99, Skew, DataWait, Compute, Communication, FinalAccuracy, NoiseScale}
}
