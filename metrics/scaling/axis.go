package scaling

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/maruel/natural"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// Workers is the default axis of curves.
const Workers = "workers"

// placement lists the keys that describe where workers run. Each is determined by the other two,
// so a curve along one of them has a constant second one.
var placement = []string{Workers, "nodes", "workers_per_node"}

// A Value is a position on an axis: a number, or a word if the axis is not numeric. Values
// are comparable.
type Value struct {
	Number float64
	Word   string // "" for a number
}

// At returns the position of a count, such as a number of workers.
func At(n int) Value { return Value{Number: float64(n)} }

// ValueOf returns the position of a parameter's value. A string is a word even if it looks like a
// number. An unset parameter is a word too.
func ValueOf(parameter any) Value {
	if x, ok := numeric(parameter); ok {
		return Value{Number: x}
	}
	return Value{Word: cmp.Or(text(parameter), `""`)}
}

// Numeric reports whether the value is a number.
func (v Value) Numeric() bool { return v.Word == "" }

// String formats the value like a parameter.
func (v Value) String() string {
	if v.Numeric() {
		return text(v.Number)
	}
	return v.Word
}

// Any returns the number or the word.
func (v Value) Any() any {
	if v.Numeric() {
		return v.Number
	}
	return v.Word
}

// Compare orders numbers by size, then amounts of memory and times by size (512M before 8G,
// 500ms before 1m30s), and then words in natural order: cpu8 before cpu16.
func (v Value) Compare(w Value) int {
	x, y := v.amount(), w.amount()
	return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.size, y.size), natural.Compare(v.Word, w.Word))
}

// amount is a sort key for values: the kind of value, then the size.
type amount struct {
	kind int
	size float64
}

const (
	aNumber = iota
	ofMemory
	ofTime
	aWord
)

var memory = regexp.MustCompile(`^(\d{1,15})([KMGTP])(?:i?B)?$`) // memory sizes as study files write them

func (v Value) amount() amount {
	if v.Numeric() {
		return amount{aNumber, v.Number}
	}
	if m := memory.FindStringSubmatch(v.Word); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64) // the pattern matches only digits
		return amount{ofMemory, math.Ldexp(n, 10*(1+strings.Index("KMGTP", m[2])))}
	}
	if d, err := time.ParseDuration(v.Word); err == nil && d > 0 {
		return amount{ofTime, float64(d)}
	}
	return amount{kind: aWord}
}

// axis is the parameter in which the points of a curve differ.
type axis string

// of returns the position of a run on the axis.
func (a axis) of(o *Observation) Value {
	switch {
	case a == Workers:
		return At(o.Workers)
	case a == "nodes" && o.Nodes > 0:
		return At(o.Nodes)
	case a == "framework":
		return Value{Word: o.Framework}
	}
	return ValueOf(o.Parameters[string(a)])
}

// multiplies reports whether doubling the parameter doubles the resources, so that the ideal time
// is halved.
func (a axis) multiplies() bool { return a == Workers || a == "nodes" || a == "replicas" }

// follows returns the parameters that change along the axis, which therefore do not separate
// series.
func (a axis) follows() map[string]bool {
	set := map[string]bool{string(a): true}
	for _, key := range measure.QuestionKeys() {
		set[key] = true
	} // settings that can be changed after a run do not separate series
	for _, k := range slices.Concat(follows, measure.ReadingKeys()) {
		set[k] = true
	}
	switch {
	case a == Workers:
	case slices.Contains(placement, string(a)):
		delete(set, "nodes")
		delete(set, "workers_per_node")
		set[string(a)] = true
	default:
		delete(set, Workers)
	}
	return set
}

// place formats a position: "2 workers", "workload.batch=64".
func (a axis) place(v Value) string {
	if a == Workers && v.Numeric() {
		return number.Count(int(v.Number), "worker")
	}
	return fmt.Sprintf("%s=%s", string(a), v)
}

// places is like place for several positions: "2, 4 or 8 workers".
func (a axis) places(list []Value) string {
	if len(list) == 1 {
		return a.place(list[0])
	}
	if a == Workers {
		return listed("or", list) + " workers"
	}
	return string(a) + "=" + listed("or", list)
}

func listed(word string, list []Value) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.String()
	}
	return number.List(words, word)
}

// Places formats positions on an axis: "1, 2 and 4 workers", "workload.batch 64".
func Places(axis string, places ...Value) string { return placesOf("worker", axis, places) }

// Places is like the function Places for positions on the curve's axis: "1, 2 and 4 replicas" for
// a service.
func (c Curve) Places(places ...Value) string { return placesOf(c.Worker(), c.Axis, places) }

// fewPlaces is the largest number of positions that a line of text lists in full.
const fewPlaces = 4

// placesInBrief is like Places, but if there are more than fewPlaces positions, it names only the
// first two.
func (c Curve) placesInBrief(places ...Value) string {
	n := len(places)
	switch {
	case n <= fewPlaces:
		return c.Places(places...)
	case c.Axis != Workers:
		return fmt.Sprintf("%s %s, %s and %d more", c.Axis, places[0], places[1], n-2)
	}
	return fmt.Sprintf("%s, %s and %d more %s counts", places[0], places[1], n-2, c.Worker())
}

func placesOf(worker, axis string, places []Value) string {
	text := listed("and", places)
	switch {
	case axis != Workers:
		return axis + " " + text
	case text == "1":
		return "1 " + worker
	}
	return text + " " + worker + "s"
}
