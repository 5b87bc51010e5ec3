package slurm

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
)

// The script of an earlier command is submitted again only if no other user could have changed it since.
// Scripts are writable by their owner only.
func TestChangedScriptIsNotResubmitted(t *testing.T) {
	const lost = "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"
	for _, packing := range []string{study.PackJob, study.PackArray, study.PackAllocation} {
		t.Run(packing, func(t *testing.T) {
			b := packer(t, packing, lost)
			load := []launcher.Todo{planned("a", 2, 1, 1)}
			if packing != study.PackJob {
				load = append(load, planned("a", 2, 2, 1))
			}
			if _, err := b.Begin(t.Context(), load); err == nil {
				t.Fatal("sbatch's failure is not an error")
			}
			attempts, err := launcher.Attempts(b.Folder)
			if err != nil || len(attempts) != len(load) {
				t.Fatal(attempts, err)
			}
			var again []launcher.Todo
			for i, a := range attempts {
				if info, err := os.Stat(a.Script()); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s is %v (%v), want the owner's alone", a.Script(), info.Mode(), err)
				}
				load[i].Again = a
				again = append(again, load[i])
			}
			before := calls(t, b)
			for _, path := range []string{attempts[0].Script(), attempts[len(attempts)-1].Run.Point(), attempts[0].Run.Path()} {
				info, err := os.Stat(path)
				if err == nil {
					err = os.Chmod(path, info.Mode()|0o002)
				}
				if err != nil {
					t.Fatal(err)
				}
				var refused *trust.Error
				if _, err := b.Begin(t.Context(), again); !errors.As(err, &refused) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s can be written by all: %v", path, err)
				}
				if n := calls(t, b); n != before {
					t.Errorf("%s can be written by all, and sbatch was called", path)
				}
				if err := os.Chmod(path, info.Mode()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.Begin(t.Context(), again); err == nil || calls(t, b) != before+1 {
				t.Errorf("not handed over again: %v, %d calls", err, calls(t, b)-before)
			}
		})
	}
}

// Only the user who froze a study can load it; its secrets and the site's stay with their files' owner.
func TestFrozenModes(t *testing.T) {
	for _, test := range []struct {
		mode        fs.FileMode // of the files given
		study, site string      // more lines
		want        [2]fs.FileMode
	}{
		{0o644, "", "", [2]fs.FileMode{0o644, 0o644}},
		{0o600, "", "", [2]fs.FileMode{0o600, 0o600}},
		{0o640, "", "", [2]fs.FileMode{0o640, 0o640}},
		{0o644, "[command]\nrun = [\"true\"]\nenvironment = { A = \"b\" }\n", "[environment]\nA = \"b\"\n", [2]fs.FileMode{0o600, 0o600}},
		{0o644, "", "setup = [\"module purge\"]\n", [2]fs.FileMode{0o644, 0o600}},
	} {
		dir := t.TempDir()
		b := packer(t, study.PackJob, "")
		write := func(name, text string) string {
			path := dir + "/" + name
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, test.mode)); err != nil {
				t.Fatal(err)
			}
			return path
		}
		framework := "f"
		st, err := study.Load(write("study.toml", "[study]\nname = \"packed\"\n[workload]\nmodel = \"mlp\"\nepochs = 1\n[sweep]\nworkers = [1]\nframework = [\"f\"]\n"+test.study), []study.Framework{{Name: framework, Command: test.study != ""}})
		if err != nil {
			t.Fatal(err)
		}
		site, err := study.LoadSite(write("site.toml", test.site))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := st.Plan(site)
		if err == nil {
			err = launcher.Freeze(b.Folder, plan, st, site)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range []string{b.Folder.StudyFile(), b.Folder.SiteFile()} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != test.want[i] {
				t.Errorf("%+v: %s is %v (%v)", test, path, info.Mode(), err)
			}
		}
	}
}
