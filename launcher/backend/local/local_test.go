package local

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
)

// Run refuses points that it cannot set up, with a reason.
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
			b := &Backend{Creator: launcher.Creator{Site: site}, allocation: allocation}
			err := b.Fits(study.Point{Variant: c.variant, Workers: 1})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("variant %q in allocation %q: %v, want %q", c.variant, allocation, err, want)
			}
		}
	}
}
