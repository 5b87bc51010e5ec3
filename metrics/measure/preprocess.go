package measure

// The measures of a preprocessing, beside Throughput. Those of a stage are sums over
// all threads of all workers, divided by the samples.
const (
	SourceRate    = "source_rate"    // bytes/s of the source's files, over all workers
	TargetRate    = "target_rate"    // bytes/s of prepared samples, synced to storage
	SourceCached  = "source_cached"  // share of the source that was in memory before it was read
	SourceStorage = "source_storage" // bytes that storage delivered over bytes that were read
	SampleCPU     = "sample_cpu"     // CPU seconds of the processes, all told
	ThreadsDelay  = "threads_delay"  // share of the threads' time in which they could run and had no CPU
	ConsumerWait  = "consumer_wait"  // share of the time in which a trainer, simulated or real, waits for samples
	ConsumerStep  = "consumer_step"  // of a real trainer: from the end of a step to the end of the next, in the mean
	ConsumerLoss  = "consumer_loss"  // of a real trainer, in the mean over the samples of a pass

	StageShare   = "stage_share"   // share of the threads' time
	StageSeconds = "stage_seconds" // by the clock, per sample
	StageCPU     = "stage_cpu"     // CPU seconds per sample

	Ceiling      = "ceiling"       // samples/s that one bound allows when nothing else limits
	CeilingShare = "ceiling_share" // the throughput over it
)

// The coordinates of a preprocessing.
const (
	Stage = "stage"
	Bound = "bound"
	Pass  = "pass" // over the source, from 1
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
