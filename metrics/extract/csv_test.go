package extract

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

// A file may be as large as the limit, whether its size is known before or not.
func TestWholeFileLimit(t *testing.T) {
	const most = 3 << 20
	for name, c := range map[string]struct {
		size  int
		known int64
		large bool
	}{
		"at the limit":             {most, most, false},
		"size unknown":             {most, 0, false},
		"larger":                   {most + 1, most + 1, true},
		"larger, size unknown":     {most + 1, 0, true},
		"it grew while being read": {most + 1, most, true},
	} {
		l := &log{o: Options{File: "x.json", Bytes: c.known}}
		data, err := l.upTo(strings.NewReader(strings.Repeat("x", c.size)), most)
		if c.large && (err == nil || err.Error() != "x.json: larger than 3 MiB, the limit for a file of this format") {
			t.Errorf("%s: %v, want the limit", name, err)
		}
		if !c.large && (err != nil || len(data) != c.size) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(data), err, c.size)
		}
	}
	broken := errors.New("broken")
	if _, err := (&log{o: Options{File: "x.json"}}).upTo(iotest.ErrReader(broken), most); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "x.json: ") {
		t.Errorf("a failing read: %v, want its error with the file's name", err)
	}
}

// Rates that were multiplied by the worker count twice rise with its square: fourfold for
// twice the workers. Growth up to a fifth below that also counts.
func TestPerRises(t *testing.T) {
	for _, c := range []struct {
		values []float64 // on 2, 4 and 8 workers
		want   bool
	}{
		{[]float64{100, 400, 1600}, true},
		{[]float64{100, 330, 1300}, true},
		{[]float64{100, 310, 1600}, false},
		{[]float64{100, 400, 1270}, false},
		{[]float64{100, 200, 400}, false},
	} {
		var list []countedMedian
		for i, v := range c.values {
			list = append(list, countedMedian{workers: float64(int(2 << i)), value: v})
		}
		if got := new(survey).perRises(list); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// Losses a quarter of an epoch apart begin at most at 1.5 · 0.25 + 0.01 = 0.385.
func TestLateFirstLoss(t *testing.T) {
	for first, resumed := range map[float64]bool{0.25: false, 0.38: false, 0.4: true, 0.7: true} {
		h := &hfParts{epochs: []float64{first, first + 0.25, first + 0.5}, losses: []float64{2, 2, 2}}
		if why := h.resumed(0, 0); (why != "") != resumed {
			t.Errorf("a first loss at %g: %q, resumed %v", first, why, resumed)
		}
	}
	// A mean below nine tenths of 2, the mean of all losses, covers only a part of the training.
	for mean, resumed := range map[float64]bool{1.81: false, 1.79: true} {
		h := &hfParts{epochs: []float64{0.25, 0.5, 0.75}, losses: []float64{2, 2, 2}}
		if why := h.resumed(mean, 0); (why != "") != resumed {
			t.Errorf("a mean of %g: %q, resumed %v", mean, why, resumed)
		}
	}
}
