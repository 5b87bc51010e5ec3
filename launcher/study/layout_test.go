package study

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layoutStudy runs a user's program that receives the degrees.
const layoutStudy = `[study]
name = "s"
[workload]
batch = 4
[command]
run = "train {tp} {pp} {cp} {ep} {dp} {batch} {global_batch} {micro_batch} {accumulate}"
extract = ["time"]
[sweep]
framework = ["command"]
workers = [8]
`

// told returns a framework whose command receives every key, like package framework's
// through placeholders.
func told() []Framework {
	return []Framework{
		{Name: "command", Command: true, Uses: func(p Point) []string {
			keys := p.WorkloadKeys()
			for _, name := range p.Own.Names() {
				keys = append(keys, parameterPrefix+name)
			}
			return keys
		}},
		{Name: "own"},
	}
}

func layoutPlan(t *testing.T, text string) (*Plan, error) {
	t.Helper()
	s, err := Parse("/folder/s.toml", []byte(text), told())
	if err != nil {
		return nil, err
	}
	return s.Plan(DefaultSite())
}

// The product of the degrees is the number of workers; data parallelism takes what the
// others leave, and a replica has one batch. Values are worked out by hand.
func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		keys    string
		workers int
		want    string // replicas, batch of each, global batch, micro batch
	}{
		"none":                    {"", 8, "8 4 32 0"},
		"tp":                      {"tp = 2", 8, "4 4 16 0"},
		"tp, pp and cp":           {"tp = 2\npp = 2\ncp = 2", 16, "2 4 8 0"},
		"dp that fits":            {"tp = 2\npp = 2\ndp = 4", 16, "4 4 16 0"},
		"all by data":             {"dp = 8", 8, "8 4 32 0"},
		"experts over replicas":   {"pp = 2\nep = 4", 8, "4 4 16 0"},
		"experts over tensors":    {"tp = 2\nep = 8", 8, "4 4 16 0"},
		"strong":                  {"tp = 4\nscaling = \"strong\"", 16, "4 1 4 0"},
		"micro batch":             {"tp = 4\nmicro_batch = 2", 8, "2 4 8 2"},
		"accumulate":              {"tp = 4\naccumulate = 2", 8, "2 4 8 2"},
		"strong and accumulate":   {"accumulate = 2\nscaling = \"strong\"\npp = 4", 8, "2 2 4 1"},
		"micro batch, accumulate": {"tp = 2\nmicro_batch = 3\naccumulate = 5", 8, "4 15 60 3"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(layoutStudy, "batch = 4\n", "batch = 4\n"+c.keys+"\n", 1)
			if strings.Contains(c.keys, "micro_batch = 3") {
				text = strings.Replace(text, "batch = 4\n", "", 1)
			}
			plan, err := layoutPlan(t, strings.Replace(text, "workers = [8]", fmt.Sprintf("workers = [%d]", c.workers), 1))
			if err != nil {
				t.Fatal(err)
			}
			p := plan.Points[0].Point
			if got := fmt.Sprint(p.Replicas(), p.WorkerBatch, p.GlobalBatch, p.MicroBatch); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Degrees that do not fit are reported with their key.
func TestLayoutProblems(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"zero":            {"batch = 4", "tp = 0", "workload.tp: want a whole number from 1 to"},
		"half":            {"batch = 4", "pp = 1.5", "workload.pp: want a whole number from 1 to"},
		"swept zero":      {"workers = [8]", "workers = [8]\ncp = [1, 0]", "sweep.cp"},
		"too many":        {"batch = 4", "tp = 3", "sweep.workers: the layout does not fit the workers: tp 3 takes a multiple of 3 workers, not 8. Correct"},
		"product":         {"batch = 4", "tp = 2\ndp = 2", "tp 2 · dp 2 takes 4 workers, not 8"},
		"experts":         {"batch = 4", "ep = 3", "ep 3 does not divide the 8 workers of a stage"},
		"experts, stages": {"batch = 4", "pp = 2\nep = 8", "ep 8 does not divide the 4 workers of a stage"},
		"huge":            {"batch = 4", "tp = 1048576\npp = 1048576\ncp = 1048576\ndp = 1048576", "takes a multiple of"},
		"grid": {"workers = [8]", "workers = [4, 8]\ntp = [1, 2, 4, 8]\npp = [1, 2, 4]",
			"the layouts of 9 of 24 combinations do not fit their workers: tp 2 · pp 4 takes a multiple of 8 workers, not 4; tp 4 · pp 2 takes a multiple of 8 workers, not 4; tp 4 · pp 4 takes a multiple of 16 workers, not 4; …. Correct them, leave them out with [[exclude]], or set sweep.design = \"layouts\""},
		"nothing to choose":     {"workers = [8]", "workers = [8]\ndesign = \"layouts\"", "sweep.design: \"layouts\" is for sweeps of tp, pp, cp, ep or dp"},
		"nothing fits":          {"workers = [8]", "workers = [8]\ntp = [3, 5]\ndesign = \"layouts\"", "the degrees of no combination fit its workers"},
		"parts":                 {"batch = 4", "batch = 4\naccumulate = 3", "workload.accumulate: a worker's batch of 4 cannot be divided into 3 equal parts"},
		"batch twice":           {"batch = 4", "batch = 4\nmicro_batch = 1\naccumulate = 2", "workload.batch: would be ignored: the batch of each worker is micro_batch times accumulate"},
		"batch swept":           {"batch = 4\n", "micro_batch = 1\naccumulate = 2\n", "sweep.batch: is swept, but the batch of each worker is micro_batch times accumulate"},
		"accumulate and strong": {"batch = 4", "micro_batch = 1\naccumulate = 2\nscaling = \"strong\"", "workload.accumulate: with scaling = \"strong\""},
		"a trainer of ours":     {"framework = [\"command\"]", "framework = [\"own\"]\ntp = [1, 2]", "keeps a whole model on each worker"},
	} {
		text := strings.Replace(layoutStudy, c.from, c.to, 1)
		if name == "batch swept" {
			text = strings.Replace(text, "workers = [8]", "workers = [8]\nbatch = [1, 2]", 1)
		}
		if name == "a trainer of ours" {
			text = strings.Replace(text, "batch = 4", "batch = 4\nmodel = \"llama-1m\"\nmax_steps = 1\n[data]\nkind = \"text\"\npath = \".\"", 1)
			text = strings.NewReplacer("[command]", "", "run = \"train {tp} {pp} {cp} {ep} {dp} {batch} {global_batch} {micro_batch} {accumulate}\"\n", "", "extract = [\"time\"]\n", "").Replace(text)
		}
		if _, err := layoutPlan(t, text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// The design layouts leaves out combinations whose product does not divide the workers.
func TestLayoutsDesign(t *testing.T) {
	plan, err := layoutPlan(t, strings.Replace(layoutStudy, "workers = [8]", "workers = [4, 8]\ntp = [1, 2, 4, 8]\npp = [1, 2, 4]\ndesign = \"layouts\"", 1))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range plan.Points {
		got = append(got, fmt.Sprintf("%d: %s · dp %d", p.Point.Workers, p.Point.Workload.Train.Layout(), p.Point.Replicas()))
	}
	var want []string
	for _, tp := range []int{1, 2, 4, 8} {
		for _, pp := range []int{1, 2, 4} {
			for _, workers := range []int{4, 8} {
				if dp := workers / (tp * pp); dp*tp*pp == workers {
					want = append(want, fmt.Sprintf("%d: tp %d · pp %d · dp %d", workers, tp, pp, dp))
				}
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if plan.LeftOut != 24-len(want) || !plan.Points[0].Point.ComparesLayouts {
		t.Errorf("left out %d, compares %v", plan.LeftOut, plan.Points[0].Point.ComparesLayouts)
	}
}

// Degrees are part of a point's identity if they are set. Older studies keep their
// identities, also with parameters of these names.
func TestLayoutIdentity(t *testing.T) {
	plain, err := layoutPlan(t, layoutStudy)
	if err != nil {
		t.Fatal(err)
	}
	laid, err := layoutPlan(t, strings.Replace(layoutStudy, "batch = 4", "batch = 4\ntp = 2", 1))
	if err != nil {
		t.Fatal(err)
	}
	own, err := layoutPlan(t, strings.Replace(layoutStudy, "[sweep]", "[parameters]\ntp = 3\n[sweep]\ntp = [3]", 1))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := plain.Points[0].Point, laid.Points[0].Point, own.Points[0].Point
	for _, key := range append(degreeKeys, "workload.accumulate") {
		if v, ok := a.Parameters()[key]; ok {
			t.Errorf("%s = %v of a point without it", key, v)
		}
	}
	if a.ID == b.ID || b.Parameters()["workload.tp"] != int64(2) {
		t.Errorf("%s, %s: %v", a.ID, b.ID, b.Parameters())
	}
	if c.Replica() != 1 || c.Own["tp"].Value != int64(3) || c.GlobalBatch != 32 {
		t.Errorf("a parameter of its own: %+v", c)
	}
}
