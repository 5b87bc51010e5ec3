package measure

import "slices"

// Resources that a run used on its nodes, sampled for every kind of workload and
// summed over nodes. For training they cover the training clock, for other kinds the
// run time of the programs; see docs/telemetry.md.
const (
	PeakMemory     = "peak_memory"         // largest use by each node's processes, without page cache
	CPUShare       = "cpu_share"           // CPU time over the available CPU time
	CPUPressure    = "cpu_pressure"        // share of time in which some task waited for a CPU (kernel PSI)
	IOPressure     = "io_pressure"         // share of time in which some task waited for storage
	ThrottledShare = "throttled_share"     // share of CPU quota periods in which the quota was exhausted
	GPUThrottled   = "gpu_throttled_share" // share of time in which the worst GPU's clock was throttled
	Watts          = "watts"               // mean power of everything that has an energy counter or power sensor
	SlurmJoules    = "slurm_joules"        // energy of the whole nodes from the start of the run's step to its end, from Slurm's accounting

	BytesReadPerSample = "bytes_read_per_sample" // from storage
	JoulesPerSample    = "joules_per_sample"
	JoulesToTarget     = "joules_to_target" // to the study's highest target

	SlurmJoulesPerSample = "slurm_joules_per_sample"
)

var resources = []Measure{
	{Name: PeakMemory, Title: "peak memory", Unit: "B", Show: Size},
	{Name: CPUShare, Title: "CPU share", Show: Percent},
	{Name: CPUPressure, Title: "CPU pressure", Show: Percent},
	{Name: IOPressure, Title: "I/O pressure", Show: Percent},
	{Name: ThrottledShare, Title: "CPU throttled", Show: Percent},
	{Name: GPUThrottled, Title: "GPU throttled", Show: Percent},
	{Name: Watts, Title: "power", Unit: "W"},
	{Name: SlurmJoules, Title: "energy by Slurm", Unit: "J"},
}

// ofSamples lists the measures of runs that process samples.
var ofSamples = []Measure{
	{Name: BytesReadPerSample, Title: "bytes read per sample", Unit: "B", Show: Size},
	{Name: JoulesPerSample, Title: "energy per sample", Unit: "J", Better: Lower},
	{Name: JoulesToTarget, Title: "energy to target", Unit: "J", Better: Lower},
	{Name: SlurmJoulesPerSample, Title: "energy per sample by Slurm", Unit: "J", Better: Lower},
}

// Uses reports whether the measure is a resource that a run used, as opposed to a
// result.
func (m Measure) Uses() bool {
	return slices.ContainsFunc(Resources(), func(other Measure) bool { return other.Name == m.Name })
}

// Resources returns the measures of used resources, for every kind of workload.
func Resources() []Measure { return slices.Concat(resources, ofSamples) }
