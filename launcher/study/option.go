package study

import (
	"errors"
	"reflect"
	"strings"

	"github.com/scalebench/scalebench/slurm/notation"
)

// decides says, for messages, which key determines an sbatch option. Its keys are the
// names of fields of slurm.Script.
var decides = map[string]string{
	"JobName": "set by scalebench to find its jobs", "Partition": "set by [[partitions]]",
	"Account": "set by account, of the site or of a partition", "QOS": "set by qos, of the site or of a partition",
	"Nodes": "set by sweep.workers and resources.workers_per_node of the study", "TasksPerNode": "set by resources.workers_per_node of the study",
	"CPUsPerTask": "set by resources.cpus_per_worker of the study", "GPUsPerNode": "set by resources.device of the study and gpu_type of the partition",
	"MemoryPerNodeMB": "set by resources.memory of the study", "Time": "set by resources.time of the study",
	"Exclusive": "set by resources.exclusive of the study", "Requeue": "set by policy.requeue of the study",
	"SignalBefore": "set by scalebench to warn programs before the time limit", "Hint": "set by hint",
	"Output": "set by scalebench, which reads the job's log in the run folder", "Workdir": "set by scalebench",
	"Pack": "set by policy.packing of the study", "Command": "set by scalebench", "Container": "set by [container]",
	"Submit":  "set by scalebench, which reads sbatch's answer",
	"Cluster": "set by scalebench, which asks one cluster after its jobs; submit from a login node of the other",
}

// decidedBy returns a text that says where a key belongs that was found in a study, if
// it is a key of the site file or an sbatch option; "" otherwise.
func decidedBy(key string) string {
	if _, ok := fieldsOf(reflect.TypeFor[Site]()).byKey[key]; ok {
		return key + " is a key of the site file"
	}
	name := strings.ReplaceAll(key, "_", "-")
	for _, o := range notation.Options() {
		switch {
		case o.Name != name:
		case o.Field == "":
			return name + " is an option of sbatch: write it under [options] of the site file"
		default:
			by := decides[o.Field]
			if strings.HasSuffix(by, "]]") || strings.HasSuffix(by, "]") {
				by += " of the site file"
			}
			return name + " is " + by
		}
	}
	return ""
}

func (d *decoder) options(at string, options map[string]string) {
	for name, value := range options {
		err := notation.CheckOption(name, value)
		if err == nil {
			continue
		}
		message := err.Error()
		if owned, ok := errors.AsType[*notation.OwnedError](err); ok {
			message = owned.Means() + "is " + decides[owned.Option.Field]
		}
		d.rule(join(at, name), message)
	}
}
