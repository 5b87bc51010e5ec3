package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const variedSite = `python = "python3"
modules = ["gcc/12"]
[environment]
A = "site"
B = "site"
[pythons]
other = "/other"
[options]
constraint = "any"
[container]
runtime = "apptainer"
image = "/image.sif"
[[partitions]]
name = "cpu"
[partitions.options]
constraint = "cpu-nodes"
[[partitions]]
name = "gpu"
gpus_per_node = 2
[[variant]]
name = "plain"
[[variant]]
name = "gpu"
partition = "gpu"
device = "gpu"
cpus_per_worker = 4
[[variant]]
name = "tuned"
constraint = "icelake"
python = "/venv/bin/python"
modules = []
container = { runtime = "none" }
environment = { B = "variant", C = "variant" }
`

func site(t *testing.T, source string) *Site {
	t.Helper()
	s, err := ParseSite("site.toml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A variant overrides what it sets and leaves the rest.
func TestSiteAsVariant(t *testing.T) {
	s := site(t, variedSite)
	if s.As("") != s {
		t.Error("without a variant the site is another")
	}
	if plain := s.As("plain"); cmp.Diff(plain.Partitions, s.Partitions)+cmp.Diff(plain.Modules, s.Modules)+cmp.Diff(plain.Container, s.Container)+cmp.Diff(plain.Environment, s.Environment) != "" || plain.Interpreter("other") != "/other" {
		t.Errorf("a variant that says nothing changes %+v", plain)
	}
	tuned := s.As("tuned")
	if diff := cmp.Diff(map[string]string{"A": "site", "B": "variant", "C": "variant"}, tuned.Environment); diff != "" {
		t.Error(diff)
	}
	if len(tuned.Modules) != 0 || tuned.Container.Image != "" || tuned.Interpreter("other") != "/venv/bin/python" {
		t.Errorf("%+v", tuned)
	}
	for _, p := range tuned.Partitions {
		if p.Options["constraint"] != "icelake" {
			t.Errorf("partition %s has the constraint %q", p.Name, p.Options["constraint"])
		}
	}
	if tuned.Options["constraint"] != "icelake" || s.Options["constraint"] != "any" || s.Partitions[0].Options["constraint"] != "cpu-nodes" || s.Environment["B"] != "site" {
		t.Error("the variant's constraint is not its own")
	}
	if gpu := s.As("gpu"); len(gpu.Partitions) != 1 || gpu.Partitions[0].Name != "gpu" || len(s.Partitions) != 2 {
		t.Errorf("%+v", gpu.Partitions)
	}
}

// Variants are separate points, by name. Their content is not part of the identity, and
// points without a variant keep theirs.
func TestVariantsArePoints(t *testing.T) {
	source := strings.Replace(minimal, "[1, 2, 4]", "[2]\nvariant = [\"plain\", \"gpu\"]", 1)
	p := plan(t, parse(t, source), site(t, variedSite))
	if len(p.Points) != 2 {
		t.Fatalf("%+v", p.Points)
	}
	plain, gpu := p.Points[0], p.Points[1]
	if plain.Partition != "cpu" || plain.Point.Resources.Device != "cpu" || gpu.Partition != "gpu" || gpu.Point.Resources.Device != "gpu" || gpu.Point.Resources.CPUsPerWorker != 4 {
		t.Errorf("%+v\n%+v", plain, gpu)
	}
	if plain.Point.Parameters()["variant"] != "plain" {
		t.Error("the variant is not stored")
	}
	bare := plan(t, parse(t, strings.Replace(minimal, "[1, 2, 4]", "[2]", 1)), site(t, variedSite)).Points[0].Point
	if bare.ID == plain.Point.ID || bare.ID != plan(t, parse(t, minimal), DefaultSite()).Points[1].Point.ID {
		t.Error("the site as it stands is another point than before")
	}
	if _, stored := bare.Parameters()["variant"]; stored {
		t.Error("no variant is stored as one")
	}
	changed := site(t, strings.Replace(variedSite, `name = "plain"`, "name = \"plain\"\nmodules = [\"gcc/13\"]", 1))
	if again := plan(t, parse(t, source), changed).Points[0].Point; again.ID != plain.Point.ID {
		t.Error("a changed module makes another point")
	}
}

func TestVariantsRefused(t *testing.T) {
	for _, c := range []struct{ name, site, sweep, want string }{
		{"unknown", variedSite, `variant = ["plain", "gpus"]`, `study.toml:9: sweep.variant[1]: "gpus" is not known; did you mean gpu? Valid: plain, gpu, tuned, the [[variant]] tables of site.toml`},
		{"none", "name = \"s\"", `variant = ["gpu"]`, "site.toml has no [[variant]]; add one"},
		{"device", variedSite, "variant = [\"plain\", \"gpu\"]\ndevice = [\"cpu\", \"gpu\"]", `sweep.device: is swept, and variant "gpu" of site.toml decides it`},
		{"cpus", variedSite, "variant = [\"gpu\"]\ncpus_per_worker = [1, 2]", `sweep.cpus_per_worker: is swept, and variant "gpu" of site.toml decides it`},
		{"room", strings.Replace(variedSite, "gpus_per_node = 2", "gpus_per_node = 2\nmax_nodes = 1", 1), "variant = [\"gpu\"]", "no partition of site.toml has room for 4 workers (gpu: max_nodes is 1, but the point takes 2)"},
	} {
		s := parse(t, minimal+c.sweep+"\n")
		_, err := s.Plan(site(t, c.site))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := parse(t, minimal+"variant = [\"gpu\"]\n").Plan(DefaultSite()); err == nil || !strings.Contains(err.Error(), "no site file; name one that has it") {
		t.Errorf("without a site file: %v", err)
	}
	if _, err := parse(t, minimal+"variant = [\"gpu\"]\n").Plan(nil); err != nil {
		t.Errorf("of a site file that could not be read: %v", err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`name = "plain"`, ``, `site.toml:20: variant[0].name: "" cannot name a variant`},
		{`name = "plain"`, `name = "gpu"`, `site.toml:23: variant[1].name: "gpu" is also the name of variant[0]`},
		{`partition = "gpu"`, `partition = "gpus"`, `site.toml:24: variant[1].partition: "gpus" is not known; did you mean gpu?`},
		{`device = "gpu"`, `device = "tpu"`, `site.toml:25: variant[1].device: "tpu" is not known; did you mean cpu? Valid: "cpu", "gpu"`},
		{`cpus_per_worker = 4`, `cpus_per_worker = -4`, `variant[1].cpus_per_worker: want 0 to 4096, got -4`},
		{`cpus_per_worker = 4`, `cpu_per_worker = 4`, `variant[1].cpu_per_worker: unknown key; did you mean cpus_per_worker?`},
		{`runtime = "none"`, `runtime = "pyxis"`, `variant[2].container: runtime and image belong together`},
		{`runtime = "none"`, `runtim = "none"`, `variant[2].container.runtim: unknown key; did you mean runtime?`},
		{`B = "variant"`, `"B C" = "variant"`, `cannot name an environment variable`},
		{`name = "plain"`, "name = \"plain\"\npartition = \"gpu\"\ndevice = \"gpu\"\ncpus_per_worker = 4", `variant[1]: "gpu" is the same as variant[0], "plain": both would run the same`},
	} {
		source := strings.Replace(variedSite, c.from, c.to, 1)
		if source == variedSite {
			t.Fatalf("%q is not in the site", c.from)
		}
		if _, err := ParseSite("site.toml", []byte(source)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.to, err, c.want)
		}
	}
}
