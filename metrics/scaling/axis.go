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

// Workers is the axis along which curves run unless Options say another.
const Workers = "workers"

// placement are the keys that say where workers are. Each follows from the other
// two, so that a curve along one of them is of runs that agree in one more.
var placement = []string{Workers, "nodes", "workers_per_node"}

// A Value is a place on an axis: a number, or a word if the axis has no numbers. Values are
// comparable.
type Value struct {
	Number float64
	Word   string // "" for a number
}

// At is the place of a number of workers, or of any other count.
func At(n int) Value { return Value{Number: float64(n)} }

// ValueOf is the place of a parameter's value. A text is a word, even one that
// is written like a number; so is a parameter that is not set.
func ValueOf(parameter any) Value {
	if x, ok := numeric(parameter); ok {
		return Value{Number: x}
	}
	return Value{Word: cmp.Or(text(parameter), `""`)}
}

// Numeric reports whether the value is a number.
func (v Value) Numeric() bool { return v.Word == "" }

// String writes the value as a parameter is written.
func (v Value) String() string {
	if v.Numeric() {
		return text(v.Number)
	}
	return v.Word
}

// Any is the number or the word.
func (v Value) Any() any {
	if v.Numeric() {
		return v.Number
	}
	return v.Word
}

// Compare orders numbers by size, then amounts of memory and times by theirs, 512M before
// 8G and 500ms before 1m30s, and then words as people count: cpu8 before cpu16.
func (v Value) Compare(w Value) int {
	x, y := v.amount(), w.amount()
	return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.size, y.size), natural.Compare(v.Word, w.Word))
}

// amount orders values: by kind first, so that each kind stays together, then by size.
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

var memory = regexp.MustCompile(`^(\d{1,15})([KMGTP])(?:i?B)?$`) // as study files have it

func (v Value) amount() amount {
	if v.Numeric() {
		return amount{aNumber, v.Number}
	}
	if m := memory.FindStringSubmatch(v.Word); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64) // digits
		return amount{ofMemory, math.Ldexp(n, 10*(1+strings.Index("KMGTP", m[2])))}
	}
	if d, err := time.ParseDuration(v.Word); err == nil && d > 0 {
		return amount{ofTime, float64(d)}
	}
	return amount{kind: aWord}
}

// axis is the parameter in which a curve's points differ.
type axis string

// of returns the place of a run.
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

// multiplies reports whether twice as much of it is twice the resources, so that
// half the time is what could be hoped for.
func (a axis) multiplies() bool { return a == Workers || a == "nodes" || a == "replicas" }

// follows are the parameters that change along the axis and therefore do not
// separate series.
func (a axis) follows() map[string]bool {
	set := map[string]bool{string(a): true}
	for _, key := range measure.QuestionKeys() {
		set[key] = true
	} // questions are asked of runs that were made before, too
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

// place names a place for people: "2 workers", "workload.batch=64".
func (a axis) place(v Value) string {
	if a == Workers && v.Numeric() {
		return number.Count(int(v.Number), "worker")
	}
	return fmt.Sprintf("%s=%s", string(a), v)
}

// places is place for several: "2, 4 or 8 workers".
func (a axis) places(list []Value) string {
	if len(list) == 1 {
		return a.place(list[0])
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.String()
	}
	last := len(words) - 1
	joined := strings.Join(words[:last], ", ") + " or " + words[last]
	if a == Workers {
		return joined + " workers"
	}
	return string(a) + "=" + joined
}

// Places names places on an axis: "1, 2 and 4 workers", "workload.batch 64".
func Places(axis string, places ...Value) string { return placesOf("worker", axis, places) }

// Places names places on the curve's axis: "1, 2 and 4 replicas" of a service.
func (c Curve) Places(places ...Value) string { return placesOf(c.Worker(), c.Axis, places) }

// fewPlaces is the number of places that a line about many names lists in full.
const fewPlaces = 4

// placesInBrief is Places with the first two of many.
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
	text := ""
	last := len(places) - 1
	for i, v := range places {
		text += v.String()
		switch {
		case i < last-1:
			text += ", "
		case i < last:
			text += " and "
		}
	}
	switch {
	case axis != Workers:
		return axis + " " + text
	case text == "1":
		return "1 " + worker
	}
	return text + " " + worker + "s"
}
