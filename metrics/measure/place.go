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
	"sync/atomic"
)

// Coordinates are the sorted names of what distinguishes the values of one run,
// separated by spaces: "bytes in_place op". A single string keeps Measure comparable.
type Coordinates string

// Keys returns the names.
func (c Coordinates) Keys() []string { return strings.Fields(string(c)) }

// Has reports whether key is one of the coordinates.
func (c Coordinates) Has(key string) bool { return slices.Contains(c.Keys(), key) }

// A Place is a set of coordinates in a run and the values measured there: the bus bandwidth
// of each operation and size, or the latency under each load.
type Place struct {
	// At holds the value of each coordinate, a float64 or a string. Coordinates that a
	// log does not state are absent.
	At     map[string]any
	Values map[string]float64 // by measure name, in base units
}

// Key returns At as text, equal for equal places: a JSON object with sorted keys.
func Key(at map[string]any) string {
	if len(at) == 0 {
		return "{}"
	}
	text, err := json.Marshal(at)
	if err != nil {
		panic(err) // unreachable: events hold only strings and finite numbers
	}
	return string(text)
}

// Places collects values by place. A benchmark of a million sizes has two million
// places, so each is stored in about 100 bytes; a Place with its two maps takes ten
// times as much and is made only on request.
type Places struct {
	at     map[string]int32 // packed coordinates to index
	packed []string         // keys of at, in order of arrival
	words  map[string]uint64
	texts  []string // indexed by their number in words
	values []column
}

// A column holds a measure's values by place. Missing values are NaN or beyond its
// end.
type column struct {
	name   string
	values []float64
}

// Add adds a value and reports whether it is the first of its measure at that place.
// Later values and NaN are ignored.
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

// pack encodes coordinates, equal for equal coordinates. Sorted by name, each is the
// number of its name, followed by a number's bytes (few for a round number) or the
// number of a text.
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
			panic(fmt.Sprintf("coordinate %s is a %T", key, v)) // unreachable: events hold only strings and numbers
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

// unpack is the inverse of pack.
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

// All iterates over the places in order of arrival and makes each on demand.
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

// List returns all places; nil if empty.
func (p *Places) List() []Place { return slices.Collect(p.All()) }

// AcceptsPlace reports whether the measure can have values at these coordinates: all are
// among its coordinates, and its axis is one of them.
func (m Measure) AcceptsPlace(at map[string]any) bool {
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

// placed caches what Placed returns, because FilterPlaces is called for each run; Declare empties it.
var placed atomic.Pointer[[]Measure]

// Placed returns the measures with coordinates, of all kinds of workload. A log may
// state any of them, for any kind of run. Do not modify the list.
func Placed() []Measure {
	if list := placed.Load(); list != nil {
		return *list
	}
	var list []Measure
	byName := func(a, b Kind) int { return strings.Compare(a.Name, b.Name) }
	for _, kind := range slices.SortedFunc(slices.Values(kinds), byName) {
		for m := range Each(kind.Name) {
			if m.At != "" {
				list = append(list, m)
			}
		}
	}
	placed.Store(&list)
	return list
}

// IsCoordinate reports whether a measure of any kind has a coordinate of that name.
func IsCoordinate(key string) bool {
	return slices.ContainsFunc(Placed(), func(m Measure) bool { return m.At.Has(key) })
}

// Siblings returns the measures that share m's coordinates, including m, in order of
// declaration; nil if m has no coordinates.
func (m Measure) Siblings() []Measure {
	return slices.DeleteFunc(slices.Clone(Placed()), func(other Measure) bool { return other.At != m.At })
}

// Frames returns the first measure of each combination of coordinates.
func Frames() []Measure {
	var list []Measure
	for _, m := range Placed() {
		if !slices.ContainsFunc(list, func(f Measure) bool { return f.At == m.At }) {
			list = append(list, m)
		}
	}
	return list
}

// FilterPlaces returns the places that hold values of measures with m's coordinates.
func (m Measure) FilterPlaces(places []Place) (list []Place) {
	for _, p := range places {
		if slices.ContainsFunc(Placed(), func(other Measure) bool { _, has := p.Values[other.Name]; return has && other.At == m.At }) {
			list = append(list, p)
		}
	}
	return list
}
