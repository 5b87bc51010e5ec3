package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Point is one combination of swept values and one repeat: everything that a program
// needs to know to take part in the run. Programs read it from point.json. It has the keys
// of the TOML file; values derived from these are added at the top level.
type Point struct {
	// ID is the point's identity: a readable prefix and a hash of the keys that differ from
	// their defaults. Repeats and attempts share it.
	ID    string `json:"id"`
	Study string `json:"study"`

	Framework string `json:"framework"`
	Workers   int    `json:"workers"` // world size
	// Variant names the [[variant]] of the site file with which the point runs; "" for
	// none.
	Variant   string    `json:"variant,omitempty"`
	Workload  Workload  `json:"workload"`
	Data      Data      `json:"data,omitzero"`
	Own       Own       `json:"parameters,omitempty"` // [parameters], which the user's program interprets
	Command   Command   `json:"command,omitzero"`     // for frameworks that start the user's program
	Resources Resources `json:"resources"`

	Repeat int   `json:"repeat"` // number of the repeat, from 1
	Seed   int64 `json:"seed"`   // seed of this repeat

	// The following values are derived from the keys above.
	Nodes          int `json:"nodes"`
	WorkersPerNode int `json:"workers_per_node"` // the same on every node
	// Beside is the number of ranks that are not workers. They have the lowest numbers:
	// rank 0 of a service is the load generator. AuxNodes is the number of nodes
	// reserved for them.
	AuxRanks int `json:"beside,omitzero"`
	AuxNodes int `json:"beside_nodes,omitzero"`
	// Enforced lists which of CPUsKey and MemoryKey must be enforced (see Study.Holds).
	// Without enforcement, the point could use more than its share, and would be measured
	// with the resources of another point.
	Enforced []string `json:"enforced,omitempty"`
	// ComparesLayouts is set if the study compares layouts, so that it is a result if a
	// layout does not fit into memory.
	ComparesLayouts bool `json:"compares_layouts,omitempty"`
	// The following values are only for trainings.
	WorkerBatch  int     `json:"worker_batch,omitzero"`  // samples per step and rank, or per replica of several ranks
	MicroBatch   int     `json:"micro_batch,omitzero"`   // samples of the worker's batch computed at a time; 0: the program decides
	GlobalBatch  int     `json:"global_batch,omitzero"`  // samples per step over all ranks
	LearningRate float64 `json:"learning_rate,omitzero"` // peak, after scaling with the global batch
	// The following value is only for language models.
	Architecture measure.Architecture `json:"architecture,omitzero"`
}

// A Run identifies a planned run: a point, by its ID, and the number of its repeat.
type Run struct {
	Point  string
	Repeat int
}

// Run returns the planned run that the point describes.
func (p *Point) Run() Run { return Run{p.ID, p.Repeat} }

// Resources that can be enforced for a point.
const (
	CPUsKey   = "resources.cpus_per_worker"
	MemoryKey = "resources.memory"
)

// Enforces reports whether a resource must be enforced for the point.
func (p *Point) Enforces(key string) bool { return slices.Contains(p.Enforced, key) }

// Check returns an error if a point that was read from a file cannot come from a plan. It
// checks the ranges of values that later computations use; other keys were checked when the
// study was read.
func (p *Point) Check() error {
	if _, known := kinds()[p.Workload.Kind]; !known && p.Workload.Kind != "" {
		return fmt.Errorf("workload.kind = %q is not known", p.Workload.Kind)
	}
	for _, b := range []struct {
		name        string
		value, from int
	}{{"workers", p.Workers, 1}, {"nodes", p.Nodes, 1}, {"workers_per_node", p.WorkersPerNode, 1}, {"repeat", p.Repeat, 1},
		{"beside", p.AuxRanks, 0}, {"beside_nodes", p.AuxNodes, 0},
		{"worker_batch", p.WorkerBatch, 0}, {"micro_batch", p.MicroBatch, 0}, {"global_batch", p.GlobalBatch, 0}} {
		most := maxWorkers
		if strings.HasSuffix(b.name, "_batch") {
			most = 1 << 40 // samples
		}
		if b.value < b.from || b.value > most {
			return fmt.Errorf("%s = %d, want %d to %d", b.name, b.value, b.from, most)
		}
	}
	if p.Resources.Time < 0 || p.Resources.Memory < 0 {
		return fmt.Errorf("resources.time = %v, resources.memory = %v, want 0 or more", p.Resources.Time, p.Resources.Memory)
	}
	return nil
}

// Ranks returns the number of ranks of a run: workers and others.
func (p *Point) Ranks() int { return p.Workers + p.AuxRanks }

// Shape returns the shape of a run's job: the number of nodes, and the number of ranks on
// each.
func (p *Point) Shape() (nodes, ranksPerNode int) {
	nodes = p.Nodes + p.AuxNodes
	return nodes, p.Ranks() / nodes
}

