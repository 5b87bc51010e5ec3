package collective

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Link is Hockney's model of one operation in one run: a message of s bytes
// takes Alpha + s/Beta seconds (Hockney, Parallel Computing 20, 1994).
type Link struct {
	Op      string
	InPlace bool
	Alpha   float64 // latency, seconds
	// Beta is the bandwidth of a long message, bytes/s of the whole array.
	Beta  float64
	Sizes int // that it was fitted to
	// Low and High are how far the model is off at a measured size, as model over
	// measured − 1 where it is the furthest below and above. Caches and changes of
	// algorithm make real curves no line.
	Low, High float64
}

// minSizes is how many sizes a fit needs: one more than it has coefficients.
const minSizes = 3

// Seconds is the time of a message of so many bytes.
func (l Link) Seconds(bytes float64) float64 { return l.Alpha + bytes/l.Beta }

// Fit fits a Link to each operation and place of a run's measurements, by least
// squares of relative errors: the microseconds of a small message count as much
// as the seconds of a large one. Neither coefficient is negative. why says for
// which there is none.
func Fit(list []Measurement) (links []Link, why []string) {
	type curve struct {
		op      string
		inPlace bool
	}
	var order []curve
	points := map[curve][]Measurement{}
	for _, m := range list {
		if m.Seconds == nil || !(*m.Seconds > 0) || math.IsInf(*m.Seconds, 0) || !(m.Bytes > 0) {
			continue
		}
		c := curve{m.Op, m.InPlace}
		if points[c] == nil {
			order = append(order, c)
		}
		points[c] = append(points[c], m)
	}
	for _, c := range order {
		l, err := fit(points[c])
		if err != nil {
			why = append(why, fmt.Sprintf("no latency and bandwidth of %s: %v", Name(c.op, c.inPlace), err))
			continue
		}
		l.Op, l.InPlace = c.op, c.inPlace
		links = append(links, l)
	}
	return links, why
}

func fit(list []Measurement) (Link, error) {
	sizes := map[float64]bool{}
	// Normal equations of y = α·u + γ·v, with each row divided by its time: u = 1/t,
	// v = s/t, y = 1. Sizes are in units of the largest, for the sake of rounding.
	unit := slices.MaxFunc(list, func(a, b Measurement) int { return cmp.Compare(a.Bytes, b.Bytes) }).Bytes
	var uu, uv, vv, u, v float64
	for _, m := range list {
		sizes[m.Bytes] = true
		t := *m.Seconds
		a, b := 1/t, m.Bytes/unit/t
		uu, uv, vv, u, v = uu+a*a, uv+a*b, vv+b*b, u+a, v+b
	}
	if len(sizes) < minSizes {
		return Link{}, fmt.Errorf("%d sizes, and a fit of two coefficients needs %d", len(sizes), minSizes)
	}
	det := uu*vv - uv*uv
	alpha, gamma := (u*vv-v*uv)/det, (v*uu-u*uv)/det
	if alpha < 0 {
		alpha, gamma = 0, v/vv
	}
	if !(gamma > 0) || math.IsInf(gamma, 0) {
		return Link{}, fmt.Errorf("its times do not grow with the size")
	}
	l := Link{Alpha: alpha, Beta: unit / gamma, Sizes: len(sizes)}
	for _, m := range list {
		off := l.Seconds(m.Bytes) / *m.Seconds - 1
		l.Low, l.High = min(l.Low, off), max(l.High, off)
	}
	return l, nil
}

// Name names an operation and its place.
func Name(op string, inPlace bool) string {
	if op == "" {
		op = "an operation that is not stated"
	}
	if inPlace {
		return op + " in place"
	}
	return op + " out of place"
}
