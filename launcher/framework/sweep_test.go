package framework

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// A key of the workload and a parameter of the user's own follow the same rule: each may be
// set, swept, or both, under its short name or its path, in the file or by KEY=VALUE.
func TestSweepsFollowOneRule(t *testing.T) {
	const head = "[study]\nname = \"s\"\n[command]\nrun = [\"./train\", \"{KEY}\"]\n"
	for _, key := range []struct{ name, table string }{{"batch", "workload"}, {"hidden", "parameters"}} {
		source := func(tail string) string {
			return strings.NewReplacer("KEY", key.name, "TABLE", key.table).Replace(head + tail)
		}
		var swept []string
		for _, c := range []struct{ tail, words string }{
			{"[sweep]\nframework = [\"command\"]\nworkers = [1]\nKEY = [16, 32]\n", ""},
			{"[sweep]\nframework = [\"command\"]\nworkers = [1]\nTABLE.KEY = [16, 32]\n", ""},
			{"[TABLE]\nKEY = 64\n[sweep]\nframework = [\"command\"]\nworkers = [1]\nKEY = [16, 32]\n", ""},
			{"[TABLE]\nKEY = 64\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n", "KEY=[16,32]"},
			{"[sweep]\nframework = [\"command\"]\nworkers = [1]\nKEY = [64]\n", "KEY=[16,32]"},
			{"[TABLE]\nKEY = 64\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n", "TABLE.KEY=[16,32]"},
		} {
			words := strings.Fields(strings.NewReplacer("KEY", key.name, "TABLE", key.table).Replace(c.words))
			s, err := study.Parse("s.toml", []byte(source(c.tail)), ForStudy(), words...)
			if err != nil {
				t.Errorf("%s%q: %v", source(c.tail), words, err)
				continue
			}
			plan, err := s.Plan(study.DefaultSite())
			if err != nil {
				t.Errorf("%s%q: %v", source(c.tail), words, err)
				continue
			}
			var ids []string
			for _, p := range plan.Points {
				ids = append(ids, p.Point.ID)
			}
			if swept == nil {
				swept = ids
			}
			if len(ids) != 2 || ids[0] == ids[1] || strings.Join(ids, " ") != strings.Join(swept, " ") {
				t.Errorf("%s%q: points %q, want those of the first form, %q", source(c.tail), words, ids, swept)
			}
			if got := s.Swept(); len(got) != 1 || got[0] != key.table+"."+key.name {
				t.Errorf("%s%q: sweeps %q", source(c.tail), words, got)
			}
		}
	}
	// A name that is neither a key nor a placeholder is a mistake.
	_, err := study.Parse("s.toml", []byte("[study]\nname = \"s\"\n[command]\nrun = [\"./train\"]\n[sweep]\nframework = [\"command\"]\nworkers = [1]\nhidden = [1, 2]\n"), ForStudy())
	if err == nil || !strings.Contains(err.Error(), "sweep.hidden: cannot be swept") {
		t.Errorf("hidden reaches no program: %v", err)
	}
}
