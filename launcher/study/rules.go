package study

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A rule checks a single value of a key: it returns what is wrong and what is valid, or "". Whether
// the values of several keys are consistent is checked later, for each point.
type rule func(value any) string

func notEmpty(v any) string {
	if v.(string) == "" {
		return "missing"
	}
	return ""
}

func among(valid ...string) func(any) string {
	return func(v any) string {
		if slices.Contains(valid, v.(string)) {
			return ""
		}
		return oneOf(v.(string), quoted(valid))
	}
}

func quoted(list []string) []string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return q
}

func within(low, high int64) func(any) string {
	return func(v any) string {
		if n := reflect.ValueOf(v).Int(); n < low || n > high {
			return fmt.Sprintf("want %d to %d, got %d", low, high, n)
		}
		return ""
	}
}

func finite(v any) (float64, string) {
	x := v.(float64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x, fmt.Sprintf("want a finite number, got %g", x)
	}
	return x, ""
}

func atLeast(low float64) func(any) string {
	return func(v any) string {
		x, wrong := finite(v)
		if wrong == "" && x < low {
			wrong = fmt.Sprintf("want %g or more, got %g", low, x)
		}
		return wrong
	}
}

func above(low float64) func(any) string {
	return func(v any) string {
		x, wrong := finite(v)
		if wrong == "" && x <= low {
			wrong = fmt.Sprintf("want more than %g, got %g", low, x)
		}
		return wrong
	}
}

func fraction(v any) string {
	if x := v.(float64); !(x >= 0 && x < 1) {
		return fmt.Sprintf("want 0 or more and less than 1, got %g", x)
	}
	return ""
}

func share(v any) string {
	if x := v.(float64); !(x > 0 && x < 1) {
		return fmt.Sprintf("want more than 0 and less than 1, got %g", x)
	}
	return ""
}

func targets(v any) string {
	seen := map[measure.Target]bool{}
	for _, t := range v.([]measure.Target) {
		if seen[t] {
			return fmt.Sprintf("%s is listed twice", t)
		}
		seen[t] = true
	}
	return ""
}

func ascending(v any) string {
	last := 0
	for _, n := range v.([]int) {
		if n <= last {
			return fmt.Sprintf("want epochs from 1 in rising order, got %d after %d", n, last)
		}
		last = n
	}
	return ""
}

func oneLine(v any) string {
	if strings.ContainsAny(v.(string), "\n\r\x00") {
		return "want a single line"
	}
	return ""
}

var mpiForm = regexp.MustCompile(`^([a-z0-9_]{1,32})?$`)

func mpiType(v any) string {
	if !mpiForm.MatchString(v.(string)) {
		return "want a type of `srun --mpi=list`, like \"pmix\" or \"pmi2\""
	}
	return ""
}

// dataRules and resourceRules apply to every kind of workload.
var (
	defaultData = Data{Kind: "cifar10"}
	dataRules   = map[string]rule{
		"data.kind":          dataKind,
		"data.path":          oneLine,
		"data.train_samples": within(0, 1<<40),
		"data.test_samples":  within(0, 1<<40),
	}

	defaultResources = Resources{Device: "cpu", CPUsPerWorker: 1, Time: Duration(3600e9), Launch: "srun"}
	resourceRules    = map[string]rule{
		"resources.device":           among("cpu", "gpu"),
		"resources.workers_per_node": within(0, 4096),
		"resources.cpus_per_worker":  within(1, 4096),
		"resources.memory":           within(0, 1<<50),
		"resources.time":             within(60e9, 366*86400e9),
		"resources.cpu_bind":         oneLine,
		"resources.mpi":              mpiType,
		"resources.launch":           among("srun", "torchrun"),
	}
)

// ruleOf returns the rule for the key with this TOML path; false: none.
func ruleOf(k kind, path string) (rule, bool) {
	for _, rules := range []map[string]rule{k.rules, dataRules, commandRules, resourceRules, sweepRules} {
		if r, ok := rules[path]; ok {
			return r, true
		}
	}
	return nil, false
}

// checkValues checks every value of the study with the rule for its key, in tables and in
// the sweep.
func (d *decoder) checkValues(k kind, s *Study) {
	swept := map[string]bool{}
	for _, a := range s.axes {
		swept[a.path] = true
		r, ok := ruleOf(k, a.path)
		for i, v := range a.values {
			if !ok {
				break
			}
			d.rule(fmt.Sprintf("sweep.%s[%d]", a.key, i), r(v.Interface()))
		}
	}
	base := Point{Workload: s.Workload, Data: s.Data, Command: s.Command, Resources: s.Resources}
	for _, f := range pointFields()[s.Workload.Kind] {
		if f.path == "workers" || slices.Contains(k.brought, f.path) && s.bringsAll() && !d.has(f.path) {
			continue // only the sweep has workers
		}
		r, ok := ruleOf(k, f.path)
		if !ok || swept[f.path] || d.has("sweep."+f.path) || d.has("sweep."+f.key) && f.path == "workload."+f.key {
			continue
		}
		if wrong := r(f.in(&base).Interface()); wrong != "" && d.has(f.path) {
			d.rule(f.path, wrong)
		} else if !d.anyKind && !d.flaws.in("sweep."+f.key) && !(d.has("command") && d.flaws.in("sweep.framework")) {
			d.rule(f.path, wrong) // a required key is missing
		}
	}
}
