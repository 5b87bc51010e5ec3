package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

func TestChoose(t *testing.T) {
	run := func(id string, workers int, lr float64, status metrics.Status) metrics.Run {
		return metrics.Run{ID: id, Study: "s", Point: "p", Repeat: 1, Attempt: 1, Kind: "train", Framework: "native", Workers: workers,
			Parameters: map[string]any{"parameters.lr": lr, "parameters.name": "w" + id, "workload.batch": int64(32)}, Status: status,
			Detail: "out of memory", Job: &metrics.Job{ID: "4" + id, Partition: "cpu"}}
	}
	runs := []metrics.Run{run("a", 1, 0.1, metrics.Done), run("b", 2, 0.1, metrics.Failed), run("c", 12, 0.01, metrics.Planned)}
	runs[2].Job = nil
	for where, want := range map[string]string{
		"parameters.lr = 0.1":                              "ab",
		"parameters.lr < 0.1":                              "c",
		"workers > 1 AND status <> 'planned'":              "b",
		"workers > 9":                                      "c", // as numbers
		"detail LIKE '%memory%' AND status = 'failed'":     "b",
		"job = '4a' OR job IS NULL":                        "ac",
		"\"workload.batch\" = 32 AND partition = 'cpu'":    "ab",
		"parameters.name IN ('wa', 'wc')":                  "ac",
		"run = 'none'":                                     "",
		"framework = 'native' AND point = 'p'":             "abc",
		"parameters.lr = 0.1 AND parameters.name = 'wb'\n": "b",
	} {
		holds, err := Choose(t.Context(), runs, where)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		got := ""
		for i, r := range runs {
			if holds[i] {
				got += r.ID
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", where, diff)
		}
	}
	for where, want := range map[string]string{
		"throughput > 5":          "only collected runs have throughput; `scalebench runs --where CONDITION` selects by it",
		"steps = 4":               "only collected runs have steps",
		"\"to_0.75\" < 9":         "only collected runs have to_0.75",
		"parameters.rate = 1":     "no run has a parameter parameters.rate",
		"nonsense = 1":            "no such column: nonsense",
		"1; DROP TABLE run":       "a semicolon does not belong in it",
		"load_extension('x') = 1": "load_extension", // not authorized; in the release there is no such function
	} {
		_, err := Choose(t.Context(), runs, where)
		var mine *WhereError
		if !errors.As(err, &mine) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), "parameters.lr") || strings.Contains(err.Error(), "throughput_why")) {
			t.Errorf("%s: the error names other columns and parameters than there are: %v", where, err)
		}
	}
}
