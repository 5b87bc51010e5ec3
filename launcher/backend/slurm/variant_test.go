package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// A variant has a separate script with its modules, variables, container and interpreter, which are also in the
// attempt's record. A pack serves one variant.
func TestVariantsHaveSeparateScripts(t *testing.T) {
	of := func(todo launcher.Todo, framework, variant string) launcher.Todo {
		todo.Point.Variant, todo.Point.Framework, todo.Point.Workload.Kind = variant, framework, "train"
		todo.Point.ID += "-" + variant
		return todo
	}
	for _, packing := range []string{study.PackArray, study.PackAllocation} {
		b := packer(t, packing, `echo "7"`)
		b.Site, b.Key = launchtest.VariedSite(t), redact.Key("k")
		list, err := launcher.Loads(context.Background(), b, []launcher.Todo{
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
			var r launcher.Record
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
