package study

import (
	"fmt"
	"slices"
)

// Collective holds the keys of kind = "collective", a benchmark of collective operations.
type Collective struct {
	Ops              []string `toml:"ops" json:"ops"`                             // operations to measure, from CollectiveOps; empty: all
	Backend          string   `toml:"backend" json:"backend"`                     // one of CollectiveBackends
	MinBytes         Bytes    `toml:"min_bytes" json:"min_bytes"`                 // smallest size of the whole array
	MaxBytes         Bytes    `toml:"max_bytes" json:"max_bytes"`                 // largest; sizes double in between
	Iterations       int      `toml:"iterations" json:"iterations"`               // timed iterations for each size
	WarmupIterations int      `toml:"warmup_iterations" json:"warmup_iterations"` // iterations before the timed ones
}

// CollectiveOps are the names of the operations, as in nccl-tests. The benchmark has the
// same list; this copy lets scalebench check a study without linking the benchmark. A test
// of the worker compares the two lists.
var CollectiveOps = []string{"all_reduce", "reduce_scatter", "all_gather", "broadcast"}

// CollectiveBackends are the libraries and transports that can run the operations. "auto"
// chooses as the native trainer does, "tcp" and "shm" force one transport, and "nccl" runs
// on GPUs.
var CollectiveBackends = []string{"auto", "tcp", "shm", "nccl"}

func (Collective) kind() kind { return collective }

var collective = kind{
	onGPUs:     true,
	bounds:     []string{"workload.iterations", "workload.max_bytes"},
	frameworks: []string{"native"},
	defaults: Workload{Kind: "collective", Collective: Collective{
		Ops:              []string{},
		Backend:          "auto",
		MinBytes:         8,
		MaxBytes:         64 << 20,
		Iterations:       20,
		WarmupIterations: 5,
	}},
	rules: map[string]rule{
		"workload.ops":               collectiveOps,
		"workload.backend":           among(CollectiveBackends...),
		"workload.min_bytes":         within(4, 1<<40),
		"workload.max_bytes":         within(4, 1<<40),
		"workload.iterations":        within(1, 1<<20),
		"workload.warmup_iterations": within(0, 1<<20),
	},
	follows: map[string][]string{
		"workload.max_bytes": {"workload.min_bytes"},
		"workload.backend":   {"resources.device"},
	},
	expand: expandCollective,
}

func collectiveOps(v any) string {
	list := v.([]string)
	for i, op := range list {
		if !slices.Contains(CollectiveOps, op) {
			return oneOf(op, quoted(CollectiveOps))
		}
		if slices.Contains(list[:i], op) {
			return fmt.Sprintf("%q is listed twice", op)
		}
	}
	return ""
}

func expandCollective(p *Point) map[string]string {
	wrong := map[string]string{}
	w := &p.Workload.Collective
	if len(w.Ops) == 0 {
		w.Ops = slices.Clone(CollectiveOps)
	}
	if w.MaxBytes < w.MinBytes {
		wrong["workload.max_bytes"] = fmt.Sprintf("%v is less than workload.min_bytes, %v", w.MaxBytes, w.MinBytes)
	}
	if p.Workers < 2 {
		wrong["workers"] = fmt.Sprintf("a collective needs 2 or more workers, got %d", p.Workers)
	}
	if gpu := p.Resources.Device == "gpu"; gpu != (w.Backend == "nccl") {
		wrong["workload.backend"] = fmt.Sprintf("%q does not run with resources.device = %q: \"nccl\" is for \"gpu\", the others are for \"cpu\"", w.Backend, p.Resources.Device)
	}
	return wrong
}
