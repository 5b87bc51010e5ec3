// Package metrics holds the facts of a benchmark: what the processes of a run
// report while it goes on (Event), one attempt at a point (Run), and how far
// that attempt came (Status).
//
// The package owns the event file format: JSON lines, one object a line, one
// writer per file. Everything here is in base units (seconds, samples, bytes);
// figures are scaled only when they are printed. What was not measured is
// absent, never zero: a zero is a measurement.
package metrics

// FormatVersion is the version of the event format that this package writes.
// A reader refuses files whose Start event names a later one.
const FormatVersion = 1

// Event is one line of an event file. Exactly one of its payloads is set.
type Event struct {
	// Time is when the event was recorded, in seconds since this writer's
	// clock began, on the host's monotonic clock. A program that trains has it
	// begin with its process: what comes before the Train event, imports and the
	// meeting of the ranks included, is initialisation. Other writers have it
	// begin with their Start event. Times of different writers
	// are compared only by adding Start.Unix, and then carry both hosts' clock
	// errors.
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

// Start is the first event of every file: who writes it.
type Start struct {
	Format    int     `json:"format"`              // FormatVersion
	Unix      float64 `json:"unix"`                // seconds since the Unix epoch by the host's wall clock, when the writer's clock began
	Writer    string  `json:"writer"`              // "rank", "supervisor", "stage", "telemetry" or "accounting"
	Framework string  `json:"framework,omitempty"` // as in the plan
	Rank      int     `json:"rank"`                // 0-based
	WorldSize int     `json:"world_size"`          // ranks in the run, as the framework itself reports it
	LocalRank int     `json:"local_rank"`          // 0-based on this host
	Restart   int     `json:"restart"`             // 0 for the first incarnation of this attempt
	// Ranks is how many ranks the events are of, from Rank on: samples are those
	// of all of them, durations what each of them took. 0 is 1, the writer's
	// own. More than that is a process that drives several devices, or a log
	// that speaks for the whole run; what tells ranks apart (skew, the slowest
	// one) is then not known.
	Ranks int    `json:"ranks,omitempty"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
}

// Covers is how many ranks the writer's events are of, 1 or more.
func (s *Start) Covers() int { return max(1, s.Ranks) }

// Environment is where a rank runs. An empty field was not found out.
type Environment struct {
	Hostname    string            `json:"hostname,omitempty"`
	Kernel      string            `json:"kernel,omitempty"`
	CPUModel    string            `json:"cpu_model,omitempty"`
	CPUSet      string            `json:"cpu_set,omitempty"` // CPUs this process may run on, as "0-3,8"
	CPUs        int               `json:"cpus,omitempty"`    // how many that is, or fewer if a quota of CPU time is less
	Threads     int               `json:"threads,omitempty"` // compute threads the program uses
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	GPUs        []GPU             `json:"gpus,omitempty"`
	Interface   *Interface        `json:"interface,omitempty"` // that carries the collectives
	Versions    map[string]string `json:"versions,omitempty"`  // library name to version; "": the run has none, and it does not bear on it
	Files       map[string]string `json:"files,omitempty"`     // SHA-256 of the user's own files that the program works with, by name
	Setting     *Setting          `json:"setting,omitempty"`   // nil: not known
	GitCommit   string            `json:"git_commit,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"` // SLURM_* and the like, secrets left out
}

// Setting is what a site has programs started with: what decides which code
// runs, and is not in the study. "" is not known, None that there is nothing.
type Setting struct {
	Python      string `json:"python,omitempty"`      // interpreter of the program, or the archive that it was unpacked from
	Container   string `json:"container,omitempty"`   // runtime, image and mounts
	Modules     string `json:"modules,omitempty"`     // in the order in which they are loaded
	Setup       string `json:"setup,omitempty"`       // keyed digest of the site's shell lines
	Environment string `json:"environment,omitempty"` // of the site: NAME=digest, keyed, by name
}

// None is a part of a Setting that is known to be empty.
const None = "none"

// GPU is one accelerator that the process sees.
type GPU struct {
	Name        string `json:"name"`
	UUID        string `json:"uuid,omitempty"`
	Driver      string `json:"driver,omitempty"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
	// MIG is the profile of the GPU instances of a partitioned GPU, "1g.10gb";
	// "off" where it is not partitioned.
	MIG string `json:"mig,omitempty"`
	// PowerLimitWatts is what the GPU may draw; 0 when not found out.
	PowerLimitWatts float64 `json:"power_limit_watts,omitempty"`
}

// Interface is a network interface.
type Interface struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	SpeedBitsPer int64  `json:"speed_bits_per_second,omitempty"` // 0: the kernel does not say
}

