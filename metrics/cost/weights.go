package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Weights are a partition's TRESBillingWeights (slurm.conf(5)), from which Slurm computes a
// job's billing units.
type Weights struct {
	// Max bills the largest of the weighted amounts instead of their sum, as with
	// PriorityFlags=MAX_TRES.
	Max  bool
	tres map[string]float64 // "cpu", "mem" (per MiB), "node", "gres/gpu", "gres/gpu:a100"
}

// ParseWeights parses the form in slurm.conf: "CPU=1.0,Mem=0.25G,GRES/gpu=2.0". Memory
// counts in MiB unless the weight has a suffix: 0.25G is a quarter of a unit per GiB.
func ParseWeights(s string, takeMax bool) (*Weights, error) {
	w := &Weights{Max: takeMax, tres: map[string]float64{}}
	for item := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		name := strings.ToLower(strings.TrimSpace(key))
		if !ok {
			return nil, fmt.Errorf("%q is not a weight; write them as slurm.conf does, like \"CPU=1.0,Mem=0.25G,GRES/gpu=2.0\"", item)
		}
		if _, typed := strings.CutPrefix(name, "gres/gpu:"); !typed && !slices.Contains([]string{"cpu", "mem", "node", "gres/gpu"}, name) {
			return nil, fmt.Errorf("%q is not recorded by runs; valid: CPU, Mem, Node, GRES/gpu, GRES/gpu:TYPE", key)
		}
		value = strings.TrimSpace(value)
		scale := 1.0
		digits := strings.TrimRight(value, "KMGTPkmgtp")
		if suffix := value[len(digits):]; name == "mem" && len(suffix) == 1 {
			scale = math.Pow(1024, float64(1-strings.Index("KMGTP", strings.ToUpper(suffix))))
			value = digits
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a weight of %s; want a number of 0 or more (for Mem, followed by K, M, G, T or P)", value, key)
		}
		if _, twice := w.tres[name]; twice {
			return nil, fmt.Errorf("%s has two weights", key)
		}
		w.tres[name] = x * scale
	}
	return w, nil
}

// Units returns the billing units of a use: the sum or the maximum of the weighted amounts
// over all its nodes, rounded down as in Slurm.
func (w *Weights) Units(u Use) (float64, error) {
	var sum, largest float64
	for _, name := range slices.Sorted(maps.Keys(w.tres)) {
		weight := w.tres[name]
		if weight == 0 {
			continue
		}
		n, what, known := 0.0, "", true
		count := func(of *int, words string) {
			if what, known = words, of != nil; known {
				n = float64(*of)
			}
		}
		switch name {
		case "cpu":
			count(u.CPUs, "CPUs")
		case "node":
			count(u.Nodes, "nodes")
		case "mem":
			if what, known = "bytes of memory", u.MemoryBytes != nil; known {
				n = float64(*u.MemoryBytes) / (1 << 20)
			}
		case "gres/gpu":
			count(u.GPUs, "GPUs")
		default:
			kind := strings.TrimPrefix(name, "gres/gpu:")
			switch {
			case u.GPUs != nil && *u.GPUs == 0:
			case u.GPUType == "":
				return 0, fmt.Errorf("its billing weights name %s, but the type of its GPUs is not recorded", name)
			case strings.EqualFold(kind, u.GPUType):
				count(u.GPUs, "GPUs")
			}
		}
		if !known {
			return 0, fmt.Errorf("its billing weights count %s, but the number is not recorded", what)
		}
		sum += weight * n
		largest = max(largest, weight*n)
	}
	if w.Max {
		sum = largest
	}
	return math.Floor(sum * (1 + 1e-12)), nil
}

// String lists the weights, sorted by name: "max of cpu=1, mem=0.25G".
func (w *Weights) String() string {
	names := slices.Sorted(maps.Keys(w.tres))
	for i, name := range names {
		if name == "mem" {
			names[i] = "mem=" + number.Exact(w.tres[name]*1024) + "G"
		} else {
			names[i] = name + "=" + number.Exact(w.tres[name])
		}
	}
	how := "sum"
	if w.Max {
		how = "max"
	}
	return how + " of " + strings.Join(names, ", ")
}
