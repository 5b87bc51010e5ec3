package measure

import "slices"

// What a run used of its nodes, as their samplers have read it: of every kind of
// workload. Sums over nodes. Of a training in the time of its training clock, of
// others in the time of the programs; see docs/telemetry.md.
const (
	PeakMemory     = "peak_memory"         // largest that each node's processes held, page cache apart
	CPUShare       = "cpu_share"           // CPU time over what the run's CPUs had
	CPUPressure    = "cpu_pressure"        // of the time: in which some task waited for a CPU, as the kernel's PSI has it
	IOPressure     = "io_pressure"         // likewise: waited for storage
	ThrottledShare = "throttled_share"     // of the periods of a CPU quota: those in which it was used up
	GPUThrottled   = "gpu_throttled_share" // of the time: in which the worst GPU's clock was held down
	Watts          = "watts"               // mean power of what has an energy counter or a power sensor
	SlurmJoules    = "slurm_joules"        // energy of the whole nodes from the start of the run's step to its end, by Slurm's accounting

	BytesReadPerSample = "bytes_read_per_sample" // from storage
	JoulesPerSample    = "joules_per_sample"
	JoulesToTarget     = "joules_to_target" // to the highest target of the study's

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

// ofSamples are those of what has samples.
var ofSamples = []Measure{
	{Name: BytesReadPerSample, Title: "bytes read per sample", Unit: "B", Show: Size},
	{Name: JoulesPerSample, Title: "energy per sample", Unit: "J", Better: Lower},
	{Name: JoulesToTarget, Title: "energy to target", Unit: "J", Better: Lower},
	{Name: SlurmJoulesPerSample, Title: "energy per sample by Slurm", Unit: "J", Better: Lower},
}

// Uses reports whether the measure says what a run used, not what came of it.
func (m Measure) Uses() bool {
	return slices.ContainsFunc(Resources(), func(other Measure) bool { return other.Name == m.Name })
}

// Resources are the measures of what a run used, of any kind of workload.
func Resources() []Measure { return slices.Concat(resources, ofSamples) }
