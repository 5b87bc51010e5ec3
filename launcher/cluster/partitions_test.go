package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

func TestPartitions(t *testing.T) {
	site := &study.Site{File: "site.toml", Partitions: []study.Partition{{Name: "main"}, {Name: "gpuu"}}}
	plan := &study.Plan{Points: []study.Planned{{Partition: "main"}, {Partition: "gpuu"}, {Partition: "gpuu"}, {}}}
	for name, c := range map[string]struct {
		scontrol  string // "": there is no Slurm
		want, err string
	}{
		"unknown":  {"echo 'PartitionName=main State=UP MaxTime=UNLIMITED'; echo 'PartitionName=gpu State=UP MaxTime=UNLIMITED'", `the cluster has no partition "gpuu"; it has main, gpu`, ""},
		"no Slurm": {"", "", ""},
		"down":     {"echo 'slurm_load_partitions error: Unable to contact slurm controller (connect failure)' >&2; exit 1", "", "Slurm cannot be reached"},
	} {
		bin := t.TempDir()
		if c.scontrol != "" {
			if err := os.WriteFile(filepath.Join(bin, "scontrol"), []byte("#!/bin/sh\n"+c.scontrol+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		problems, err := CheckPartitions(t.Context(), &slurm.Client{Env: []string{"PATH=" + bin}}, site, plan)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || problems[0].Message != c.want || problems[0].Path != "partitions[1].name") {
			t.Errorf("%s: %v, want %q", name, problems, c.want)
		}
	}
}
