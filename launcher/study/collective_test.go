package study

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const collectives = `
[study]
name = "links"
[workload]
kind = "collective"
[sweep]
workers = [2, 4]
`

// A point has only the keys of its kind.
func TestCollectivePoint(t *testing.T) {
	s, err := Parse("links.toml", []byte(collectives), frameworks)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Points[0].Point
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `"workload":{"kind":"collective","ops":["all_reduce","reduce_scatter","all_gather","broadcast"],"backend":"auto","min_bytes":"8","max_bytes":"64M","iterations":20,"warmup_iterations":5},"resources"`
	if !strings.Contains(string(text), want) {
		t.Errorf("%s lacks %s", text, want)
	}
	for _, not := range []string{`"data"`, "batch", "learning_rate", "epochs"} {
		if strings.Contains(string(text), not) {
			t.Errorf("%s has %s", text, not)
		}
	}
	var back Point
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Error(diff)
	}
	for key := range p.Parameters() {
		if strings.HasPrefix(key, "data.") || strings.Contains(key, "batch") {
			t.Errorf("parameter %s of a collective", key)
		}
	}
	if p.Parameters()["workload.kind"] != "collective" || p.Parameters()["workload.max_bytes"] != "64M" {
		t.Errorf("parameters %v", p.Parameters())
	}
}

// Decoding a study does not change the defaults for the next.
func TestCollectiveDefaultsStay(t *testing.T) {
	for _, ops := range []string{`["broadcast"]`, `["all_gather", "broadcast"]`} {
		if _, err := Parse("s.toml", []byte(strings.Replace(collectives, "\n[sweep]", "\nops = "+ops+"\n[sweep]", 1)), frameworks); err != nil {
			t.Fatal(err)
		}
	}
	TestCollectivePoint(t)
}

func TestCollectiveRefused(t *testing.T) {
	for name, c := range map[string]struct{ change, to, want string }{
		"a key of a training":  {"\n[sweep]", "\nbatch = 32\n[sweep]", "links.toml:6: workload.batch: unknown key; valid here: kind, ops, backend"},
		"swept key":            {"workers = [2, 4]", "workers = [2, 4]\nbatch = [1]", "sweep.batch: cannot be swept; valid here: "},
		"data":                 {"\n[sweep]", "\n[data]\nkind = \"synthetic\"\n[sweep]", `data: kind = "collective" uses no data; leave the table out`},
		"one worker":           {"[2, 4]", "[1, 2]", "sweep.workers: a collective needs 2 or more workers, got 1"},
		"unknown operation":    {"\n[sweep]", "\nops = [\"gossip\"]\n[sweep]", `workload.ops: "gossip" is not known; valid: "all_reduce"`},
		"operation twice":      {"\n[sweep]", "\nops = [\"broadcast\", \"broadcast\"]\n[sweep]", `workload.ops: "broadcast" is listed twice`},
		"sizes":                {"\n[sweep]", "\nmin_bytes = \"1M\"\nmax_bytes = \"1K\"\n[sweep]", "workload.max_bytes: 1K is less than workload.min_bytes, 1M"},
		"nccl on a CPU":        {"\n[sweep]", "\nbackend = \"nccl\"\n[sweep]", `workload.backend: "nccl" does not run with resources.device = "cpu"`},
		"a GPU without nccl":   {"\n[sweep]", "\n[resources]\ndevice = \"gpu\"\n[sweep]", `workload.backend: "auto" does not run with resources.device = "gpu"`},
		"another framework":    {"workers = [2, 4]", "framework = [\"other\"]\nworkers = [2, 4]", `sweep.framework: "other" does not run this kind of workload; valid for it: "native"`},
		"a kind nobody has":    {`"collective"`, `"colective"`, `workload.kind: "colective" is not known; did you mean collective? Valid: collective, `},
		"a damaged iterations": {"\n[sweep]", "\niterations = 0\n[sweep]", "workload.iterations: want 1 to"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(collectives, c.change, c.to, 1)
			s, err := Parse("links.toml", []byte(text), frameworks)
			if err == nil {
				site := DefaultSite()
				site.Partitions = []Partition{{Name: "p", GPUsPerNode: 8}}
				_, err = s.Plan(site)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Two kinds may share a key's name, but within a kind each name is unique.
func TestKindsAreWhole(t *testing.T) {
	for name, k := range kinds() {
		if k.defaults.Kind != name {
			t.Errorf("kind %s has defaults of kind %q", name, k.defaults.Kind)
		}
		fields := k.fields()
		if len(fields.keys) < 2 || len(fields.keys) != len(fields.byKey) {
			t.Errorf("kind %s has the keys %v", name, fields.keys)
		}
		for path := range k.rules {
			table, key, _ := strings.Cut(path, ".")
			if _, ok := fields.byKey[key]; table != "workload" || !ok {
				t.Errorf("kind %s has a rule for %s, which is not a key of it", name, path)
			}
		}
	}
}
