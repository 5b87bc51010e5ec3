package study

import (
	"maps"
	"testing"
	"time"
)

// Old studies leave keys out, so their defaults may never change. The values are copied from
// docs/reference/study.md.
func TestDefaults(t *testing.T) {
	for kind, want := range map[string]map[string]string{
		"train": {
			"workload.precision": `"fp32"`, "workload.batch": "128", "workload.scaling": `"weak"`, "workload.learning_rate": "0.1",
			"workload.reference_batch": "128", "workload.scale_learning_rate": `"linear"`, "workload.warmup_epochs": "5",
			"workload.decay": `"none"`, "workload.decay_factor": "0.1", "workload.optimizer": `"sgd"`, "workload.momentum": "0.9",
			"workload.beta1": "0.9", "workload.beta2": "0.999", "workload.epsilon": "1e-8", "workload.weight_decay": "0.0001",
			"workload.batch_norm": `"local"`, "workload.augment": "true", "workload.save_model": "false",
			"workload.epochs": "0", "workload.max_steps": "0", "workload.max_minutes": "0",
			"data.kind": `"cifar10"`, "data.stage": "false", "data.train_samples": "0", "data.test_samples": "0",
		},
		"collective": {
			"workload.backend": `"auto"`, "workload.min_bytes": `"8"`, "workload.max_bytes": `"64M"`,
			"workload.iterations": "20", "workload.warmup_iterations": "5",
		},
		"serve": {
			"workload.target": `"http"`, "workload.precision": `"fp32"`, "workload.startup": `"2m"`, "workload.ready": `"/v2/health/ready"`,
			"workload.batch": "[1]", "workload.duration": `"20s"`, "workload.timeout": `"5s"`, "workload.client": `"node"`, "workload.stream": "false",
			"workload.routing": `"round-robin"`, "workload.arrivals": `"poisson"`, "workload.max_concurrency": "1024",
		},
		"preprocess": {
			"workload.format": `"jpeg"`, "workload.generate": "0", "workload.cache": `"warm"`, "workload.shuffle": "false", "workload.passes": "1",
			"workload.threads": "0", "workload.decoder": `"auto"`, "workload.resize": "256", "workload.crop": "224", "workload.shard": `"64M"`,
			"workload.consumer": "0", "workload.batch": "32", "workload.learning_rate": "0.05", "workload.ceilings": "true",
		},
	} {
		got := keyTexts(&Point{Workload: kinds()[kind].defaults, Data: defaultData, Resources: defaultResources})
		maps.Copy(want, map[string]string{
			"resources.device": `"cpu"`, "resources.cpus_per_worker": "1", "resources.time": `"1h"`, "resources.launch": `"srun"`,
		})
		for path, text := range want {
			if got[path] != text {
				t.Errorf("%s: %s is %s by default, want %s", kind, path, got[path], text)
			}
		}
	}
}

// Each bound is accepted, and the next value is not.
func TestBounds(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		kind, path  string
		least, most any
		below, over any // nil: there is no such value
	}{
		{"train", "workload.batch", 1, 16777216, 0, 16777217},
		{"train", "workload.reference_batch", 1, 16777216, 0, 16777217},
		{"train", "workload.sequence", 0, 16777216, -1, 16777217},
		{"train", "workload.warmup_epochs", 0.0, 1e9, -0.5, nil},
		{"train", "workload.weight_decay", 0.0, 1.0, -1e-9, nil},
		{"train", "workload.learning_rate", 1e-12, 10.0, 0.0, nil},
		{"train", "workload.epsilon", 1e-30, 1.0, 0.0, nil},
		{"train", "workload.decay_factor", 1e-6, 0.999, 0.0, 1.0},
		{"train", "workload.momentum", 0.0, 0.999, -0.1, 1.0},
		{"train", "workload.beta1", 0.0, 0.999, -0.1, 1.0},
		{"train", "workload.beta2", 0.0, 0.999, -0.1, 1.0},
		{"collective", "workload.min_bytes", Bytes(4), Bytes(1099511627776), Bytes(3), Bytes(1099511627777)},
		{"collective", "workload.max_bytes", Bytes(4), Bytes(1099511627776), Bytes(3), Bytes(1099511627777)},
		{"collective", "workload.iterations", 1, 1048576, 0, 1048577},
		{"collective", "workload.warmup_iterations", 0, 1048576, -1, 1048577},
		{"serve", "workload.startup", Duration(time.Second), Duration(day), Duration(time.Second - 1), Duration(day + 1)},
		{"serve", "workload.duration", Duration(time.Second), Duration(day), Duration(time.Second - 1), Duration(day + 1)},
		{"serve", "workload.timeout", Duration(time.Millisecond), Duration(time.Hour), Duration(time.Millisecond - 1), Duration(time.Hour + 1)},
		{"serve", "workload.tolerance", 0.0, 0.999, -0.1, 1.0},
		{"serve", "workload.batch", []int{1}, []int{1048576}, []int{0}, []int{1048577}},
		{"serve", "workload.threads", []int{1}, []int{16384}, []int{0}, []int{16385}},
		{"preprocess", "workload.generate", 0, 1073741824, -1, 1073741825},
		{"preprocess", "workload.passes", 1, 1048576, 0, 1048577},
		{"preprocess", "workload.threads", 0, 4096, -1, 4097},
		{"preprocess", "workload.resize", 1, 16384, 0, 16385},
		{"preprocess", "workload.crop", 1, 16384, 0, 16385},
		{"preprocess", "workload.shard", Bytes(1048576), Bytes(1099511627776), Bytes(1048575), Bytes(1099511627777)},
		{"preprocess", "workload.batch", 1, 65536, 0, 65537},
		{"preprocess", "workload.consumer", 0.0, 1e9, -1.0, nil},
		{"preprocess", "workload.learning_rate", 1e-12, 10.0, 0.0, nil},
		{"train", "data.train_samples", 0, 1099511627776, -1, 1099511627777},
		{"train", "data.test_samples", 0, 1099511627776, -1, 1099511627777},
		{"train", "resources.workers_per_node", 0, 4096, -1, 4097},
		{"train", "resources.cpus_per_worker", 1, 4096, 0, 4097},
		{"train", "resources.memory", Bytes(0), Bytes(1125899906842624), Bytes(-1), Bytes(1125899906842625)},
		{"train", "resources.time", Duration(time.Minute), Duration(366 * day), Duration(time.Minute - 1), Duration(366*day + 1)},
	} {
		r, ok := ruleOf(kinds()[c.kind], c.path)
		if !ok {
			t.Errorf("%s: %s has no rule", c.kind, c.path)
			continue
		}
		for _, v := range []any{c.least, c.most} {
			if wrong := r(v); wrong != "" {
				t.Errorf("%s: %s = %v is refused: %s", c.kind, c.path, v, wrong)
			}
		}
		for _, v := range []any{c.below, c.over} {
			if v != nil && r(v) == "" {
				t.Errorf("%s: %s = %v is accepted", c.kind, c.path, v)
			}
		}
	}
}
