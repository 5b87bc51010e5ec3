package extract

import (
	"math"
	"strings"
	"testing"
)

// Figures of language models in a table: the rate per device times the workers, the median
// without the first epoch, and fractions given in percent.
func TestTableOfALanguageModel(t *testing.T) {
	columns := map[string]Column{"workers": {Name: "gpus"}, "tokens_per_second_per_gpu": {Name: "tok/s/gpu"}, "reported_mfu": {Name: "MFU (%)", Unit: "%"}, "step_seconds": {Name: "step ms", Unit: "ms"}}
	for _, tt := range []struct {
		text string
		more map[string]Column
		want map[string]float64
		err  string
	}{
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,1000,40,250\n", want: map[string]float64{"tokens_per_second": 8000, "tokens_per_second_per_gpu": 1000, "reported_mfu": 0.4, "step_seconds": 0.25}},
		{text: "gpus,tok/s/gpu,MFU (%),step ms,all\n8,1000,40,250,7900\n", more: map[string]Column{"tokens_per_second": {Name: "all"}},
			want: map[string]float64{"tokens_per_second": 7900, "tokens_per_second_per_gpu": 1000, "reported_mfu": 0.4, "step_seconds": 0.25}},
		{text: "gpus,tok/s/gpu,MFU (%),step ms,e\n8,10,1,999,1\n8,1000,40,250,2\n8,1200,42,240,3\n", more: map[string]Column{"epoch": {Name: "e"}},
			want: map[string]float64{"tokens_per_second": 8800, "tokens_per_second_per_gpu": 1100, "reported_mfu": 0.41, "step_seconds": 0.245}},
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,1000,,\n", want: map[string]float64{"tokens_per_second": 8000, "tokens_per_second_per_gpu": 1000}},
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,1000,140,250\n", err: "reported_mfu is 140; it is a share"},
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,0,40,250\n", err: "t.csv:2: tokens_per_second_per_gpu is 0; want more than 0"},
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,1000,40,250\n", more: map[string]Column{"reported_mfu": {Name: "MFU (%)"}, "step_seconds": {Name: "step ms"}}, want: map[string]float64{"tokens_per_second": 8000, "tokens_per_second_per_gpu": 1000, "reported_mfu": 0.4, "step_seconds": 0.25}},
		{text: "gpus,tok/s/gpu,MFU (%),step ms\n8,1000,40,250\n", more: map[string]Column{"step_seconds": {Name: "step ms", Unit: "%"}}, err: "step_seconds cannot be in"},
	} {
		all := map[string]Column{}
		for _, list := range []map[string]Column{columns, tt.more} {
			for ours, c := range list {
				all[ours] = c
			}
		}
		got, failed := map[string]float64{}, ""
		for run, err := range Runs(strings.NewReader(tt.text), Options{File: "t.csv"}, all) {
			if err != nil {
				failed = err.Error()
				break
			}
			for e := range run.Result.Events() {
				if e.Figure != nil {
					got[e.Figure.Name] = e.Figure.Value
				}
			}
		}
		if !strings.Contains(failed, tt.err) || (failed == "") != (tt.err == "") {
			t.Errorf("%q: got error %q, want %q", tt.text, failed, tt.err)
			continue
		}
		if len(got) != len(tt.want) {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
		for name, want := range tt.want {
			if math.Abs(got[name]-want) > 1e-9*want {
				t.Errorf("%q: %s = %g, want %g", tt.text, name, got[name], want)
			}
		}
	}
}
