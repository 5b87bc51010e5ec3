package launcher

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

func variedSite(t *testing.T) *study.Site {
	t.Helper()
	s, err := study.ParseSite("site.toml", []byte(`python = "/site/python"
modules = ["gcc/12", "openmpi"]
setup = ["export TOKEN=hunter2"]
[environment]
TOKEN = "hunter3"
[container]
runtime = "apptainer"
image = "/image.sif"
mounts = ["/a:/b"]
[[variant]]
name = "bare"
python = "/bare/python"
modules = []
container = { runtime = "none" }
[[variant]]
name = "debug"
environment = { LEVEL = "1" }
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the site has a program started with is recorded in words where it is no
// secret, else as keyed digests, and as unknown without a key. Processes of this
// machine get the variables alone.
func TestSettingHidesSecrets(t *testing.T) {
	site, key := variedSite(t), redact.Key("k")
	f, err := framework.Find("native")
	if err != nil {
		t.Fatal(err)
	}
	batch := *setting(site, f, key, true)
	want := metrics.Setting{Container: "apptainer /image.sif /a:/b", Modules: "gcc/12 openmpi",
		Setup: key.Hide("export TOKEN=hunter2"), Environment: "TOKEN=" + key.Hide("hunter3")}
	if diff := cmp.Diff(want, batch); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(batch.Setup, "withheld:") || strings.Contains(batch.Environment, "hunter") {
		t.Errorf("%+v", batch)
	}
	if bare := *setting(site.As("bare"), f, key, true); bare.Modules != metrics.None || bare.Container != metrics.None || bare.Setup != batch.Setup {
		t.Errorf("%+v", bare)
	}
	if debug := *setting(site.As("debug"), f, key, true); debug.Environment != "LEVEL="+key.Hide("1")+" "+batch.Environment {
		t.Errorf("%+v", debug)
	}
	if local := *setting(site, f, key, false); local.Modules != metrics.None || local.Container != metrics.None || local.Setup != metrics.None || local.Environment != batch.Environment {
		t.Errorf("%+v", local)
	}
	if unkeyed := *setting(site, f, nil, true); unkeyed.Setup != "" || unkeyed.Environment != "" || unkeyed.Modules != batch.Modules {
		t.Errorf("%+v", unkeyed)
	}
}

// A variant has its own script: its modules, variables, container and interpreter,
// and they are in the attempt's record. No pack serves two.
func TestVariantsHaveScriptsOfTheirOwn(t *testing.T) {
	of := func(todo Todo, framework, variant string) Todo {
		todo.Point.Variant, todo.Point.Framework, todo.Point.Workload.Kind = variant, framework, "train"
		todo.Point.ID += "-" + variant
		return todo
	}
	for _, packing := range []string{study.PackArray, study.PackAllocation} {
		b := packer(t, packing, `echo "7"`)
		b.Site, b.Key = variedSite(t), redact.Key("k")
		list, err := loads(context.Background(), b, []Todo{
			of(planned("", 2, 1, 1), "pytorch-ddp", "bare"), of(planned("", 2, 1, 1), "pytorch-ddp", "debug"),
			of(planned("", 2, 2, 1), "pytorch-ddp", "bare"), of(planned("", 2, 2, 1), "pytorch-ddp", "debug"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, load := range list {
			variant := ""
			for _, todo := range load {
				variant += todo.Point.Variant + " "
			}
			got = append(got, variant)
		}
		if diff := cmp.Diff([]string{"bare bare ", "debug debug "}, got); diff != "" {
			t.Errorf("%s: %s", packing, diff)
		}
		attempts, err := b.Begin(context.Background(), list[0])
		if err != nil {
			t.Fatal(err)
		}
		script, err := os.ReadFile(attempts[0].Script())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(script, []byte("module load")) || bytes.Contains(script, []byte("apptainer")) {
			t.Errorf("%s: the script of the bare variant loads the site's modules or container:\n%s", packing, script)
		}
		for _, a := range attempts {
			var r Record
			text, err := os.ReadFile(a.Run.Attempt())
			if err == nil {
				err = json.Unmarshal(text, &r)
			}
			if err != nil || r.Python != "/bare/python" || r.Setting == nil || r.Setting.Modules != metrics.None {
				t.Errorf("%s: %v, record %+v", packing, err, r)
			}
		}
		debug := b.Draft(list[1][0].Planned)
		s, err := b.Script(list[1][0].Planned, debug)
		if err != nil || s.Environment["LEVEL"] != "1" || s.Environment["TOKEN"] != "hunter3" || !slices.Equal(s.Modules, []string{"gcc/12", "openmpi"}) || s.Container.Image != "/image.sif" || debug.Record.Python != "/site/python" {
			t.Errorf("%v: %+v", err, s)
		}
	}
}

// What run cannot set up it refuses, and says why.
func TestFitsVariants(t *testing.T) {
	site, err := study.ParseSite("site.toml", []byte(`[[variant]]
name = "modules"
modules = ["gcc"]
[[variant]]
name = "container"
container = { runtime = "pyxis", image = "i" }
[[variant]]
name = "constraint"
constraint = "c"
[[variant]]
name = "partition"
partition = "p"
[[variant]]
name = "threads"
partition = "p"
environment = { OMP_NUM_THREADS = "1" }
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variant, machine, allocation string }{
		{"", "", ""},
		{"modules", "its modules are loaded by batch scripts only", ""},
		{"container", "its container is started by batch scripts only", ""},
		{"constraint", "only Slurm can meet its constraint", "only Slurm can meet its constraint"},
		{"partition", "it changes only the partition, p", ""},
		{"threads", "", ""},
	} {
		for allocation, want := range map[string]string{"": c.machine, "7": c.allocation} {
			b := &LocalBackend{Creator: Creator{Site: site}, allocation: allocation}
			err := b.Fits(study.Point{Variant: c.variant, Workers: 1})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("variant %q in allocation %q: %v, want %q", c.variant, allocation, err, want)
			}
		}
	}
}
