package extract

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// A stated rate is compared with the samples and times in the log.
func TestHold(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers int
		stated  float64
		own     ownRate
		keep    bool
		times   float64
	}{
		{"of all", 8, 800, ownRate{810, 700}, true, 1},
		{"of all, with what came between", 8, 400, ownRate{800, 410}, true, 1},
		{"of one of 8", 8, 100, ownRate{810, 700}, true, 8},
		{"of one of 2", 2, 400, ownRate{810, 790}, true, 2},
		{"of all of 2", 2, 790, ownRate{810, 790}, true, 1},
		{"of a node of 4", 8, 400, ownRate{800, 800}, false, 0},
		{"of nothing", 8, 9000, ownRate{810, 700}, false, 0},
		{"of one worker alone", 1, 800, ownRate{810, 700}, true, 1},
		{"workers not known", 0, 100, ownRate{800, 800}, false, 0},
		{"nothing to hold it against", 8, 100, ownRate{}, true, 1},
	} {
		l := &log{o: Options{Workers: tt.workers}}
		if h := l.hold(tt.stated, tt.own); h.keep != tt.keep || h.times != tt.times || h.note == "" {
			t.Errorf("%s: %+v", tt.name, h)
		}
	}
}

// timm's mean step time and the global batch give the rate: 4 ranks with 8 samples each in
// 0.5 s make 64/s, whichever rate it states.
func TestTimmHeld(t *testing.T) {
	for _, tt := range []struct {
		stated     string
		throughput float64
		says       string
	}{
		{"64.00", 64, "agree"},
		{"16.00", 64, "one worker's"},
		{"7.00", 64, "neither"},
	} {
		var b strings.Builder
		for _, epoch := range []string{"0", "1"} {
			b.WriteString("Train: " + epoch + " [   9/10 (100%)]  Loss: 0.688 (0.688)  Time: 0.500s,   " + tt.stated + "/s  (0.500s,   " + tt.stated +
				"/s)  LR: 3.125e-03  Data: 0.463 (0.463)\n")
		}
		r, err := timm.Extract(strings.NewReader(b.String()), Options{Workers: 4, WorkerBatch: 8})
		if err != nil {
			t.Fatal(err)
		}
		f := slices.Collect(r.Findings())[0].Event.Figure
		if f.Name != "throughput" || math.Abs(f.Value-tt.throughput) > 1e-9 || !strings.Contains(f.Note, tt.says) {
			t.Errorf("%s/s: %+v", tt.stated, f)
		}
	}
}

// Lightning counts rank 0's samples: 1,000 in 10 s on one of 4 ranks are 400/s in total.
// The user's column states a quarter of that.
func TestLightningHeld(t *testing.T) {
	text := "epoch,step,train/samples,train/time,mine\n0,9,1000,10,100\n0,19,2000,20,100\n0,29,3000,30,100\n"
	r, err := lightningCSV.Extract(strings.NewReader(text), Options{Workers: 4, Columns: map[string]string{"throughput": "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	for f := range r.Findings() {
		if g := f.Event.Figure; g != nil && g.Name == "throughput" {
			if g.Value != 400 || !strings.Contains(g.Note, "one worker's") {
				t.Errorf("%+v", g)
			}
			return
		}
	}
	t.Error("no throughput")
}
