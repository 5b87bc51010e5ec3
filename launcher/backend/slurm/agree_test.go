package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/backend/local"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// The frozen plan and the run's records agree on every key, including nodes and partition.
func TestPlanAndRunFoldersAgree(t *testing.T) {
	const text = `
[study]
name = "s"
repeats = 2
[workload]
model = "mlp"
epochs = 1
[data]
kind = "synthetic"
[resources]
workers_per_node = 2
[command]
run = ["true", "{workers}"]
environment = { API_TOKEN = "hush" }
[sweep]
workers = [2, 4]
framework = ["native", "command"]
`
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write("sbatch", "#!/bin/sh\necho 95\n", 0o755)
	write("scontrol", "#!/bin/sh\necho 'MaxArraySize = 1001'\n", 0o755)
	worker := write("worker", "#!/bin/sh\nexit 1\n", 0o755)
	st, err := study.Parse(filepath.Join(dir, "study.toml"), []byte(text), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := study.ParseSite(filepath.Join(dir, "site.toml"), []byte("modules = [\"gcc\"]\n[[partitions]]\nname = \"main\"\ncpus_per_node = 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	inside := launcher.Allocation{Backend: backendName, JobID: "7", Partition: "main", Nodes: 2, CPUsPerNode: 2}
	for name, c := range map[string]struct {
		site       *study.Site
		packing    string
		allocation *launcher.Allocation
		open       func(launcher.Options) (launcher.Backend, error)
		nodes      float64 // of a point of 4 workers
		modules    string  // that its program was started with
	}{
		"this machine": {cluster, "", nil, openLocal, 1, "none"},
		"inside":       {inside.Site(cluster), "", &inside, openLocal, 2, "gcc"},
		"jobs":         {cluster, study.PackJob, nil, openSlurm, 2, "gcc"},
		"arrays":       {cluster, study.PackArray, nil, openSlurm, 2, "gcc"},
		"allocations":  {cluster, study.PackAllocation, nil, openSlurm, 2, "gcc"},
	} {
		folder := rundir.OpenStudy(filepath.Join(t.TempDir(), name), "s")
		if err := os.MkdirAll(folder.Path(), 0o700); err != nil {
			t.Fatal(err)
		}
		b, err := c.open(launcher.Options{Creator: launcher.Creator{Folder: folder, Site: c.site, Worker: worker}, Policy: study.Policy{Packing: c.packing}, Allocation: c.allocation})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := st.Plan(c.site)
		if err != nil {
			t.Fatal(err)
		}
		if name == "this machine" {
			plan = local.OnOneNode(plan)
		}
		if err := launcher.Freeze(folder, plan, st, c.site); err != nil {
			t.Fatal(err)
		}
		list, err := launcher.Loads(t.Context(), b, launcher.Choice{Plan: plan, Done: none}.Todo(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range list {
			if _, err := b.Begin(t.Context(), load); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if here, ok := b.(*local.Backend); ok {
			here.Wait()
		}
		var frozen struct{ Points []map[string]any }
		read(t, folder.Plan(), &frozen)
		if len(frozen.Points) != 8 {
			t.Fatalf("%s: %d runs in the plan, want 8", name, len(frozen.Points))
		}
		seen := 0
		for _, planned := range frozen.Points {
			point := planned["point"].(map[string]any)
			run := folder.Run(point["id"].(string), int(point["repeat"].(float64)), 1)
			var own, record map[string]any
			read(t, run.Point(), &own)
			read(t, run.Attempt(), &record)
			if d := cmp.Diff(point, own); d != "" {
				t.Errorf("%s: %s of plan and run (-plan +run):\n%s", name, run.Name(), d)
			}
			for key, zero := range map[string]any{"partition": "", "exclusive": false} { // left out of the record when it is that
				want, got := planned[key], record[key]
				if got == nil {
					got = zero
				}
				if want != got {
					t.Errorf("%s: %s: %s is %v in the plan and %v in the record", name, run.Name(), key, want, got)
				}
			}
			if got := record["setting"].(map[string]any)["modules"]; got != c.modules {
				t.Errorf("%s: %s: recorded with modules %v, want %s", name, run.Name(), got, c.modules)
			}
			if own["workers"] == 4.0 && own["nodes"] == c.nodes {
				seen++
			}
		}
		if seen != 4 {
			t.Errorf("%s: %d runs of 4 workers on %v nodes, want 4", name, seen, c.nodes)
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openLocal(o launcher.Options) (launcher.Backend, error) { return local.New(o) }

func openSlurm(o launcher.Options) (launcher.Backend, error) { return open(o) }
