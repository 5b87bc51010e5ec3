package study

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Point is one place in the sweep together with one repeat: everything a
// program needs to know to take part in the run. It is the frozen contract
// (point.json), with the keys of the TOML; only what scalebench worked out
// itself is added at the top level.
type Point struct {
	// ID is the point's identity: a readable start and a hash of the keys that
	// differ from their defaults, without repeat and attempt.
	ID    string `json:"id"`
	Study string `json:"study"`

	Framework string `json:"framework"`
	Workers   int    `json:"workers"` // world size
	// Variant is the [[variant]] of the site file that it runs as; "" for the site
	// as it stands.
	Variant   string    `json:"variant,omitempty"`
	Workload  Workload  `json:"workload"`
	Data      Data      `json:"data,omitzero"`
	Own       Own       `json:"parameters,omitempty"` // what [parameters] means to the user's program
	Command   Command   `json:"command,omitzero"`     // of frameworks that start one
	Resources Resources `json:"resources"`

	Repeat int   `json:"repeat"` // 1-based
	Seed   int64 `json:"seed"`   // of this repeat

	// Worked out from the keys above.
	Nodes          int `json:"nodes"`
	WorkersPerNode int `json:"workers_per_node"` // workers on each node; every node has as many
	// Beside are ranks that are no workers, and come before them: rank 0 of a service
	// puts it under load. BesideNodes are nodes for them alone.
	Beside      int `json:"beside,omitzero"`
	BesideNodes int `json:"beside_nodes,omitzero"`
	// Enforced are the keys among CPUsKey and MemoryKey that the study holds (Holds): a
	// point that is not held to its own would be measured with another's.
	Enforced []string `json:"enforced,omitempty"`
	// ComparesLayouts is a point whose study asks which layout fits into memory.
	ComparesLayouts bool `json:"compares_layouts,omitempty"`
	// Of a training.
	WorkerBatch  int     `json:"worker_batch,omitzero"`  // samples per step and rank, or replica of several
	MicroBatch   int     `json:"micro_batch,omitzero"`   // of these, that are computed at a time; 0: as the program does
	GlobalBatch  int     `json:"global_batch,omitzero"`  // samples per step over all ranks
	LearningRate float64 `json:"learning_rate,omitzero"` // peak, after scaling with the global batch
	// Of a language model.
	Architecture measure.Architecture `json:"architecture,omitzero"`
}

// The resources that can be enforced for a point.
const (
	CPUsKey   = "resources.cpus_per_worker"
	MemoryKey = "resources.memory"
)

// Enforces reports whether one of these resources must be enforced for the point.
func (p *Point) Enforces(key string) bool { return slices.Contains(p.Enforced, key) }

