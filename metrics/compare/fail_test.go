package compare

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestFailAt(t *testing.T) {
	loss := func(x float64) *float64 { return &x }
	at := func(verdict Verdict, by *float64) Pair {
		return Pair{Series: "native", Axis: scaling.Workers, At: scaling.At(4), Workers: 4, Verdict: verdict, Loss: by}
	}
	for _, test := range []struct {
		name   string
		points []Pair
		limit  float64
		want   string // "": no error
	}{
		{"worse by less", []Pair{at(Worse, loss(0.04))}, 0.05, ""},
		{"worse by just so much", []Pair{at(Worse, loss(0.05))}, 0.05, "1 of 1 point worse by 5 % or more: native, 4 workers"},
		{"better by much", []Pair{at(Better, loss(-0.5)), at(Same, loss(0.2))}, 0.05, ""},
		{"so many miss the target that there is no ratio", []Pair{at(Worse, nil), at(Same, nil)}, 1, "1 of 2 points worse by 100 % or more"},
		{"one cannot be judged, the other is not worse", []Pair{at(Insufficient, nil), at(Same, nil)}, 0, ""},
		{"none can be judged", []Pair{at(Insufficient, loss(0.9))}, 0, "no point has enough runs"},
	} {
		err := (&Comparison{Pairs: test.points}).FailAt(test.limit)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
