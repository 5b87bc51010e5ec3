// Package metrics defines the recorded facts of a benchmark: the events that the processes of a run
// report (Event), one attempt at a point (Run), and how far that attempt got (Status).
//
// The package owns the format of event files: JSON lines, one object per line, one writer per file.
// All values are in base units (seconds, samples, bytes) and are scaled only for display. A value
// that was not measured is absent, never zero, because zero is a valid measurement.
package metrics

// FormatVersion is the version of the event format that this package writes. A reader rejects files
// whose Start event has a higher version.
const FormatVersion = 1

// Event is one line of an event file. Exactly one of its payloads is set.
type Event struct {
	// Time is when the event was recorded, in seconds on the writer's clock, which is monotonic.
	// The clock of a training program starts with its process. Everything before its Train event,
	// such as imports and the rendezvous of the ranks, is therefore initialisation. The clocks of
	// other writers start with their Start event. To compare times of different writers, add
	// Start.Unix; the result includes the clock errors of both hosts.
	Time float64 `json:"t"`

	Start       *Start       `json:"start,omitempty"`
	Environment *Environment `json:"environment,omitempty"`
	Staged      *Staged      `json:"staged,omitempty"`
	Train       *Train       `json:"train,omitempty"`
	Steps       *Steps       `json:"steps,omitempty"`
	Epoch       *Epoch       `json:"epoch,omitempty"`
	Gradients   *Gradients   `json:"gradients,omitempty"`
	Evaluation  *Evaluation  `json:"evaluation,omitempty"`
	Figure      *Figure      `json:"figure,omitempty"`
	Note        *Note        `json:"note,omitempty"`
	Phase       *Phase       `json:"phase,omitempty"`
	Telemetry   *Telemetry   `json:"telemetry,omitempty"`
	Error       *Error       `json:"error,omitempty"`
	Stop        *Stop        `json:"stop,omitempty"`
}

// Start is the first event of every file. It identifies the writer.
type Start struct {
	Format    int     `json:"format"`              // FormatVersion
	Unix      float64 `json:"unix"`                // when the writer's clock started: seconds since the Unix epoch, by the host's wall clock
	Writer    string  `json:"writer"`              // "rank", "supervisor", "stage", "telemetry" or "accounting"
	Framework string  `json:"framework,omitempty"` // as in the plan
	Rank      int     `json:"rank"`                // 0-based
	WorldSize int     `json:"world_size"`          // ranks in the run, as the framework itself reports it
	LocalRank int     `json:"local_rank"`          // 0-based on this host
	Restart   int     `json:"restart"`             // how often this attempt was restarted before, as by Slurm's requeue
	// Ranks is the number of ranks that the events cover, starting at Rank; 0 means 1. It is larger
	// for a process that drives several devices, and for a log of a whole run. Samples are then the
	// sum over these ranks, and durations hold for each of them. Differences between ranks (skew,
	// the slowest rank) are then unknown.
	Ranks int    `json:"ranks,omitempty"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
}

// Covers returns the number of ranks that the writer's events cover, at least 1.
func (s *Start) Covers() int { return max(1, s.Ranks) }

// Environment is the hardware and software on which a rank runs. An empty field is unknown.
type Environment struct {
	Hostname    string            `json:"hostname,omitempty"`
	Kernel      string            `json:"kernel,omitempty"`
	CPUModel    string            `json:"cpu_model,omitempty"`
	CPUSet      string            `json:"cpu_set,omitempty"` // CPUs this process may run on, as "0-3,8"
	CPUs        int               `json:"cpus,omitempty"`    // number of usable CPUs: those of the affinity mask, or fewer if a CPU quota is lower
	Threads     int               `json:"threads,omitempty"` // compute threads of the program
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	GPUs        []GPU             `json:"gpus,omitempty"`
	Interface   *Interface        `json:"interface,omitempty"` // the one that the collectives use
	Versions    map[string]string `json:"versions,omitempty"`  // library name to version; "": the run has none, and it does not bear on it
	Files       map[string]string `json:"files,omitempty"`     // SHA-256 of the user's files that the program uses, by name
	Setting     *Setting          `json:"setting,omitempty"`   // nil: unknown
	GitCommit   string            `json:"git_commit,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"` // SLURM_* and similar variables, without secrets
}

// Setting is the part of the software environment that the site file sets. It decides which code
// runs, and is not part of the study. "" means unknown, None means that there is nothing.
type Setting struct {
	Python      string `json:"python,omitempty"`      // the program's interpreter, or the archive from which it was unpacked
	Container   string `json:"container,omitempty"`   // runtime, image and mounts
	Modules     string `json:"modules,omitempty"`     // in load order
	Setup       string `json:"setup,omitempty"`       // keyed digest of the site's shell lines
	Environment string `json:"environment,omitempty"` // the site's variables as NAME=digest (keyed), sorted by name
}

// None is the value of a field of Setting that is known to be empty.
const None = "none"

// GPU is one accelerator that the process sees.
type GPU struct {
	Name        string `json:"name"`
	UUID        string `json:"uuid,omitempty"`
	Driver      string `json:"driver,omitempty"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
	// MIG is the profile of the GPU's instances, such as "1g.10gb", or "off" if the GPU is not
	// partitioned.
	MIG string `json:"mig,omitempty"`
	// PowerLimitWatts is the GPU's power limit; 0: unknown.
	PowerLimitWatts float64 `json:"power_limit_watts,omitempty"`
}