// Staged is something that was brought to a node's own disk before the run's
// programs were started there. The node's stage writer has the node's number
// for its rank, and the number of nodes for the world's size.
type Staged struct {
	Item    string  `json:"item"`    // "data" or "python"
	Source  string  `json:"source"`  // on the shared file system
	Path    string  `json:"path"`    // what is used in place of it
	Bytes   int64   `json:"bytes"`   // of its files on the node
	Seconds float64 `json:"seconds"` // that it took; no part of any clock of the training
	Reused  bool    `json:"reused"`  // it was there from before
}

// Train marks the start of the training clock: initialisation is over and the
// first datum has not been touched. Time to accuracy counts from here. A count
// that the writer does not know, as of a program that is not ours, is 0.
type Train struct {
	Parameters      int64  `json:"parameters"`            // trainable scalars of the model
	GradientBytes   int64  `json:"gradient_bytes"`        // reduced per step and rank
	TrainSamples    int64  `json:"train_samples"`         // in the whole training set
	TestSamples     int64  `json:"test_samples"`          // in the whole evaluation set
	GlobalBatch     int    `json:"global_batch"`          // samples per step over all ranks
	StepsPerEpoch   int    `json:"steps_per_epoch"`       // full steps; a padded or dropped tail is not counted
	ParameterSHA256 string `json:"parameter_sha256"`      // of the initial parameters, equal on all ranks
	DataSHA256      string `json:"data_sha256,omitempty"` // of the data files read, where the program hashed them
}

// Steps is a batch of consecutive training steps of one rank, as columns, so
// that a long run stays small. All columns have the same length; a component
// that was not measured is nil. A step lasts from the end of the step before it
// (or the start of the epoch) to its own end, so that the durations tile the
// epoch's training time; data wait, compute and communication are parts of it
// and need not add up to it.
type Steps struct {
	First         int     `json:"first"`                   // 0-based index of the first step, over the whole run
	Tick          float64 `json:"tick"`                    // seconds that one unit of the time columns stands for
	Duration      []int64 `json:"duration"`                // ticks
	Samples       []int64 `json:"samples"`                 // that this rank trained on in the step
	DataWait      []int64 `json:"data_wait,omitempty"`     // ticks waiting for input
	Compute       []int64 `json:"compute,omitempty"`       // ticks in forward, backward and optimiser
	Communication []int64 `json:"communication,omitempty"` // ticks in the gradient reduction, waiting for peers included, also where computing hid it
}

// Epoch is the end of one pass over the training set, as one rank saw it.
type Epoch struct {
	Epoch        int      `json:"epoch"`          // 1-based
	Step         int      `json:"step"`           // steps done so far
	Samples      int64    `json:"samples"`        // this rank's, in this epoch
	Seconds      float64  `json:"seconds"`        // training time of the epoch, evaluation apart
	Loss         *float64 `json:"loss,omitempty"` // mean training loss of this rank over the epoch
	LearningRate float64  `json:"learning_rate"`  // at the last step; 0: not known
}

// Evaluation is the result on the test split over all ranks. Only rank 0
// writes it. Its Event.Time, less the Train event's, is the time at which the
// accuracy was reached: the evaluation is on the clock.
type Evaluation struct {
	Epoch    int      `json:"epoch"`    // 1-based epoch after which it was made; 0 before training
	Step     int      `json:"step"`     // steps done so far
	Accuracy float64  `json:"accuracy"` // fraction correct, 0 to 1
	Loss     *float64 `json:"loss,omitempty"`
	Samples  int64    `json:"samples"` // evaluated over all ranks; 0: not known
	Seconds  float64  `json:"seconds"` // that the evaluation took; 0: not known
	// Trained is the samples trained on so far over all ranks, from a program that
	// does not record its steps; 0: it does, or they are not known.
	Trained int64 `json:"trained,omitempty"`
}

