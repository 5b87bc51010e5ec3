package study

import (
	"strings"
	"testing"
)

func TestLengths(t *testing.T) {
	for keys, want := range map[string]struct{ says, doubt string }{
		"threads = [1, 4]\nbatch = [1, 8]\nduration = \"30s\"": {"each run: 4 loads, 30s each: about 2m0s, plus start-up", ""},
		"threads = [1]\nrate = [50]\nduration = \"1s\"\nlimit = { p95 = \"20ms\" }": {
			"each run: 2 loads and a search of about 16 loads per batch, 1s each: about 18s, plus start-up", ""},
		"batch = [1, 8]\nduration = \"10m\"\nlimit = { p95 = \"20ms\" }": {
			"each run: a search of about 16 loads per batch, 10m0s each: about 5h20m0s, plus start-up",
			"the loads of a run take about 5h20m0s, and the limit is 1h0m0s; raise it, or shorten workload.duration"},
	} {
		s, err := Parse("study.toml", []byte(serving("model = \"m\"\n"+keys)), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		says, doubts := s.Lengths(plan)
		if got := strings.Join(says, "|"); got != want.says {
			t.Errorf("%s: %s; want %s", keys, got, want.says)
		}
		doubt := ""
		if len(doubts) == 1 {
			doubt = doubts[0].Message
		}
		if len(doubts) > 1 || doubt != want.doubt {
			t.Errorf("%s: %v; want %q", keys, doubts, want.doubt)
		}
	}
}
