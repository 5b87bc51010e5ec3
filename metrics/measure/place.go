package measure

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Coordinates are names of what values of one run differ in, sorted, with a space
// between: "bytes in_place op". As one text they keep measures comparable.
type Coordinates string

// Keys are the single names.
func (c Coordinates) Keys() []string { return strings.Fields(string(c)) }

// Has reports whether key is one of them.
func (c Coordinates) Has(key string) bool { return slices.Contains(c.Keys(), key) }

// Place is where in a run something was measured, and what was. A run has as many
// values of a measure with coordinates as places at which it measured it: the bus
// bandwidth of each operation and size, the latency under each load.
type Place struct {
	// At is the value of each coordinate, a float64 or a string. One that a log does
	// not state is not in it.
	At     map[string]any
	Values map[string]float64 // by the measure's name, in its base unit
}

// Key is At as one text, equal for equal places: a JSON object, its keys sorted.
func Key(at map[string]any) string {
	if len(at) == 0 {
		return "{}"
	}
	text, err := json.Marshal(at)
	if err != nil {
		panic(err) // neither a float64 nor a string, or no finite one: events hold no such thing
	}
	return string(text)
}

// Places collects values by where they were measured. A benchmark of a million
// sizes has two million places: here one takes some 100 bytes, and a Place with its
// two maps, which is made when it is asked for, ten times as many.
type Places struct {
	at     map[string]int32 // index by pack
	packed []string         // the keys of at, in the order in which they came
	words  map[string]uint64
	texts  []string // by their number in words
	values []column
}

// column is a measure's values by place, NaN for none; what is beyond its end is none.
type column struct {
	name   string
	values []float64
}

// Add adds a value, and says whether it is the first of its measure there: another
// one is not taken. A NaN is no value.
func (p *Places) Add(at map[string]any, name string, value float64) (added bool) {
	if p.at == nil {
		p.at, p.words = map[string]int32{}, map[string]uint64{}
	}
	key := p.pack(at)
	i, known := p.at[string(key)]
	if !known {
		i = int32(len(p.packed))
		text := string(key)
		p.at[text], p.packed = i, append(p.packed, text)
	}
	c := slices.IndexFunc(p.values, func(c column) bool { return c.name == name })
	if c < 0 {
		c = len(p.values)
		p.values = append(p.values, column{name: name})
	}
	of := &p.values[c]
	for len(of.values) <= int(i) {
		of.values = append(of.values, math.NaN())
	}
	if !math.IsNaN(of.values[i]) {
		return false
	}
	of.values[i] = value
	return true
}

// pack writes coordinates as one text, equal for equal ones: by rising name, the
// number of its name, and a number's bytes, few for a round one, or the number of a
// text.
func (p *Places) pack(at map[string]any) []byte {
	var few [8]string
	keys := few[:0]
	for key := range at {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b := make([]byte, 0, 64)
	for _, key := range keys {
		switch v := at[key].(type) {
		case float64:
			b = binary.AppendUvarint(b, p.word(key)<<1)
			b = binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(v)))
		case string:
			b = binary.AppendUvarint(b, p.word(key)<<1|1)
			b = binary.AppendUvarint(b, p.word(v))
		default:
			panic(fmt.Sprintf("coordinate %s is a %T", key, v)) // events hold no such thing
		}
	}
	return b
}

func (p *Places) word(text string) uint64 {
	n, known := p.words[text]
	if !known {
		n = uint64(len(p.texts))
		p.words[text], p.texts = n, append(p.texts, text)
	}
	return n
}

// unpack undoes pack.
func (p *Places) unpack(text string) map[string]any {
	at := map[string]any{}
	for b := []byte(text); len(b) > 0; {
		key, n := binary.Uvarint(b)
		b = b[n:]
		if name := p.texts[key>>1]; key&1 == 0 {
			number, n := binary.Uvarint(b)
			at[name] = math.Float64frombits(bits.ReverseBytes64(number))
			b = b[n:]
		} else {
			word, n := binary.Uvarint(b)
			at[name] = p.texts[word]
			b = b[n:]
		}
	}
	return at
}

// All are the places in the order in which they came, each made when its turn comes.
func (p *Places) All() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		if p == nil {
			return
		}
		for i, text := range p.packed {
			place := Place{At: p.unpack(text), Values: map[string]float64{}}
			for _, c := range p.values {
				if i < len(c.values) && !math.IsNaN(c.values[i]) {
					place.Values[c.name] = c.values[i]
				}
			}
			if !yield(place) {
				return
			}
		}
	}
}

// List are All at once; nil for none.
func (p *Places) List() []Place { return slices.Collect(p.All()) }

// Holds reports whether values of the measure can be at a place with these
// coordinates: they are among its own, and its axis is one of them.
func (m Measure) Holds(at map[string]any) bool {
	if _, stated := at[m.Axis]; m.Axis != "" && !stated {
		return false
	}
	for key := range at {
		if !m.At.Has(key) {
			return false
		}
	}
	return len(at) > 0
}

// Placed lists the measures with coordinates, of all kinds of workload: what a log
// states of one is a value of it, whatever the run is of.
func Placed() []Measure {
	var list []Measure
	byName := func(a, b Kind) int { return strings.Compare(a.Name, b.Name) }
	for _, kind := range slices.SortedFunc(slices.Values(kinds), byName) {
		for m := range Each(kind.Name) {
			if m.At != "" {
				list = append(list, m)
			}
		}
	}
	return list
}

// IsCoordinate reports whether measures of any kind of workload have a coordinate of
// that name.
func IsCoordinate(key string) bool {
	return slices.ContainsFunc(Placed(), func(m Measure) bool { return m.At.Has(key) })
}

// Beside lists the measures that are at the same places as m, m included, in the
// order of their declaration; nil for one without coordinates.
func (m Measure) Beside() []Measure {
	return slices.DeleteFunc(Placed(), func(other Measure) bool { return other.At != m.At })
}

// Frames lists, for each combination of coordinates that measures have, the first
// of them.
func Frames() []Measure {
	var list []Measure
	for _, m := range Placed() {
		if !slices.ContainsFunc(list, func(f Measure) bool { return f.At == m.At }) {
			list = append(list, m)
		}
	}
	return list
}

// Within are the places of a list that hold values of measures beside m.
func (m Measure) Within(places []Place) []Place {
	beside := m.Beside()
	return slices.DeleteFunc(slices.Clone(places), func(p Place) bool {
		return !slices.ContainsFunc(beside, func(other Measure) bool { _, has := p.Values[other.Name]; return has })
	})
}
