package study

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A TokenLength is a distribution of a number of tokens.
type TokenLength struct {
	Kind string // of tokenLengths; "" if there is none
	A, B float64
}

// mostTokens bounds the tokens of a prompt or an answer.
const mostTokens = 1 << 20

// tokenLengths are the distributions by name.
var tokenLengths = map[string]struct {
	numbers int
	form    string
	draw    func(r *rand.Rand, a, b float64) float64
	moments func(a, b float64) (mean, sd float64)
}{
	"constant": {1, "constant(N)", func(_ *rand.Rand, a, _ float64) float64 { return a }, func(a, _ float64) (mean, sd float64) { return a, 0 }},
	"uniform": {2, "uniform(LOW, HIGH)", func(r *rand.Rand, a, b float64) float64 { return a + r.Float64()*(b-a) },
		func(a, b float64) (mean, sd float64) { return (a + b) / 2, (b - a) / math.Sqrt(12) }},
	"normal": {2, "normal(MEAN, SD)", func(r *rand.Rand, a, b float64) float64 { return a + b*r.NormFloat64() }, func(a, b float64) (mean, sd float64) { return a, b }},
	"lognormal": {2, "lognormal(MEDIAN, SIGMA)", func(r *rand.Rand, a, b float64) float64 { return a * math.Exp(b*r.NormFloat64()) },
		func(a, b float64) (mean, sd float64) {
			mean = a * math.Exp(b*b/2)
			return mean, mean * math.Sqrt(math.Expm1(b*b))
		}},
}

// parseTokenLength parses "512", "uniform(100, 1000)", "normal(512, 64)" or "lognormal(512, 0.5)".
func parseTokenLength(text string) (TokenLength, error) {
	text = strings.TrimSpace(text)
	if _, err := strconv.Atoi(text); err == nil {
		text = "constant(" + text + ")"
	}
	kind, rest, _ := strings.Cut(text, "(")
	l := TokenLength{Kind: strings.TrimSpace(kind)}
	of, known := tokenLengths[l.Kind]
	inner, closed := strings.CutSuffix(rest, ")")
	words := strings.Split(inner, ",")
	if !known || !closed || len(words) != of.numbers {
		return TokenLength{}, fmt.Errorf("%q is not a number of tokens; valid: 512, uniform(LOW, HIGH), normal(MEAN, SD), lognormal(MEDIAN, SIGMA)", text)
	}
	for i, into := range []*float64{&l.A, &l.B}[:of.numbers] {
		x, err := strconv.ParseFloat(strings.TrimSpace(words[i]), 64)
		if err != nil || !(x >= 0) || x > mostTokens || i == 0 && x < 1 {
			return TokenLength{}, fmt.Errorf("%q in %s: want tokens from 1 to %d, like %s", strings.TrimSpace(words[i]), text, mostTokens, of.form)
		}
		*into = x
	}
	if l.Kind == "uniform" && l.B < l.A || l.Kind == "lognormal" && l.B > 3 {
		return TokenLength{}, fmt.Errorf("%s: want %s, with LOW up to HIGH and SIGMA up to 3", text, of.form)
	}
	return l, nil
}

// Draw returns a random number of tokens, at least 1.
func (l TokenLength) Draw(r *rand.Rand) int {
	return int(min(max(math.Round(tokenLengths[l.Kind].draw(r, l.A, l.B)), 1), mostTokens))
}

// Moments returns the mean and the standard deviation; 0 without a distribution. It ignores that draws are
// whole numbers of at least 1.
func (l TokenLength) Moments() (mean, sd float64) {
	if l.Kind == "" {
		return 0, 0
	}
	return tokenLengths[l.Kind].moments(l.A, l.B)
}
