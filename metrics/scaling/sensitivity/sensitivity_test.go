package sensitivity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// runs returns six runs of a combination, 1 % apart around a throughput.
func runs(at map[string]any, throughput float64) (list []scaling.Observation) {
	for i := range 6 {
		list = append(list, scaling.Observation{
			Run: fmt.Sprint(at, i), Point: fmt.Sprint(at), Repeat: i + 1, Kind: "train", Framework: "native", Workers: 1, Parameters: at,
			Values: map[string]float64{measure.Throughput: throughput * (1 + 0.002*float64(i))},
		})
	}
	return list
}

func ask(t *testing.T, o Options, groups ...[]scaling.Observation) Answer {
	t.Helper()
	var obs []scaling.Observation
	for _, g := range groups {
		obs = append(obs, g...)
	}
	o.Measure, _ = measure.Find(measure.Throughput)
	answers, err := Analyse(obs, o)
	if err != nil || len(answers) != 1 {
		t.Fatal(err, len(answers))
	}
	return answers[0]
}

// said formats an answer briefly: the sufficient amounts, the verdicts, and what to do next.
func said(a Answer) string {
	at := func(m map[string]scaling.Value) string { return nameOf(m, a.keys) }
	text := "none"
	if a.Spec != nil {
		text = at(a.Spec.At)
	}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			if l.At != f.Reference {
				text += fmt.Sprintf("; %s %s", l.At, l.Verdict)
			}
		}
	}
	for _, n := range a.Also {
		text += "; or " + at(n.At)
	}
	for _, n := range a.Next {
		text += "; next " + at(n.At)
	}
	return text
}