// Interface is a network interface.
type Interface struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	SpeedBitsPer int64  `json:"speed_bits_per_second,omitempty"` // 0: unknown
}

// Staged records an item that was copied to a node's local disk before the run's programs were
// started there. The writer "stage" has the node's index as its rank, and the number of nodes as
// its world size.
type Staged struct {
	Item    string  `json:"item"`    // "data" or "python"
	Source  string  `json:"source"`  // on the shared file system
	Path    string  `json:"path"`    // of the copy
	Bytes   int64   `json:"bytes"`   // total size of the copied files
	Seconds float64 `json:"seconds"` // duration of the copy; not part of any training time
	Reused  bool    `json:"reused"`  // an earlier copy was used
}

// Train marks the start of the training clock. Initialisation is over, and no training data have
// been read. Time to accuracy is measured from here. A number that the writer does not know,
// because the program belongs to the user, is 0.
type Train struct {
	Parameters      int64  `json:"parameters"`            // trainable scalars of the model
	GradientBytes   int64  `json:"gradient_bytes"`        // per rank and step, as passed to the reduction
	TrainSamples    int64  `json:"train_samples"`         // in the whole training set
	TestSamples     int64  `json:"test_samples"`          // in the whole evaluation set
	GlobalBatch     int    `json:"global_batch"`          // samples per step over all ranks
	StepsPerEpoch   int    `json:"steps_per_epoch"`       // full steps, without a padded or dropped last one
	ParameterSHA256 string `json:"parameter_sha256"`      // digest of the initial parameters, equal on all ranks
	DataSHA256      string `json:"data_sha256,omitempty"` // digest of the data files, if the program computed it
}

// Steps is a batch of consecutive training steps of one rank, stored as columns to keep long runs
// small. All columns have the same length; a component that was not measured is nil. A step lasts
// from the end of the previous step (or the start of the epoch) to its own end, so the durations
// add up to the epoch's training time. Data wait, compute and communication are parts of a step,
// and may overlap or leave a rest.
type Steps struct {
	First         int     `json:"first"`                   // 0-based index of the first step, over the whole run
	Tick          float64 `json:"tick"`                    // seconds per unit of the time columns
	Duration      []int64 `json:"duration"`                // ticks
	Samples       []int64 `json:"samples"`                 // samples that this rank trained on in the step
	DataWait      []int64 `json:"data_wait,omitempty"`     // ticks waiting for input
	Compute       []int64 `json:"compute,omitempty"`       // ticks in forward, backward and optimiser
	Communication []int64 `json:"communication,omitempty"` // ticks in the gradient reduction, including the wait for other ranks and the part hidden by computation
}

// Epoch is recorded by each rank at the end of a pass over the training set.
type Epoch struct {
	Epoch        int      `json:"epoch"`          // 1-based
	Step         int      `json:"step"`           // steps done so far
	Samples      int64    `json:"samples"`        // of this rank in this epoch
	Seconds      float64  `json:"seconds"`        // training time of the epoch, without evaluation
	Loss         *float64 `json:"loss,omitempty"` // mean training loss of this rank over the epoch
	LearningRate float64  `json:"learning_rate"`  // at the last step; 0: unknown
}

// Evaluation is the result on the test set over all ranks. Only rank 0 writes it. The time to this
// accuracy is its Event.Time minus that of the Train event, and so includes the evaluation itself.
type Evaluation struct {
	Epoch    int      `json:"epoch"`    // 1-based epoch after which it was made; 0: before the training
	Step     int      `json:"step"`     // steps done so far
	Accuracy float64  `json:"accuracy"` // fraction correct, 0 to 1
	Loss     *float64 `json:"loss,omitempty"`
	Samples  int64    `json:"samples"` // test samples over all ranks; 0: unknown
	Seconds  float64  `json:"seconds"` // duration of the evaluation; 0: unknown
	// Trained is the number of samples trained on so far, over all ranks. It is set by programs
	// that do not record their steps; 0: unknown or not needed.
	Trained int64 `json:"trained,omitempty"`
}