// OnOneNode places all ranks on one node, instead of the placement on a cluster's partition.
func (p *Point) OnOneNode() {
	p.Nodes, p.WorkersPerNode = 1, p.Workers
	p.AuxRanks, p.AuxNodes = min(p.AuxRanks, 1), 0
}

// Lengths returns the TOML paths of the keys that a user can reduce to make a run shorter.
// For a user's program, these are only keys that it receives.
func (p *Point) Lengths() []string {
	k := p.Workload.kindOf()
	var list []string
	for _, path := range k.bounds {
		f := k.fields().byKey[strings.TrimPrefix(path, "workload.")]
		if !reflect.ValueOf(p.Workload).FieldByIndex(f.Index).IsZero() && p.Reaches(path) {
			list = append(list, path)
		}
	}
	return list
}

// Key returns the value, as text, of the key with this TOML name; ok is false if the
// workload's kind has no such key.
func (p *Point) Key(name string) (text string, ok bool) {
	k, ok := kinds()[p.Workload.Kind]
	if !ok {
		return "", false
	}
	f, ok := k.fields().byKey[name]
	if !ok {
		return "", false
	}
	return fmt.Sprint(reflect.ValueOf(p.Workload).FieldByIndex(f.Index).Interface()), true
}

// WorkloadKeys returns the TOML paths of the keys of the workload's kind.
func (p *Point) WorkloadKeys() []string {
	var list []string
	for _, f := range pointFields()[p.Workload.Kind] {
		if strings.HasPrefix(f.path, "workload.") {
			list = append(list, f.path)
		}
	}
	return list
}

// A Workload describes what to run. Kind is its kind; only the field of that kind is used.
// In TOML and JSON, the keys of that field are next to "kind".
type Workload struct {
	Kind       string `toml:"kind"`
	Train      Train
	Collective Collective
	Serve      Serve
	Preprocess Preprocess
}

// Train holds the keys of kind = "train".
type Train struct {
	Model     string `toml:"model" json:"model"`         // "resnet20", "resnet32", "resnet44", "resnet56", "cnn", "mlp", …
	Precision string `toml:"precision" json:"precision"` // "fp32"
	Batch     int    `toml:"batch" json:"batch"`         // per worker with weak scaling, over all workers with strong scaling
	Scaling   string `toml:"scaling" json:"scaling"`     // "weak" or "strong"

	LearningRate      float64 `toml:"learning_rate" json:"learning_rate"`             // at the reference batch
	ReferenceBatch    int     `toml:"reference_batch" json:"reference_batch"`         // global batch to which learning_rate applies
	ScaleLearningRate string  `toml:"scale_learning_rate" json:"scale_learning_rate"` // "linear", "sqrt" or "none"
	WarmupEpochs      float64 `toml:"warmup_epochs" json:"warmup_epochs"`             // ramp from learning_rate to the scaled one
	Decay             string  `toml:"decay" json:"decay"`                             // "none", "step" or "cosine"
	DecayEpochs       []int   `toml:"decay_epochs" json:"decay_epochs"`               // for "step": the milestones
	DecayFactor       float64 `toml:"decay_factor" json:"decay_factor"`               // for "step": factor at each milestone
	Optimizer         string  `toml:"optimizer" json:"optimizer"`                     // "sgd", "adam" or "adamw"
	Momentum          float64 `toml:"momentum" json:"momentum"`                       // for "sgd"
	Beta1             float64 `toml:"beta1" json:"beta1"`                             // for "adam" and "adamw", like the next two
	Beta2             float64 `toml:"beta2" json:"beta2"`
	Epsilon           float64 `toml:"epsilon" json:"epsilon"`
	WeightDecay       float64 `toml:"weight_decay" json:"weight_decay"`
	BatchNorm         string  `toml:"batch_norm" json:"batch_norm"` // statistics of batch normalisation: "local" to each rank, or "sync" over all
	Augment           bool    `toml:"augment" json:"augment"`       // random crop (pad 4) and horizontal flip

	// How to compute a step of a language model. point.json omits these keys if they are
	// unset, so that it is the same as before they existed.
	Sequence      int  `toml:"sequence" json:"sequence,omitzero"`           // tokens per sample; 0: the model's own
	MicroBatch    int  `toml:"micro_batch" json:"micro_batch,omitzero"`     // samples per worker computed at a time; 0: all
	Zero          int  `toml:"zero" json:"zero,omitzero"`                   // ZeRO stage, what the ranks share, 1 to 3; 0: the framework decides
	Shard         int  `toml:"shard" json:"shard,omitzero"`                 // number of ranks that share one copy of the model; 0: all
	Checkpointing bool `toml:"checkpointing" json:"checkpointing,omitzero"` // recompute activations in the backward pass

	// Accumulate is the number of micro batches whose gradients are accumulated before a
	// step. With MicroBatch, the batch is their product.
	Accumulate Degree `toml:"accumulate" json:"accumulate,omitzero"`
	// How a user's program divides a model: over TP·PP·CP ranks. There are DP such groups
	// of ranks.
	TP Degree `toml:"tp" json:"tp,omitzero"` // tensor parallelism
	PP Degree `toml:"pp" json:"pp,omitzero"` // pipeline stages
	CP Degree `toml:"cp" json:"cp,omitzero"` // context parallelism: divides the positions of a sequence
	EP Degree `toml:"ep" json:"ep,omitzero"` // expert parallelism, among the ranks of a stage
	DP Degree `toml:"dp" json:"dp,omitzero"` // data parallelism; default: workers / (TP·PP·CP)

	// Sample says what a sample is, one of measure.Samples. With "", rates are in
	// samples/s.
	Sample string `toml:"sample" json:"sample,omitzero"`

	// MFU names the convention by which MFU, the share of the device's peak FLOP/s that a
	// language model used, is computed. PeakTFLOPS is that peak, for devices that are not
	// in the built-in table.
	MFU        string  `toml:"mfu" json:"mfu,omitzero"`
	PeakTFLOPS float64 `toml:"peak_tflops" json:"peak_tflops,omitzero"` // without sparsity; 0: the value of the table
	Recompute  string  `toml:"recompute" json:"recompute,omitzero"`     // what a user's program recomputes: "none", "selective" or "full"; "": undeclared

	Targets    []measure.Target `toml:"targets" json:"targets"`         // accuracies as fractions, or losses as { loss = 2.0 }
	Epochs     int              `toml:"epochs" json:"epochs"`           // 0: no limit; the first limit reached ends the run
	MaxSteps   int              `toml:"max_steps" json:"max_steps"`     // 0: no limit
	MaxMinutes float64          `toml:"max_minutes" json:"max_minutes"` // limit of the training time; 0: no limit
	Until      string           `toml:"until" json:"until"`             // "targets": stop when all targets are reached; "": do not
	SaveModel  bool             `toml:"save_model" json:"save_model"`   // as a file in the run folder, at the end of a successful run
}

