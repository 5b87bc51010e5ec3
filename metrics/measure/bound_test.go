package measure

import (
	"strings"
	"testing"
)

// A share of the peak above 1 is an error, even if it is below 2.
func TestShareIsAtMostOne(t *testing.T) {
	const peak = 1000 // FLOP/s: 10 FLOPs per token at r tokens/s are a share of r/100
	for _, c := range []struct {
		rate  float64
		want  float64
		error string // "" if valid
	}{
		{25, 0.25, ""},
		{100, 1, ""},
		{101, 0, "101 %"},
		{150, 0, "150 %"},
		{199, 0, "199 %"},
	} {
		for name, of := range map[string]func(flops, rate, peak float64) (float64, error){"MFU": Utilisation, "HFU": HardwareUtilisation} {
			got, err := of(10, c.rate, peak)
			switch {
			case c.error == "" && (err != nil || got != c.want):
				t.Errorf("%s at %g tokens/s: %g, %v; want %g", name, c.rate, got, err, c.want)
			case c.error != "" && (err == nil || got != 0 || !strings.Contains(err.Error(), "an "+name+" of "+c.error)):
				t.Errorf("%s at %g tokens/s: %g, %v; want an error with %q", name, c.rate, got, err, c.error)
			}
		}
	}
	for _, c := range [][3]float64{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, -1, 1}, {1, -1, -1}} {
		if got, err := Utilisation(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), "want more than 0") {
			t.Errorf("%v: %g, %v", c, got, err)
		}
	}
}
