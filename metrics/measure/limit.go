package measure

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Limit is the largest acceptable latencies and error share of a service.
type Limit struct {
	Seconds map[string]float64 // by measure name: latency_p95, ttft_p99
	Errors  float64            // share of requests without a correct answer in time
}

// errorsAtMost is the default limit on errors.
const errorsAtMost = 0.001

// ParseLimit reads a limit as written in a study: "p95=50ms errors=0.001". A bare
// percentile such as p95 means latency_p95.
func ParseLimit(text string) (Limit, error) {
	l := Limit{Seconds: map[string]float64{}, Errors: errorsAtMost}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		if name == Errors {
			share, err := strconv.ParseFloat(value, 64)
			if err != nil || !(share >= 0 && share < 1) {
				return Limit{}, fmt.Errorf("%q is not a share of errors; want 0 to 1, like errors=0.001", word)
			}
			l.Errors = share
			continue
		}
		m, ok := Percentile(name)
		if !ok {
			return Limit{}, fmt.Errorf("%q limits nothing that is measured; valid: %s, errors", name, strings.Join(Percentiles(), ", "))
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return Limit{}, fmt.Errorf("%q is not a time; want one like %s=50ms", word, name)
		}
		l.Seconds[m.Name] = d.Seconds()
	}
	return l, nil
}

// String returns the limit in the form that ParseLimit reads, times sorted by name.
func (l Limit) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l.Seconds)) {
		words = append(words, strings.TrimPrefix(name, latencies)+"="+time.Duration(l.Seconds[name]*1e9+0.5).String())
	}
	if l.Errors != errorsAtMost {
		words = append(words, fmt.Sprintf("%s=%g", Errors, l.Errors))
	}
	return strings.Join(words, " ")
}

// TOML returns the study line that sets the limit.
func (l Limit) TOML() string {
	var words []string
	for word := range strings.FieldsSeq(l.String()) {
		name, value, _ := strings.Cut(word, "=")
		if name != Errors {
			value = strconv.Quote(value)
		}
		words = append(words, name+" = "+value)
	}
	return "limit = { " + strings.Join(words, ", ") + " }"
}

const latencies = "latency_"

// Percentile returns the measure that a word in a limit names: "p95" is latency_p95,
// "ttft_p95" is ttft_p95.
func Percentile(word string) (Measure, bool) {
	i := slices.IndexFunc(serving, func(m Measure) bool {
		return (m.Name == word || m.Name == latencies+word) && isPercentile(m.Name)
	})
	if i < 0 || strings.HasPrefix(word, latencies) {
		return Measure{}, false
	}
	return serving[i], true
}

// Percentiles returns the words that Percentile accepts.
func Percentiles() []string {
	var list []string
	for _, m := range serving {
		if isPercentile(m.Name) {
			list = append(list, strings.TrimPrefix(m.Name, latencies))
		}
	}
	return list
}

// IsTail reports whether the measure is a percentile of a service's times above the median.
func (m Measure) IsTail() bool { return isPercentile(m.Name) && !strings.HasSuffix(m.Name, "p50") }

func isPercentile(name string) bool {
	for _, of := range []string{latencies, "ttft_", "ttfo_", "tpot_", "itl_"} {
		if p, found := strings.CutPrefix(name, of+"p"); found {
			_, err := strconv.Atoi(p)
			return err == nil
		}
	}
	return false
}
