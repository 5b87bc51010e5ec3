package study

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// A Limit bounds latencies and errors, as one string: "p95=50ms errors=0.001", or "" for no
// limit. In a study file it is a table: { p95 = "50ms", errors = 0.001 }.
type Limit string

// percentiles are the percentiles that a limit may bound, as shares of the requests.
var percentiles = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

// Prefixes of percentiles in a limit, as in ttft_p95. A percentile without prefix bounds
// the latency.
const (
	TTFT = "ttft" // time to first token
	TTFO = "ttfo" // time to first output token, after a model's reasoning
	TPOT = "tpot" // time per output token
	ITL  = "itl"  // inter-token latency
)

// bound splits the name of a percentile, such as ttft_p95. of is TTFT, TTFO, TPOT, ITL, or
// "" for the latency; share is the percentile as a share of the requests.
func bound(name string) (of string, share float64, ok bool) {
	of, percentile, found := strings.Cut(name, "_")
	if !found {
		of, percentile = "", name
	}
	share, ok = percentiles[percentile]
	return of, share, ok && (!found || slices.Contains([]string{TTFT, TTFO, TPOT, ITL}, of))
}

// A Bound is the upper limit for one percentile.
type Bound struct {
	Of      string  // which time is limited: TTFT, TTFO, TPOT or ITL; "": the latency
	Share   float64 // share of the requests
	Seconds float64
}

const errorsAtMost = 0.001 // default of a limit's errors

// Of returns the bounds for percentiles, and the permitted share of requests that get no
// right answer in time.
func (l Limit) Of() (bounds []Bound, errors float64) {
	errors = errorsAtMost
	for word := range strings.FieldsSeq(string(l)) {
		name, value, _ := strings.Cut(word, "=")
		if name == "errors" {
			errors, _ = strconv.ParseFloat(value, 64)
			continue
		}
		var d Duration
		_ = d.UnmarshalText([]byte(value)) // UnmarshalTOML has checked it
		of, share, _ := bound(name)
		bounds = append(bounds, Bound{of, share, d.Seconds()})
	}
	return bounds, errors
}

// UnmarshalTOML reads the table.
func (l *Limit) UnmarshalTOML(v any) error {
	t, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("want a table, like { p95 = \"50ms\", errors = 0.001 }, got %.60s", fmt.Sprint(v))
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		text := fmt.Sprint(t[name])
		if name == "errors" {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !(x >= 0 && x < 1) {
				return fmt.Errorf("errors = %s; want a share of the requests, 0 or more and less than 1", text)
			}
			words = append(words, "errors="+strconv.FormatFloat(x, 'g', -1, 64))
			continue
		}
		if _, _, ok := bound(name); !ok {
			return fmt.Errorf("%s is unknown; valid: p50, p90, p95, p99, the same behind ttft_, tpot_ and itl_ for streams, and errors", name)
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%s = %q is not a latency; write it with its unit, like \"50ms\"", name, text)
		}
		words = append(words, name+"="+d.String())
	}
	if len(words) == 0 || len(words) == 1 && strings.HasPrefix(words[0], "errors=") {
		return fmt.Errorf("limits no latency; write one, like { p95 = \"50ms\" }")
	}
	*l = Limit(strings.Join(words, " "))
	return nil
}

var _ toml.Unmarshaler = (*Limit)(nil)