// Names of figures that results are made of, where the steps themselves were
// not recorded. Any other name is kept and shown as it is.
const (
	FigureThroughput   = "throughput"    // samples/s over all ranks
	FigureEndToEnd     = "end_to_end"    // samples/s over the whole training, evaluations included
	FigureTrainSeconds = "train_seconds" // s

	// The time from the start of the training clock to the target that the program
	// itself trains to and judges, in s; and in its place, of a run that ended
	// without reaching it, how long that run trained.
	FigureToTarget     = "to_target"
	FigureMissedTarget = "missed_target"

	// The attempt of the run from whose checkpoint this one goes on. No measure: it
	// says that the attempt's times are not those of the whole training.
	FigureResumed = "resumed_attempt"

	// The loss of a training step and of an evaluation, at {"step": N} or {"epoch": N}:
	// a token's or a sample's mean, in nats. Targets of losses are judged by them.
	FigureLoss     = "loss"
	FigureEvalLoss = "eval_loss"

	// How long a rank's program ran, in s: from its start to its end, by the clock
	// of the supervisor beside it. Of the user's own programs.
	FigureRunSeconds = "run_seconds"
)

// Figure is one number that is measured of the run and is no step of a training:
// of a benchmark of ours, or one that another program's log states (File is then
// the log), or that is made of several that it states. It is that program's
// figure, not our measurement: Note says what it really is.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // base unit: "samples/s", "s", "B/s"; "" has none, or is a fraction
	// Better is which way it is better, "higher" or "lower"; "" where nobody says.
	Better string `json:"better,omitempty"`
	// At is what the value is of, if not of the run: {"epoch": 3}, or
	// {"op": "all_reduce", "bytes": 1048576}. Values are float64 or string.
	At map[string]any `json:"at,omitempty"`
	// PlusMinus is the ± that stands beside it, in Unit, and PlusMinusIs what it
	// is: "1.96 σ over rank 0's iterations".
	PlusMinus   *float64 `json:"plus_minus,omitempty"`
	PlusMinusIs string   `json:"plus_minus_is,omitempty"`
	Reduce      string   `json:"reduce,omitempty"` // "median", …: how it was made of Of values; "" where the log states it itself
	Of          int      `json:"of,omitempty"`
	Note        string   `json:"note,omitempty"`
	File        string   `json:"file,omitempty"` // where it stands
	Line        int      `json:"line,omitempty"` // 1-based; the last of several; 0: not in one line
}

// Note is a doubt about the figures of this file, or what a figure really is
// where its name says more: "rank 0's rate times 4". It is shown with them, as
// a warning.
type Note struct {
	Text string `json:"text"`
}

// Phase is what a program without steps does from now on, in words: "ready". It
// is for those who watch.
type Phase struct {
	Text string `json:"text"`
}

// Error is a failure that the writer could still report.
type Error struct {
	Where   string `json:"where"` // phase: "rendezvous", "data", "train", "evaluate", …
	Message string `json:"message"`
}

// Ways a run can end, in Stop.Status.
const (
	StopDone        = "done"        // the whole length that the point asks for
	StopFailed      = "failed"      // the program reported an error
	StopInterrupted = "interrupted" // by a signal, with what was measured kept
)

// Stop is the last event of a writer that ended in order. A file without one
// belongs to a process that was killed.
type Stop struct {
	Status          string `json:"status"`          // StopDone, StopFailed or StopInterrupted
	Cause           string `json:"cause,omitempty"` // in words, when not done
	Steps           int    `json:"steps"`
	Epochs          int    `json:"epochs"`
	ParameterSHA256 string `json:"parameter_sha256,omitempty"` // of the final parameters
}

// Kind names the event's payload: "start", "steps", …; "" when none is set.
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