// Data is the training data.
type Data struct {
	Kind string `toml:"kind" json:"kind"` // "cifar10": CIFAR-10's binary format; "synthetic": generated in memory; "text": bytes; "tokens": token IDs of a text
	Path string `toml:"path" json:"path"` // folder, relative to the study file; in point.json absolute, with variables expanded
	// Stage copies the folder to each node's local disk before the training starts. The
	// site file sets the destination.
	Stage bool `toml:"stage" json:"stage"`
	// TrainSamples and TestSamples limit the samples that are used; 0: all.
	TrainSamples int `toml:"train_samples" json:"train_samples"`
	TestSamples  int `toml:"test_samples" json:"test_samples"`
}

// Sequences reports whether samples are sequences of tokens.
func (d Data) Sequences() bool { return d.Kind == "text" || d.Kind == "tokens" }

// Files returns the names of the training and test files in the data folder, for data of
// kind "text" or "tokens"; nil for other kinds.
func (d Data) Files() []string {
	switch d.Kind {
	case "text":
		return []string{"train.txt", "test.txt"}
	case "tokens":
		return []string{"train.bin", "val.bin"}
	}
	return nil
}

// Resources are the resources of each worker.
type Resources struct {
	Device         string   `toml:"device" json:"device"`                     // "cpu" or "gpu"
	WorkersPerNode int      `toml:"workers_per_node" json:"workers_per_node"` // maximum number of ranks per node; 0: as many as the site's nodes allow
	CPUsPerWorker  int      `toml:"cpus_per_worker" json:"cpus_per_worker"`
	Memory         Bytes    `toml:"memory" json:"memory"` // per worker; 0: the partition's default
	Time           Duration `toml:"time" json:"time"`     // wall-time limit of the job
	// Exclusive asks for whole nodes; nil means true. It must be the same for all points.
	// If only the base of the speedups had its nodes to itself, every speedup on a busy
	// cluster would be too low.
	Exclusive *bool  `toml:"exclusive" json:"exclusive"`
	CPUBind   string `toml:"cpu_bind" json:"cpu_bind"` // srun --cpu-bind; "": the site's default
	// Launch says who starts the ranks: "srun" starts each one (outside Slurm, the local
	// launcher does); "torchrun" is started once per node and starts the node's ranks.
	Launch string `toml:"launch" json:"launch"`
	MPI    string `toml:"mpi" json:"mpi"` // srun --mpi, such as "pmix"; "": the cluster's default
}