// Check says what in a point that was read back cannot be from a plan. It bounds
// what others compute with; the study was checked key by key when it was read.
func (p *Point) Check() error {
	if _, known := kinds()[p.Workload.Kind]; !known && p.Workload.Kind != "" {
		return fmt.Errorf("workload.kind = %q is not known", p.Workload.Kind)
	}
	for _, b := range []struct {
		name        string
		value, from int
	}{{"workers", p.Workers, 1}, {"nodes", p.Nodes, 1}, {"workers_per_node", p.WorkersPerNode, 1}, {"repeat", p.Repeat, 1},
		{"beside", p.Beside, 0}, {"beside_nodes", p.BesideNodes, 0},
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

// Ranks returns the number of processes of a run: the workers and the other ranks.
func (p *Point) Ranks() int { return p.Workers + p.Beside }

// Shape returns what a job asks for: nodes, and the number of ranks on each.
func (p *Point) Shape() (nodes, ranksPerNode int) {
	nodes = p.Nodes + p.BesideNodes
	return nodes, p.Ranks() / nodes
}

// Gather puts all ranks on one node, whatever the partitions of a cluster made of
// the point.
func (p *Point) Gather() {
	p.Nodes, p.WorkersPerNode = 1, p.Workers
	p.Beside, p.BesideNodes = min(p.Beside, 1), 0
}

// Lengths are the keys, by TOML path, that bound what a run does: lower, it is
// shorter. A command has those that it is told of.
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

// Key is the value of a key of the workload's own kind, by its name in the TOML,
// as text; ok is false where the kind has no such key.
func (p *Point) Key(name string) (text string, ok bool) {
	k, ok := kinds()[p.Workload.Kind]
	if !ok {
		return "", false
	}
	f, ok := k.fields().byKey[name]
	if !ok {
		return "", false
	}
	v := reflect.ValueOf(p.Workload).FieldByIndex(f.Index).Interface()
	if x, real := v.(float64); real {
		return strconv.FormatFloat(x, 'g', -1, 64), true
	}
	return fmt.Sprint(v), true
}

// WorkloadKeys are the TOML paths of the keys of the workload's kind.
func (p *Point) WorkloadKeys() []string {
	var list []string
	for _, f := range pointFields()[p.Workload.Kind] {
		if strings.HasPrefix(f.path, "workload.") {
			list = append(list, f.path)
		}
	}
	return list
}

// A Workload describes what is run: its kind, and a field for each kind. In the
// TOML and in JSON the keys of the workload's own kind stand beside "kind", and
// no others.
type Workload struct {
	Kind       string `toml:"kind"`
	Train      Train
	Collective Collective
	Serve      Serve
	Preprocess Preprocess
}

// Train are the keys of kind = "train".
type Train struct {
	Model     string `toml:"model" json:"model"`         // "resnet20", "resnet32", "resnet44", "resnet56", "cnn", "mlp", …
	Precision string `toml:"precision" json:"precision"` // "fp32"
	Batch     int    `toml:"batch" json:"batch"`         // per worker when weak, over all workers when strong
	Scaling   string `toml:"scaling" json:"scaling"`     // "weak" or "strong"

	LearningRate      float64 `toml:"learning_rate" json:"learning_rate"`             // at the reference batch
	ReferenceBatch    int     `toml:"reference_batch" json:"reference_batch"`         // global batch that learning_rate belongs to
	ScaleLearningRate string  `toml:"scale_learning_rate" json:"scale_learning_rate"` // "linear", "sqrt" or "none"
	WarmupEpochs      float64 `toml:"warmup_epochs" json:"warmup_epochs"`             // ramp from learning_rate to the scaled one
	Decay             string  `toml:"decay" json:"decay"`                             // "none", "step" or "cosine"
	DecayEpochs       []int   `toml:"decay_epochs" json:"decay_epochs"`               // for "step": the milestones
	DecayFactor       float64 `toml:"decay_factor" json:"decay_factor"`               // for "step": what is left of the rate after each
	Optimizer         string  `toml:"optimizer" json:"optimizer"`                     // "sgd", "adam" or "adamw"
	Momentum          float64 `toml:"momentum" json:"momentum"`                       // of SGD
	Beta1             float64 `toml:"beta1" json:"beta1"`                             // of Adam and AdamW, as the two below
	Beta2             float64 `toml:"beta2" json:"beta2"`
	Epsilon           float64 `toml:"epsilon" json:"epsilon"`
	WeightDecay       float64 `toml:"weight_decay" json:"weight_decay"`
	BatchNorm         string  `toml:"batch_norm" json:"batch_norm"` // "local" or "sync" statistics
	Augment           bool    `toml:"augment" json:"augment"`       // random crop (pad 4) and horizontal flip

	// How the step of a language model is computed; each is left out of point.json
	// where it is not given, as in every training written before the key existed.
	Sequence      int  `toml:"sequence" json:"sequence,omitzero"`           // tokens of a sample; 0: the model's own
	MicroBatch    int  `toml:"micro_batch" json:"micro_batch,omitzero"`     // samples of a worker that are computed at a time; 0: all
	Zero          int  `toml:"zero" json:"zero,omitzero"`                   // what the ranks share out, 1 to 3; 0: as the framework does
	Shard         int  `toml:"shard" json:"shard,omitzero"`                 // ranks that share one copy; 0: all
	Checkpointing bool `toml:"checkpointing" json:"checkpointing,omitzero"` // activations are computed again in the backward pass

	// Accumulate is the parts of a worker's batch whose gradients are added up before a
	// step. With MicroBatch, the batch is their product.
	Accumulate Degree `toml:"accumulate" json:"accumulate,omitzero"`
	// How a program of the user's own divides a model of TP·PP·CP ranks, of which there
	// are DP.
	TP Degree `toml:"tp" json:"tp,omitzero"` // tensors
	PP Degree `toml:"pp" json:"pp,omitzero"` // pipeline stages
	CP Degree `toml:"cp" json:"cp,omitzero"` // places of a sequence: context
	EP Degree `toml:"ep" json:"ep,omitzero"` // experts, among the ranks of a stage
	DP Degree `toml:"dp" json:"dp,omitzero"` // replicas; what the other degrees leave

	// Sample is what a sample is, one of measure.Samples; "": nobody says, and rates are
	// in samples/s.
	Sample string `toml:"sample" json:"sample,omitzero"`

	// The share of the device's peak that a language model used, by a convention of
	// package mfu, and that peak where the device is not in its table.
	MFU        string  `toml:"mfu" json:"mfu,omitzero"`
	PeakTFLOPS float64 `toml:"peak_tflops" json:"peak_tflops,omitzero"` // without sparsity; 0: the table's
	Recompute  string  `toml:"recompute" json:"recompute,omitzero"`     // what a program of the user's own computes again: "none", "selective" or "full"; "": not said

	Targets    []measure.Target `toml:"targets" json:"targets"`         // accuracies as fractions, { loss = 2.0 }
	Epochs     int              `toml:"epochs" json:"epochs"`           // 0: no such limit; the first limit met ends the run
	MaxSteps   int              `toml:"max_steps" json:"max_steps"`     // 0: no such limit
	MaxMinutes float64          `toml:"max_minutes" json:"max_minutes"` // of training time, 0: no such limit
	Until      string           `toml:"until" json:"until"`             // "targets": end once all targets are reached; "": do not
	SaveModel  bool             `toml:"save_model" json:"save_model"`   // as a file of the run folder, at the end of a good run
}

// Data is the training data.
type Data struct {
	Kind string `toml:"kind" json:"kind"` // "cifar10": CIFAR-10's binary format; "synthetic": made in memory; "text": its bytes; "tokens": of a text, as ids
	Path string `toml:"path" json:"path"` // folder, relative to the study file; point.json holds it absolute, variables expanded
	// Stage copies the folder to the nodes' own disks before the training
	// starts, once a node; where to the site file says.
	Stage bool `toml:"stage" json:"stage"`
	// TrainSamples and TestSamples use only the first so many; 0: all of them.
	TrainSamples int `toml:"train_samples" json:"train_samples"`
	TestSamples  int `toml:"test_samples" json:"test_samples"`
}

// Sequences reports whether samples are sequences of a text's tokens.
func (d Data) Sequences() bool { return d.Kind == "text" || d.Kind == "tokens" }

// Files are the names in the folder of a text, of what is learnt from and of what is
// tested with; none for other kinds.
func (d Data) Files() []string {
	switch d.Kind {
	case "text":
		return []string{"train.txt", "test.txt"}
	case "tokens":
		return []string{"train.bin", "val.bin"}
	}
	return nil
}

// Resources are the resources of every worker.
type Resources struct {
	Device         string   `toml:"device" json:"device"`                     // "cpu" or "gpu"
	WorkersPerNode int      `toml:"workers_per_node" json:"workers_per_node"` // at most so many ranks on a node; 0: as many as the site's nodes hold
	CPUsPerWorker  int      `toml:"cpus_per_worker" json:"cpus_per_worker"`
	Memory         Bytes    `toml:"memory" json:"memory"` // per worker; 0: the partition's default
	Time           Duration `toml:"time" json:"time"`     // wall-time limit of the job
	// Exclusive asks for whole nodes; nil means true. All points get the same: if only
	// the base had its nodes to itself, every speedup would be too low on a busy cluster.
	Exclusive *bool  `toml:"exclusive" json:"exclusive"`
	CPUBind   string `toml:"cpu_bind" json:"cpu_bind"` // srun --cpu-bind; "": the site's default
	// Launch says who starts the ranks: "srun" starts each (outside Slurm the
	// local launcher does), "torchrun" starts those of a node and is itself
	// started once a node.
	Launch string `toml:"launch" json:"launch"`
	MPI    string `toml:"mpi" json:"mpi"` // srun --mpi of the ranks, such as "pmix"; "": the cluster's default
}
