package framework

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// A placeholder is a word in braces in [command] that is replaced by a value of the run.
type placeholder struct {
	name   string
	uses   []string // keys that determine the value, by TOML path
	rank   bool     // the value differs between the ranks of a node
	serves bool     // only replicas of a service have it
	// value returns the replacement text. "" means that the study should have set it; Check refuses that.
	value func(Rank) string
}

// count makes the value function of an integer placeholder.
func count[N int | int64](of func(Rank) N) func(Rank) string {
	return func(s Rank) string { return strconv.FormatInt(int64(of(s)), 10) }
}

// number makes the value function of a floating-point placeholder, with as many digits as needed to be exact.
func number(of func(Rank) float64) func(Rank) string {
	return func(s Rank) string { return strconv.FormatFloat(of(s), 'g', -1, 64) }
}

var (
	batchKey      = "workload.batch"
	microKey      = "workload.micro_batch"
	accumulateKey = "workload.accumulate"
	batchKeys     = []string{batchKey, "workload.scaling"}
	rateKeys      = []string{"workload.learning_rate", "workload.reference_batch", "workload.scale_learning_rate", batchKey, "workload.scaling"}
)

// placeholders are all placeholders, in the order of the documentation.
var placeholders = []placeholder{
	{name: "workers", value: count(func(s Rank) int { return s.Point.Workers })},
	{name: "nodes", value: count(func(s Rank) int { return s.Point.Nodes })},
	{name: "workers_per_node", value: count(func(s Rank) int { return s.Point.WorkersPerNode })},
	{name: "cpus_per_worker", value: count(func(s Rank) int { return s.Point.Resources.CPUsPerWorker })},
	{name: "device", value: func(s Rank) string { return s.Point.Resources.Device }},

	{name: "batch", uses: batchKeys, value: count(func(s Rank) int { return s.Point.WorkerBatch })},
	{name: "global_batch", uses: batchKeys, value: count(func(s Rank) int { return s.Point.GlobalBatch })},
	{name: "micro_batch", uses: []string{microKey}, value: set(func(s Rank) int { return s.Point.MicroBatch })},
	{name: "accumulate", uses: []string{accumulateKey}, value: set(parts)},
	{name: "tp", uses: []string{"workload.tp"}, value: count(func(s Rank) int { return max(1, int(s.Point.Workload.Train.TP)) })},
	{name: "pp", uses: []string{"workload.pp"}, value: count(func(s Rank) int { return max(1, int(s.Point.Workload.Train.PP)) })},
	{name: "cp", uses: []string{"workload.cp"}, value: count(func(s Rank) int { return max(1, int(s.Point.Workload.Train.CP)) })},
	{name: "ep", uses: []string{"workload.ep"}, value: count(func(s Rank) int { return max(1, int(s.Point.Workload.Train.EP)) })},
	{name: "dp", uses: []string{"workload.dp"}, value: count(func(s Rank) int { return s.Point.Replicas() })},
	{name: "zero", uses: []string{"workload.zero"}, value: count(func(s Rank) int { return s.Point.Workload.Train.Zero })},
	{name: "checkpointing", uses: []string{"workload.checkpointing"}, value: func(s Rank) string { return strconv.FormatBool(s.Point.Workload.Train.Checkpointing) }},
	{name: "learning_rate", uses: rateKeys, value: number(func(s Rank) float64 { return s.Point.LearningRate })},
	{name: "base_learning_rate", uses: rateKeys[:1], value: number(func(s Rank) float64 { return s.Point.Workload.Train.LearningRate })},
	{name: "warmup_epochs", uses: []string{"workload.warmup_epochs"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.WarmupEpochs })},
	{name: "momentum", uses: []string{"workload.momentum"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.Momentum })},
	{name: "optimizer", uses: []string{"workload.optimizer"}, value: func(s Rank) string { return s.Point.Workload.Train.Optimizer }},
	{name: "beta1", uses: []string{"workload.beta1"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.Beta1 })},
	{name: "beta2", uses: []string{"workload.beta2"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.Beta2 })},
	{name: "epsilon", uses: []string{"workload.epsilon"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.Epsilon })},
	{name: "weight_decay", uses: []string{"workload.weight_decay"}, value: number(func(s Rank) float64 { return s.Point.Workload.Train.WeightDecay })},
	{name: "model", uses: []string{"workload.model"}, value: func(s Rank) string { return s.Point.Workload.Train.Model }},
	{name: "sequence", uses: []string{"workload.sequence", "workload.model"}, value: set(func(s Rank) int { return cmp.Or(s.Point.Workload.Train.Sequence, s.Point.Architecture.Sequence) })},
	{name: "precision", uses: []string{"workload.precision"}, value: func(s Rank) string { return s.Point.Workload.Train.Precision }},
	{name: "epochs", uses: []string{"workload.epochs"}, value: set(func(s Rank) int { return s.Point.Workload.Train.Epochs })},
	{name: "max_steps", uses: []string{"workload.max_steps"}, value: set(func(s Rank) int { return s.Point.Workload.Train.MaxSteps })},
	{name: "seed", value: count(func(s Rank) int64 { return s.Point.Seed })},
	{name: "repeat", value: count(func(s Rank) int { return s.Point.Repeat })},

	{name: "data", uses: []string{"data.path"}, value: func(s Rank) string { return s.Point.Data.Path }},
	{name: "train_samples", uses: []string{"data.train_samples"}, value: set(func(s Rank) int { return s.Point.Data.TrainSamples })},
	{name: "test_samples", uses: []string{"data.test_samples"}, value: set(func(s Rank) int { return s.Point.Data.TestSamples })},
	{name: "study", value: func(s Rank) string { return s.Point.Command.Folder }},
	{name: "output", value: func(s Rank) string { return s.Run.Output() }},
	{name: "checkpoint", value: func(s Rank) string { return s.Run.Checkpoints() }},
	{name: "resume", value: func(s Rank) string { return s.Resume }},
	{name: "python", value: func(s Rank) string { return s.interpreter() }},

	{name: "rank", rank: true, value: count(func(s Rank) int { return s.World.Rank })},
	{name: "local_rank", rank: true, value: count(func(s Rank) int { return s.World.LocalRank })},
	{name: "node", value: count(func(s Rank) int { return s.World.Node })},
	{name: "hosts", value: func(s Rank) string { return strings.Join(s.hosts(), ",") }},
	{name: "address", serves: true, value: func(s Rank) string { return s.Listen }},
	{name: "port", serves: true, value: count(func(s Rank) int { return s.Ports.Of(s.Point.Workload.Serve.Target) })},
	{name: "http_port", serves: true, value: count(func(s Rank) int { return s.Ports.HTTP })},
	{name: "grpc_port", serves: true, value: count(func(s Rank) int { return s.Ports.GRPC })},
	{name: "metrics_port", serves: true, value: count(func(s Rank) int { return s.Ports.Metrics })},
	{name: "master_addr", value: func(s Rank) string { return s.World.Address }},
	{name: "master_port", value: count(func(s Rank) int { return s.World.Port })},
}

