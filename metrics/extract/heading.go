package extract

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A heading is the parsed name of a column: the unit, with its SI prefix, quantity, time and
// scope, as in "tokens per sec per GPU", "kimg/s", "step time (ms)".
type heading struct {
	dims  []dimension // possible meanings, the most likely first; empty if the name has no known unit
	said  string      // the part of the name that looks like a unit; "" if none does
	total bool        // whether the name says "total" of all devices
	of    string      // "steps" or "epochs" if the name has the word
	// factor multiplies the numbers if the name states one apart from the unit, as in
	// "tokens/s (k)"; else 1. The dims include it.
	factor float64
}

// A dimension is a unit and the scope of its numbers (all devices, one device, one node).
type dimension struct {
	unit
	per string // number.PerDevice, number.PerNode, or "" if not stated
}

// totals are words of names that mean all devices.
var totals = words(map[string]string{"total": "total aggregate aggregated global overall cluster cumulative combined all sum system"})

func words(list map[string]string) map[string]string {
	all := map[string]string{}
	for kind, text := range list {
		for _, word := range strings.Fields(text) {
			all[word] = kind
		}
	}
	return all
}

var brackets = regexp.MustCompile(`[(\[{]([^()\[\]{}]*)[)\]}]`)

// anyBase is the unit of a rate whose name states no quantity, as in "throughput per GPU".
const anyBase = number.AnyQuantity

// headingOf parses the name of a column.
func headingOf(name string) heading {
	inside, factor := "", 1.0
	name, factor = factored(name)
	rest := brackets.ReplaceAllStringFunc(name, func(part string) string {
		inside += " " + part[1:len(part)-1]
		return " "
	})
	outer, inner := readHeading(rest), readHeading(inside)
	h, other := inner, outer
	if len(inner.dims) == 0 && (len(outer.dims) > 0 || inner.said == "") || len(inner.dims) > 0 && inner.dims[0].base == anyBase && len(outer.dims) > 0 {
		h, other = outer, inner // "tokens/s (per GPU)", "img/s (batch 32)"
	}
	if len(other.dims) > 0 { // "Throughput per GPU (img/s)"
		for i := range h.dims {
			h.dims[i].per = cmp.Or(h.dims[i].per, other.dims[0].per)
		}
	}
	if u, is := number.ParseUnit(inside); h.said == "" && is && !u.Bare && u.Base != "" {
		h.said = strings.TrimSpace(inside) // "(W)": a unit of no figure
	}
	h.total, h.of, h.factor = outer.total || inner.total, cmp.Or(outer.of, inner.of), factor
	for i := range h.dims {
		h.dims[i].scale *= factor
	}
	return h
}

// readHeading parses the part of a name outside brackets, or the part inside.
func readHeading(text string) heading {
	h := heading{}
	list := number.Words(text)
	for _, word := range list {
		h.total = h.total || totals[strings.ToLower(word)] != ""
		if kind := number.Kind(word); kind == "steps" || kind == "epochs" {
			h.of = kind
		}
	}
	// The name of a metric may be a path: "train/device/samples_per_sec". So try the part after
	// each slash.
	over, per := number.Divided(list), ""
	for from := range over {
		tail := over[from:]
		if from > 0 && len(tail[0]) == 1 && number.TimeUnit(tail[0][0]) > 0 {
			break // "Bilder/s" is not a time
		}
		if h.dims = dimensions(number.UnitsInName(tail), per); h.dims != nil {
			break
		}
		for _, word := range tail[0] {
			if isScope(word) {
				per = number.Kind(word)
			}
		}
	}
	if ofEach(list) {
		for i := range h.dims {
			h.dims[i].per = cmp.Or(h.dims[i].per, number.PerDevice)
		}
	}
	// "tokens/step" is a quantity over something else than a time.
	counted := len(over) > 1 && isCount(strings.Join(over[0], " "))
	rated := counted || slices.ContainsFunc(over[1:], func(part []string) bool {
		return len(part) > 0 && (number.TimeUnit(part[0]) > 0 || isScope(part[0]))
	})
	if h.dims != nil || rated {
		h.said = strings.TrimSpace(text)
	}
	return h
}

// ofEach reports whether a name says that its numbers are of each device: "img/s each", "rank mean
// img/s".
func ofEach(list []string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(list, func(word string) bool { return slices.Contains(words, strings.ToLower(word)) })
	}
	return has("each") || has("mean", "avg", "average") && countsDevices(list[:min(2, len(list))])
}

// isScope reports whether a word names devices or nodes.
func isScope(word string) bool {
	kind := number.Kind(word)
	return kind == number.PerDevice || kind == number.PerNode
}

// dimensions returns units as dimensions. per is the scope of units that do not state theirs.
func dimensions(units []number.Unit, per string) []dimension {
	var list []dimension
	for _, u := range units {
		if stored, ok := storedUnit(u); ok {
			list = append(list, dimension{stored, cmp.Or(u.Per, per)})
		}
	}
	return list
}