// Names of reported values from which results are computed if no steps were recorded. Values with
// any other name are stored and shown unchanged.
const (
	FigureThroughput   = "throughput"    // samples/s over all ranks
	FigureEndToEnd     = "end_to_end"    // samples/s over the whole training, evaluations included
	FigureTrainSeconds = "train_seconds" // s

	// The time in s from the start of the training clock to the target that the program itself
	// checks. A run that missed the target reports FigureMissedTarget instead: how long it trained.
	FigureToTarget     = "to_target"
	FigureMissedTarget = "missed_target"

	// The attempt of the run from whose checkpoint this one continues. It marks an attempt whose
	// times do not cover the whole training.
	FigureResumed = "resumed_attempt"

	// The training loss at {"step": N} and the evaluation loss at {"step": N} or {"epoch": N}: the
	// mean per token or sample, in nats. Loss targets use them.
	FigureLoss     = "loss"
	FigureEvalLoss = "eval_loss"

	// How long a user's program ran on a rank, in s, as its supervisor measured it.
	FigureRunSeconds = "run_seconds"
)

// Figure is one reported value that does not belong to a training step. It comes from one of our
// benchmarks, or from another program's log (File), or is computed from several values in such a
// log. Values from logs are that program's measurements, not ours; Note says how they were
// obtained.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // base unit: "samples/s", "s", "B/s"; "" has none, or is a fraction
	// Better is the better direction, "higher" or "lower"; "" if unknown.
	Better string `json:"better,omitempty"`
	// At says which part of the run the value describes, such as {"epoch": 3} or {"op":
	// "all_reduce", "bytes": 1048576}; nil: the whole run. Values are float64 or string.
	At map[string]any `json:"at,omitempty"`
	// PlusMinus is the ± that the log prints with the value, in Unit. PlusMinusIs says how it was
	// computed: "1.96 σ over rank 0's iterations".
	PlusMinus   *float64 `json:"plus_minus,omitempty"`
	PlusMinusIs string   `json:"plus_minus_is,omitempty"`
	Reduce      string   `json:"reduce,omitempty"` // "median", …: how it was made of Of values; "" where the log states it itself
	Of          int      `json:"of,omitempty"`
	Note        string   `json:"note,omitempty"`
	File        string   `json:"file,omitempty"` // the log that states it
	Line        int      `json:"line,omitempty"` // 1-based line in File; the last one if there are several; 0: not from one line
}

// Note is a warning about the values in this file, or says how a value was obtained if its name
// promises more: "rank 0's rate times 4". It is shown with the values.
type Note struct {
	Text string `json:"text"`
}

// Phase says in words what a program without steps is doing from now on, such as "ready". `status
// --watch` shows it.
type Phase struct {
	Text string `json:"text"`
}

// Error is a failure that the writer was able to report.
type Error struct {
	Where   string `json:"where"` // phase: "rendezvous", "data", "train", "evaluate", …
	Message string `json:"message"`
}

// Ways a run can end, in Stop.Status.
const (
	StopDone        = "done"        // ran the whole length that the point specifies
	StopFailed      = "failed"      // the program reported an error
	StopInterrupted = "interrupted" // stopped by a signal; the measurements so far are valid
)

// Stop is the last event of a writer that ended properly. If it is missing, the process was killed
// or is still running.
type Stop struct {
	Status          string `json:"status"`          // StopDone, StopFailed or StopInterrupted
	Cause           string `json:"cause,omitempty"` // reason in words, unless done
	Steps           int    `json:"steps"`
	Epochs          int    `json:"epochs"`
	ParameterSHA256 string `json:"parameter_sha256,omitempty"` // of the final parameters
}

// Kind returns the name of the event's payload: "start", "steps", …; "" if none is set.
func (e *Event) Kind() string {
	switch {
	case e.Start != nil:
		return "start"
	case e.Environment != nil:
		return "environment"
	case e.Staged != nil:
		return "staged"
	case e.Train != nil:
		return "train"
	case e.Steps != nil:
		return "steps"
	case e.Epoch != nil:
		return "epoch"
	case e.Gradients != nil:
		return "gradients"
	case e.Evaluation != nil:
		return "evaluation"
	case e.Figure != nil:
		return "figure"
	case e.Note != nil:
		return "note"
	case e.Phase != nil:
		return "phase"
	case e.Telemetry != nil:
		return "telemetry"
	case e.Error != nil:
		return "error"
	case e.Stop != nil:
		return "stop"
	}
	return ""
}
