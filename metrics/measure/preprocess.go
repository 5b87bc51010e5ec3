package measure

// The measures of preprocessing, in addition to Throughput. Stage measures are sums
// over all threads of all workers, divided by the number of samples.
const (
	SourceRate    = "source_rate"    // bytes/s of the source's files, over all workers
	TargetRate    = "target_rate"    // bytes/s of prepared samples, after sync to storage
	SourceCached  = "source_cached"  // share of the source that was in the page cache before it was read
	SourceStorage = "source_storage" // bytes read from storage over bytes read
	SampleCPU     = "sample_cpu"     // CPU seconds of all processes
	ThreadsDelay  = "threads_delay"  // share of the threads' time spent runnable but waiting for a CPU
	ConsumerWait  = "consumer_wait"  // share of time that a trainer, simulated or real, waits for samples
	ConsumerStep  = "consumer_step"  // real trainer: mean time from the end of one step to the end of the next
	ConsumerLoss  = "consumer_loss"  // real trainer: mean over the samples of a pass

	StageShare   = "stage_share"   // share of the threads' time
	StageSeconds = "stage_seconds" // wall-clock seconds per sample
	StageCPU     = "stage_cpu"     // CPU seconds per sample

	Ceiling      = "ceiling"       // samples/s if only one bound limits
	CeilingShare = "ceiling_share" // throughput over Ceiling
)

// The coordinates of preprocessing.
const (
	Stage = "stage"
	Bound = "bound"
	Pass  = "pass" // pass over the source, from 1
)

var preprocess = Kind{Name: "preprocess", Measures: preprocessing, PerWorker: true}

var preprocessing = []Measure{
	throughput,
	{Name: SourceRate, Title: "read", Unit: "B/s", Better: Higher, Scales: true},
	{Name: TargetRate, Title: "written", Unit: "B/s", Better: Higher, Scales: true},
	{Name: SourceCached, Title: "in memory before", Show: Percent},
	{Name: SourceStorage, Title: "from storage", Show: Percent},
	{Name: SampleCPU, Title: "CPU time per sample", Unit: "s", Better: Lower, Show: Seconds},
	{Name: ThreadsDelay, Title: "waiting for a CPU", Better: Lower, Show: Percent},
	{Name: ConsumerWait, Title: "consumer waits", Better: Lower, Show: Percent},
	{Name: ConsumerStep, Title: "consumer's step", Unit: "s", Better: Lower, Show: Seconds},
	{Name: ConsumerLoss, Title: "consumer's loss", Better: Lower, At: Pass},
	{Name: StageShare, Title: "share of the time", Show: Percent, At: Stage},
	{Name: StageSeconds, Title: "time per sample", Unit: "s", Better: Lower, Show: Seconds, At: Stage},
	{Name: StageCPU, Title: "CPU time per sample", Unit: "s", Better: Lower, Show: Seconds, At: Stage},
	{Name: Ceiling, Title: "ceiling", Unit: "samples/s", Better: Higher, Scales: true, At: Bound},
	{Name: CeilingShare, Title: "reached", Show: Percent, At: Bound},
}