func TestAnswers(t *testing.T) {
	of := func(cores, bytes int, throughput float64) []scaling.Observation {
		return runs(map[string]any{coresKey: int64(cores), memoryKey: int64(bytes)}, throughput)
	}
	disk := func(name string, throughput float64) []scaling.Observation {
		return runs(map[string]any{"variant": name, coresKey: int64(8)}, throughput)
	}
	both, words := []string{coresKey, memoryKey}, []string{coresKey, "variant"}
	short := of(8, 4, 99)[:2]
	label := func(memory string, throughput float64) []scaling.Observation {
		return runs(map[string]any{"label.memory": memory}, throughput)
	}
	wide := func(name string, low, high float64) []scaling.Observation {
		list := disk(name, 100)
		for i := range list {
			list[i].Values[measure.Throughput] = low + (high-low)*float64(i)/5
		}
		return list
	}
	for _, test := range []struct {
		name    string
		factors []string
		more    Options
		groups  [][]scaling.Observation
		want    string
	}{
		{"each alone, not together", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 99), of(2, 8, 60), of(8, 4, 98), of(8, 2, 97)},
			"cpus_per_worker=8 memory=2; 4 enough; 2 too little; 4 enough; 2 enough; next cpus_per_worker=4 memory=2"},
		{"together", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 99), of(8, 4, 98), of(4, 4, 97)},
			"cpus_per_worker=4 memory=4; 4 enough; 4 enough"},
		{"too little together", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 99), of(2, 8, 98), of(8, 4, 98), of(2, 4, 80)},
			"cpus_per_worker=2 memory=8; 4 enough; 2 enough; 4 enough"},
		// 2 cores with all the memory, or 4 with less.
		{"one step up is enough", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 99), of(2, 8, 98), of(8, 4, 98), of(2, 4, 80), of(4, 4, 97)},
			"cpus_per_worker=2 memory=8; 4 enough; 2 enough; 4 enough; or cpus_per_worker=4 memory=4"},
		{"a greater loss", both, Options{Epsilon: 0.5}, [][]scaling.Observation{of(8, 8, 100), of(2, 8, 60)}, "cpus_per_worker=2 memory=8; 2 enough"},
		{"all is needed", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 70)}, "cpus_per_worker=8 memory=8; 4 too little"},
		{"two runs have no interval", both, Options{}, [][]scaling.Observation{of(8, 8, 100), short}, "none; 4 undecided; next cpus_per_worker=8 memory=4"},
		{"no limit is most", both, Options{}, [][]scaling.Observation{of(8, 0, 100), of(8, 4, 60)}, "cpus_per_worker=8 memory=0; 4 too little"},
		{"memory ran out", both, Options{Exhausted: []scaling.Planned{
			{Point: "x", Framework: "native", Workers: 1, Parameters: map[string]any{coresKey: int64(8), memoryKey: int64(4)}},
			{Point: "y", Framework: "other", Workers: 1, Parameters: map[string]any{coresKey: int64(2), memoryKey: int64(8)}},
		}}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 99)}, "cpus_per_worker=4 memory=8; 4 enough; 4 too little"},
		// A sufficient amount below an insufficient one does not count.
		{"not monotone", both, Options{}, [][]scaling.Observation{of(8, 8, 100), of(4, 8, 70), of(2, 8, 99)}, "cpus_per_worker=8 memory=8; 4 too little; 2 enough"},
		{"words have no order", words, Options{}, [][]scaling.Observation{disk("ssd", 100), disk("hdd", 99), disk("nfs", 50), runs(map[string]any{"variant": "ssd", coresKey: int64(4)}, 99)},
			"cpus_per_worker=4 variant=ssd; 4 enough; hdd enough; nfs too little"},
		// Numbers with a unit are ordered by size, not as words, by which 120GB comes first.
		{"labels with units", []string{"label.memory"}, Options{}, [][]scaling.Observation{label("15GB", 100), label("30GB", 101), label("120GB", 200), label("0.06 TB", 199)},
			"memory=0.06 TB; 0.06 TB enough; 30GB too little; 15GB too little"},
		// An amount that beats the reference becomes the reference: 8 cores are slower than 4, and
		// 2 keep 97 of 100.
		{"more is slower", []string{coresKey}, Options{}, [][]scaling.Observation{of(8, 8, 80), of(4, 8, 100), of(2, 8, 97), of(1, 8, 50)},
			"cpus_per_worker=2; 8 too little; 2 enough; 1 too little"},
		{"the best word, not the one varied most", words, Options{}, [][]scaling.Observation{disk("nfs", 100), disk("ssd", 200), disk("hdd", 90), runs(map[string]any{"variant": "nfs", coresKey: int64(4)}, 99)},
			"cpus_per_worker=8 variant=ssd; hdd too little; nfs too little"},
		// 90 to 110 and 92 to 112: neither is shown to be better, nor by how much.
		{"words that nothing tells apart", words, Options{}, [][]scaling.Observation{wide("ssd", 90, 110), wide("hdd", 92, 112), runs(map[string]any{"variant": "ssd", coresKey: int64(4)}, 100)},
			"none; "},
	} {
		test.more.Factors = test.factors
		if got := said(ask(t, test.more, test.groups...)); got != test.want && !(strings.HasSuffix(test.want, "; ") && strings.HasPrefix(got, test.want)) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Runs at another number of workers, or with another batch, belong to another series.
func TestSeries(t *testing.T) {
	throughput, _ := measure.Find(measure.Throughput)
	var obs []scaling.Observation
	for _, batch := range []int64{32, 64} {
		for _, cores := range []int64{8, 4} {
			obs = append(obs, runs(map[string]any{coresKey: cores, "workload.batch": batch}, float64(batch*cores))...)
		}
	}
	answers, err := Analyse(obs, Options{Measure: throughput, Factors: []string{coresKey}})
	if err != nil || len(answers) != 2 || !strings.Contains(answers[0].Series, "batch=32") || !strings.Contains(answers[1].Series, "batch=64") {
		t.Fatalf("%v, %+v", err, answers)
	}
	for _, a := range answers {
		if got := said(a); got != "cpus_per_worker=8; 4 too little" {
			t.Errorf("%s: %s", a.Series, got)
		}
	}
	for _, bad := range []Options{{Measure: throughput}, {Measure: throughput, Factors: []string{coresKey}, Epsilon: 1}, {Measure: throughput, Factors: []string{coresKey}, Epsilon: -0.1}} {
		if _, err := Analyse(obs, bad); err == nil {
			t.Errorf("%+v was answered", bad)
		}
	}
}

func TestAmounts(t *testing.T) {
	word := func(s string) scaling.Value { return scaling.Value{Word: s} }
	for _, test := range []struct {
		v, w scaling.Value
		want int
		ok   bool
	}{
		{word("15GB"), word("120GB"), -1, true},
		{word("64 MiB"), word("64MB"), 1, true}, // 67.1 against 64 million bytes
		{word("1 TB"), word("999GB"), 1, true},
		{word("8 cores"), word("16 cores"), -1, true},
		{word("8 cores"), word("1 core"), 1, true},
		{word("8 cores"), word("8GB"), 0, false},
		{word("ssd"), word("hdd"), 0, false},
		{word("A100"), word("H100"), 0, false},
		{word("2080Ti"), word("3090"), 0, false},
		{scaling.At(4), scaling.At(8), -1, true},
	} {
		got, ok := compare("label.x", test.v, test.w)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%v and %v: %d %v", test.v, test.w, got, ok)
		}
	}
}
