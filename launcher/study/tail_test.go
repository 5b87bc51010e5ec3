package study

import (
	"strings"
	"testing"
)

// The required numbers of requests follow from exact 95 % intervals of order statistics:
// P50 6, P90 36, P95 72, P99 368 (e.g. Hahn and Meeker, Statistical Intervals).
func TestNeeded(t *testing.T) {
	for share, want := range map[float64]int{0.5: 6, 0.9: 36, 0.95: 72, 0.99: 368} {
		if got := needed(share); got != want {
			t.Errorf("P%g needs %d requests, want %d", 100*share, got, want)
		}
	}
}

func TestTails(t *testing.T) {
	for keys, want := range map[string][]string{
		"model = \"m\"\nthreads = [1]\nduration = \"1s\"":                           nil, // depends on the service's speed
		"model = \"m\"\nrate = [20]":                                                nil, // 400 in 20 s
		"model = \"m\"\nrate = [100, 10]":                                           {"20s at 10 requests/s are 200 requests, too few for P99 (368)", `duration = "37s"`},
		"model = \"m\"\nrate = [10]\nlimit = { p95 = \"50ms\" }":                    {"200 requests, too few for P99 (368)", `duration = "37s"`}, // P95 twice
		"model = \"m\"\nrate = [3]":                                                 {"60 requests, too few for P95 (72) and P99 (368)", `duration = "2m3s"`},
		"model = \"m\"\nrate = [3]\nduration = \"10s\"\nlimit = { p90 = \"50ms\" }": {"30 requests, too few for P90 (36) and P95 (72) and P99 (368)"},
	} {
		s, err := Parse("study.toml", []byte(serving(keys)), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		doubts := s.Tails(plan)
		if len(want) == 0 && len(doubts) > 0 || len(want) > 0 && len(doubts) != 1 {
			t.Errorf("%s: %v", keys, doubts)
			continue
		}
		for _, text := range want {
			if !strings.Contains(doubts[0].Message, text) {
				t.Errorf("%s: %v does not hold %q", keys, doubts[0], text)
			}
		}
	}
}
