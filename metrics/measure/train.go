package measure

// The measures of a training, by which laws, advice and costs ask for them.
const (
	Throughput    = "throughput"     // over all ranks, after warm-up, in the long run
	EndToEnd      = "end_to_end"     // over the whole training time, warm-up and evaluations included
	TrainSeconds  = "train_seconds"  // from the start of the training clock to the last step or evaluation
	InitSeconds   = "init_seconds"   // from the start of the slowest rank to the training clock's
	RunSeconds    = "run_seconds"    // from the start of a program of the user's to its end, of the slowest rank
	StepP50       = "step_p50"       // quantiles of the slowest rank's step time in the steady state
	StepP95       = "step_p95"       //
	StepP99       = "step_p99"       //
	Skew          = "skew"           // share of the step time that the average rank waits for the slowest
	DataWait      = "data_wait"      // shares of the mean rank's step time
	Compute       = "compute"        //
	Communication = "communication"  //
	FinalAccuracy = "final_accuracy" // of the last evaluation
	NoiseScale    = "noise_scale"    // gradient noise scale of the last epoch that has one

	// ToTarget is the time to the target that the program itself trains to and
	// judges, which may be a loss, several figures at once, or in no log: MLPerf's
	// time to train. A target of the study's, an accuracy, is To's.
	ToTarget = "to_target"
)

// Of language models. They are not declared: each is what a program reports, as any
// figure of a user's own name, or what package summary makes of TokensPerSample.
const (
	TokensPerSecond = "tokens_per_second"         // over all devices
	TokensPerGPU    = "tokens_per_second_per_gpu" // of a device, whatever kind it is
	TokensPerSample = "tokens_per_sample"         // where a sample is a sequence
	ReportedMFU     = "reported_mfu"              // as a log states it, by its own count and peak
	ReportedFLOPS   = "reported_flops_per_gpu"    // model FLOP/s of a device, by its own count
)

// WhyResumed is why a run that goes on from a checkpoint has no time of the whole
// training: what the attempts before spent on it, and on what was lost, is not in it.
const WhyResumed = "the run went on from a checkpoint of an earlier attempt, whose time is not in it"

// throughput is a training's and a preprocessing's.
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

// Recorded are the measures of a training that come only from what its ranks
// record, and not from a figure of that name.
func Recorded() []string {
	return []string{InitSeconds, StepP50, StepP95, StepP99, Skew, DataWait, Compute, Communication, FinalAccuracy, NoiseScale}
}
