package launcher

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// A site selects one of the registered backends whose attempts outlive the command.
func TestSiteSelectsBackend(t *testing.T) {
	for backend, want := range map[string]string{"fake": "",
		"fake-beside": `site.toml: backend: "fake-beside" is not a scheduler; valid: fake`,
		"pbs":         `site.toml: backend: "pbs" is not a scheduler; valid: fake`} {
		b, err := Scheduler(Options{Creator: Creator{Folder: rundir.OpenStudy(t.TempDir(), "s"), Site: &study.Site{File: "site.toml", Backend: backend}}})
		switch {
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: %v, want %q", backend, err, want)
		case want == "" && (err != nil || b.Name() != backend):
			t.Errorf("%q: %v, %v", backend, b, err)
		}
	}
}
