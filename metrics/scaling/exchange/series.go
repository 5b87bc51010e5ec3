package exchange

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// bearing are the parameters that bear on the speed of a collective; which
// operations and sizes were measured, and how often, does not.
var bearing = []string{"framework", "workload.backend", "resources.device", "resources.cpus_per_worker"}

// Series says what tells a run from the others among these, beside the
// operation and the placement: "tcp", "native, AMD EPYC 7763". It is "" for all
// where nothing does. What a run did not record is named where others differ
// in it.
func Series(runs []Run) func(Run) string {
	facts := func(r Run) []string {
		var list []string
		for _, key := range bearing {
			text := ""
			if v, ok := r.Parameters[key]; ok {
				text = fmt.Sprint(v)
				if key == "resources.cpus_per_worker" {
					text += " CPUs a worker"
				}
			}
			list = append(list, text)
		}
		for _, field := range []string{fingerprint.CPU, fingerprint.GPU, fingerprint.NCCL, fingerprint.Interface} {
			list = append(list, r.Fingerprint[field])
		}
		return list
	}
	var values [][]string // by fact
	for _, r := range runs {
		for i, v := range facts(r) {
			if i == len(values) {
				values = append(values, nil)
			}
			if v != "" && !slices.Contains(values[i], v) {
				values[i] = append(values[i], v)
			}
		}
	}
	return func(r Run) string {
		var parts []string
		for i, v := range facts(r) {
			if len(values[i]) > 1 && v != "" {
				parts = append(parts, v)
			}
		}
		return strings.Join(parts, ", ")
	}
}