// placeholderOf returns the first placeholder whose value depends on a key, or "".
func placeholderOf(path string, p study.Point) string {
	if name, ok := strings.CutPrefix(path, "workload."); ok && !p.Workload.Trains() {
		return "{" + name + "}"
	}
	for _, q := range placeholders {
		if slices.Contains(q.uses, path) {
			return "{" + q.name + "}"
		}
	}
	return ""
}

// parts returns the number of parts in which a worker's batch is computed; 0 if the study does not set it.
func parts(s Rank) int {
	if s.Point.MicroBatch == 0 {
		return 0
	}
	return s.Point.WorkerBatch / s.Point.MicroBatch
}

// from returns the keys that determine a placeholder's value in a point: of batch, micro_batch and accumulate,
// two determine the third.
func (q placeholder) from(p study.Point) []string {
	t := p.Workload.Train
	switch {
	case q.name == "micro_batch" && t.MicroBatch == 0 && t.Accumulate > 0:
		return append([]string{accumulateKey}, batchKeys...)
	case q.name == "accumulate" && t.Accumulate == 0 && t.MicroBatch > 0:
		return append([]string{microKey}, batchKeys...)
	case t.Accumulates() && slices.Contains(q.uses, batchKey):
		others := slices.DeleteFunc(slices.Clone(q.uses), func(key string) bool { return slices.Contains(batchKeys, key) })
		return append(others, microKey, accumulateKey)
	}
	return q.uses
}

// set makes the value function of a count that is "" if the study does not set it.
func set(of func(Rank) int) func(Rank) string {
	return func(s Rank) string {
		if of(s) == 0 {
			return ""
		}
		return strconv.Itoa(of(s))
	}
}

