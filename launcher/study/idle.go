package study

import (
	"fmt"
	"maps"
	"slices"
)

// idle says why a key has no effect on a point, and which other key causes that.
type idle struct{ why, from string }

// idleKeys returns the keys that scalebench's own trainers ignore at a point, by TOML path.
// It must agree with what the trainers in launcher/native/train and
// launcher/framework/programs read. For user's programs, see untold.
func idleKeys(p *Point) map[string]idle {
	t := p.Workload.Train
	list := map[string]idle{}
	add := func(from, setting string, used bool, paths ...string) {
		for _, path := range paths {
			if !used {
				list[path] = idle{setting, from}
			}
		}
	}
	sgd := t.Optimizer == "sgd"
	add("workload.optimizer", fmt.Sprintf("optimizer = %q does not use it (\"sgd\" does)", t.Optimizer), sgd, "workload.momentum")
	add("workload.optimizer", "optimizer = \"sgd\" does not use it (\"adam\" and \"adamw\" do)", !sgd, "workload.beta1", "workload.beta2", "workload.epsilon")
	add("workload.decay", fmt.Sprintf("decay = %q does not use it (\"step\" does)", t.Decay), t.Decay == "step", "workload.decay_epochs", "workload.decay_factor")
	add("workload.scale_learning_rate", "scale_learning_rate = \"none\" does not use it (\"linear\" and \"sqrt\" do)", t.ScaleLearningRate != "none", "workload.reference_batch")
	decoder := p.Architecture.Layers > 0
	add("workload.model", fmt.Sprintf("model = %q has no batch normalisation (\"cnn\" and the ResNets have)", t.Model), t.Model != "mlp" && !decoder, "workload.batch_norm")
	_, ownModel := ParseFunction(t.Model)
	add("workload.model", fmt.Sprintf("model = %q does not use it (language models do)", t.Model), decoder || ownModel, "workload.micro_batch", "workload.zero", "workload.shard", "workload.checkpointing", "workload.accumulate")
	add("framework", fmt.Sprintf("framework = %q keeps a whole model on each worker, or shares it out with zero (\"command\" divides models)", p.Framework), false, degreeKeys...)
	add("framework", fmt.Sprintf("framework = %q recomputes what checkpointing says (\"command\" has recompute)", p.Framework), false, "workload.recompute")
	_, own := ParseFunction(p.Data.Kind)
	add("data.kind", fmt.Sprintf("data.kind = %q has no sequences to cut (\"text\" and \"tokens\" have)", p.Data.Kind), p.Data.Sequences() || own && decoder, "workload.sequence")
	add("data.kind", fmt.Sprintf("the data of %q is not augmented (\"cifar10\" and \"synthetic\" are)", p.Data.Kind), !own && !p.Data.Sequences(), "workload.augment")
	add("data.kind", "data.kind = \"synthetic\" is made in memory and reads no folder (\"cifar10\" does)", p.Data.Kind != "synthetic", "data.path")
	return list
}

// undeliverable returns the keys that a user's program cannot receive, because there is no
// placeholder for them.
func undeliverable(f Framework, p *Point) map[string]idle {
	list := map[string]idle{}
	for _, field := range pointFields()[p.Workload.Kind] {
		if p.Reaches(field.path) {
			continue
		}
		why := "no placeholder passes it to the command; leave it out, or give the program a key of your own in [parameters]"
		if word := f.placeholder(field.path, p); word != "" {
			why = fmt.Sprintf("[command] does not use it; write %s where the program takes it, or leave the key out", word)
		}
		list[field.path] = idle{why, "command.run"}
	}
	return list
}

// batchKeys determine a worker's batch, unless micro_batch and accumulate determine it.
var (
	batchKeys   = []string{"workload.batch", "workload.scaling"}
	accumulated = idle{"the batch of each worker is micro_batch times accumulate", "workload.accumulate"}
)

// Sets reports whether the study sets or sweeps the key with this TOML path.
func (s *Study) Sets(path string) bool {
	return s.sets(path) || slices.ContainsFunc(s.axes, func(a axis) bool { return a.path == path })
}

// sets reports whether the study sets the key with this TOML path, in its file or on the
// command line.
func (s *Study) sets(path string) bool { return s.lines[path] != 0 }

// ignored records which of the study's keys affect the point p and which do not. A swept
// key must affect every point; otherwise two points would be identical.
func (x *expansion) ignored(f Framework, p *Point) {
	var idle map[string]idle
	switch {
	case f.Uses != nil:
		idle = undeliverable(f, p)
	case !f.Command && p.Workload.Trains():
		idle = idleKeys(p)
	}
	product := p.Workload.Trains() && p.Workload.Train.Accumulates() && idle != nil
	for _, path := range batchKeys {
		if product {
			idle[path] = accumulated
		}
	}
	for _, field := range pointFields()[p.Workload.Kind] {
		why, none := idle[field.path]
		if !none {
			x.used[field.path] = true
			continue
		}
		x.idle[field.path] = why
		for _, a := range x.study.axes {
			if a.path == field.path && len(a.values) > 1 && (f.Uses == nil || why == accumulated) { // for a user's program, unheard reports it
				x.problem(a.path, "is swept, but "+why.why+", so every value would run the same; leave those points out with [[exclude]], or sweep it in a separate study", why.from)
			}
		}
	}
}

// unused adds a problem for each key that the study sets although it affects none of its
// points.
func (x *expansion) unused() {
	for _, path := range slices.Sorted(maps.Keys(x.idle)) {
		alone := slices.ContainsFunc(x.study.axes, func(a axis) bool { return a.path == path && len(a.values) == 1 })
		if !x.used[path] && (alone || x.study.sets(path)) {
			why := x.idle[path]
			x.problem(path, "would be ignored: "+why.why, why.from)
		}
	}
}