// braces matches a placeholder, or one in doubled braces, which yields its name in single braces.
// All other braces are left alone, so that JSON need not be escaped.
var braces = regexp.MustCompile(`\{\{(?:parameters\.)?[a-z_][a-z0-9_]*\}\}|\{(?:parameters\.)?[a-z_][a-z0-9_]*\}`)

// expand replaces the placeholders in a text by the values of a run.
func expand(text string, s Rank) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		if name, doubled := strings.CutPrefix(found, "{{"); doubled {
			return "{" + strings.TrimSuffix(name, "}")
		}
		return findPlaceholder(found, s.Point).value(s) // unknown ones were refused when the study was read
	})
}

// findPlaceholder returns the placeholder for "{name}" in a point: a value of the run, a key of the workload,
// or a parameter of the study. An unknown one has no name, and its text as its value.
func findPlaceholder(found string, p study.Point) placeholder {
	name := strings.Trim(found, "{}")
	if i := slices.IndexFunc(placeholders, func(q placeholder) bool { return q.name == name && q.fits(p) && !q.yields(p) }); i >= 0 {
		q := placeholders[i]
		q.uses = q.from(p)
		return q
	}
	if own := strings.TrimPrefix(name, "parameters."); p.Own[own].Value != nil {
		return placeholder{name: name, uses: []string{"parameters." + own}, value: func(s Rank) string { return s.Point.Own[own].String() }}
	}
	if _, ok := p.Key(name); ok && !p.Workload.Trains() {
		return placeholder{name: name, uses: []string{"workload." + name}, value: func(s Rank) string { text, _ := s.Point.Key(name); return text }}
	}
	return placeholder{value: func(Rank) string { return found }}
}

// fits reports whether the placeholder means something in a point: batches and
// rates are a training's.
func (q placeholder) fits(p study.Point) bool {
	if q.serves {
		return p.Workload.UnderLoad()
	}
	return p.Workload.Trains() || len(q.uses) == 0 || !strings.HasPrefix(q.uses[0], "workload.")
}

// yields reports whether the study has its own parameter of this name, defined before the
// placeholder was.
func (q placeholder) yields(p study.Point) bool {
	return study.Yields(q.name) && p.Own[q.name].Value != nil
}

// named returns the placeholders in a text, as written.
func named(text string) []string {
	return slices.DeleteFunc(braces.FindAllString(text, -1), func(found string) bool { return strings.HasPrefix(found, "{{") })
}

// wrongPlaceholder returns what is wrong with a text's placeholders in a point, or "".
func wrongPlaceholder(text string, p study.Point) string {
	for _, found := range named(text) {
		q := findPlaceholder(found, p)
		switch {
		case q.name == "":
			name := strings.TrimPrefix(strings.Trim(found, "{}"), "parameters.")
			return fmt.Sprintf("%s is not a placeholder%s To define it, set %s = … in [parameters]; {%s} is the text %s", found, nearPlaceholders(name, p), name, found, found)
		case q.rank && byTorchrun(p):
			return fmt.Sprintf("%s differs between the ranks of a node, and launch = \"torchrun\" is given one command line for all of them; read $RANK and $LOCAL_RANK in the program", found)
		case q.rank && p.Command.Start == "node":
			return fmt.Sprintf("%s differs between the ranks of a node, and start = \"node\" starts one process for all of them; {node} says which node it is", found)
		case (q.rank || q.name == "node") && once(p):
			return fmt.Sprintf("%s differs between the ranks, and start = \"once\" starts one process for all of them; {workers}, {nodes} and {workers_per_node} say how many there are", found)
		case len(q.uses) > 0 && !strings.HasPrefix(q.uses[0], "parameters.") && q.value(Rank{Point: p}) == "":
			return fmt.Sprintf("%s is used, but %s is not set", found, q.uses[0])
		}
	}
	return ""
}

// nearPlaceholders says which placeholders of a point are meant by an unknown name or, if none is similar, names some.
func nearPlaceholders(name string, p study.Point) string {
	names := p.Own.Names()
	for _, q := range placeholders {
		if q.fits(p) {
			names = append(names, q.name)
		}
	}
	if near := study.NearWords(name, names); len(near) > 0 {
		return "; did you mean {" + strings.Join(near, "} or {") + "}?"
	}
	return "; some are {" + strings.Join(names[:min(len(names), 8)], "}, {") + "} (docs/frameworks.md lists all)."
}
