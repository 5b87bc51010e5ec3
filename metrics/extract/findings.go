package extract

import (
	"cmp"
	"iter"
	"slices"

	"github.com/scalebench/scalebench/metrics"
)

// A Finding is an event and the values in the log from which it was made.
type Finding struct {
	Event  metrics.Event
	Line   int     // line of the last value; 0 in formats without lines
	Scale  float64 // factor from the log's unit to the event's
	Values []Value // the values in the log
}

// findings holds the findings of a log. In a log with a million entries, most findings differ
// only in a few numbers. So it stores only these numbers, in 48 instead of some 500 bytes a
// finding, and builds a Finding on request.
type findings struct {
	file  string
	found [][]packed // every block except the last is full
	order []int32    // indices of the findings in time order; nil if they are in that order already
	kinds []kind
	whole []Finding // findings that cannot be packed
	last  float64   // the latest time so far
	sort  bool      // a finding is earlier than the one before it, so they need sorting
}

// packed holds the numbers of a finding that was made from one value.
type packed struct {
	time   float64
	value  float64 // the figure's value, or the accuracy
	number float64 // the number in the log
	first  float64 // first numeric coordinate of a figure, or the epoch of an evaluation
	second float64 // second numeric coordinate, or the step of an evaluation
	line   int32   // line in the log; for a finding that is not packed, its index in whole
	kind   int32   // index in kinds; isWhole if the finding is not packed
}

const (
	isWhole  = -1
	block    = 4096
	maxKinds = 32 // limits the search for each finding's kind
	few      = 16 // the first findings are stored whole, because the few of a table's row are not worth packing
)

// kind holds what many findings have in common.
type kind struct {
	scale                     float64
	evaluation                bool
	samples                   int64 // samples of an evaluation; the fields below describe figures
	name, unit, better        string
	reduce, note, plusMinusIs string
	of                        int
	keys                      [2]string // names of the numeric coordinates; "" for none
	key, text                 string    // name and value of the text coordinate
}

func (l *findings) len() int {
	n := len(l.found)
	if n == 0 {
		return 0
	}
	return (n-1)*block + len(l.found[n-1])
}

func (l *findings) add(f Finding) {
	var p packed
	var k kind
	ok := l.len() >= few
	if ok {
		p, k, ok = pack(f)
	}
	if ok {
		p.kind = int32(slices.Index(l.kinds, k))
		if ok = p.kind >= 0 || len(l.kinds) < maxKinds; ok && p.kind < 0 {
			p.kind = int32(len(l.kinds))
			l.kinds = append(l.kinds, k)
		}
	}
	if !ok {
		p = packed{time: f.Event.Time, kind: isWhole, line: int32(len(l.whole))}
		l.whole = append(l.whole, f)
	}
	l.sort = l.sort || p.time < l.last
	l.last = max(l.last, p.time)
	n := len(l.found)
	switch {
	case n == 0:
		l.found = append(l.found, nil)
		n++
	case len(l.found[n-1]) == block:
		l.found = append(l.found, make([]packed, 0, block))
		n++
	}
	l.found[n-1] = append(l.found[n-1], p)
}

// pack splits a finding into its kind and its numbers; ok is false if it has more than these can
// hold.
func pack(f Finding) (p packed, k kind, ok bool) {
	if len(f.Values) != 1 || f.Values[0].Line != f.Line || f.Line != int(int32(f.Line)) {
		return p, k, false
	}
	p = packed{time: f.Event.Time, number: f.Values[0].Number, line: int32(f.Line)}
	k.scale = f.Scale
	switch e := f.Event.Evaluation; {
	case e != nil:
		p.value, p.first, p.second = e.Accuracy, float64(e.Epoch), float64(e.Step)
		k.evaluation, k.samples = true, e.Samples
		return p, k, e.Loss == nil && e.Seconds == 0 && e.Trained == 0 && int(p.first) == e.Epoch && int(p.second) == e.Step
	case f.Event.Figure == nil:
		return p, k, false
	}
	g := f.Event.Figure
	p.value = g.Value
	k.name, k.unit, k.better, k.reduce, k.note, k.plusMinusIs, k.of = g.Name, g.Unit, g.Better, g.Reduce, g.Note, g.PlusMinusIs, g.Of
	for key, v := range g.At {
		switch v := v.(type) {
		case float64:
			switch {
			case key == "" || k.keys[1] != "":
				return p, k, false
			case k.keys[0] == "":
				k.keys[0], p.first = key, v
			case key < k.keys[0]: // keep the keys sorted
				k.keys[0], k.keys[1], p.first, p.second = key, k.keys[0], v, p.first
			default:
				k.keys[1], p.second = key, v
			}
		case string:
			if key == "" || k.key != "" {
				return p, k, false
			}
			k.key, k.text = key, v
		default:
			return p, k, false
		}
	}
	return p, k, g.PlusMinus == nil && (g.At == nil || len(g.At) > 0)
}

// unpack rebuilds a finding that pack has split, or returns one that was stored whole.
func (l *findings) unpack(p *packed) Finding {
	if p.kind == isWhole {
		return l.whole[p.line]
	}
	k := &l.kinds[p.kind]
	f := Finding{Line: int(p.line), Scale: k.scale, Values: []Value{{p.number, int(p.line)}}}
	f.Event.Time = p.time
	if k.evaluation {
		f.Event.Evaluation = &metrics.Evaluation{Epoch: int(p.first), Step: int(p.second), Accuracy: p.value, Samples: k.samples}
		return f
	}
	g := &metrics.Figure{Name: k.name, Value: p.value, Unit: k.unit, Better: k.better, Reduce: k.reduce, Note: k.note, PlusMinusIs: k.plusMinusIs,
		Of: k.of, File: l.file, Line: int(p.line)}
	if k.keys[0] != "" || k.key != "" {
		g.At = map[string]any{}
	}
	for i, v := range []float64{p.first, p.second} {
		if k.keys[i] != "" {
			g.At[k.keys[i]] = v
		}
	}
	if k.key != "" {
		g.At[k.key] = k.text
	}
	f.Event.Figure = g
	return f
}

func (l *findings) at(i int) *packed { return &l.found[i/block][i%block] }

// arrange computes the time order of the findings. Findings of equal time keep the order in which
// they were found.
func (l *findings) arrange() {
	if !l.sort {
		return
	}
	l.order = make([]int32, l.len())
	for i := range l.order {
		l.order[i] = int32(i)
	}
	slices.SortStableFunc(l.order, func(a, b int32) int { return cmp.Compare(l.at(int(a)).time, l.at(int(b)).time) })
}

func (l *findings) all() iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		for i := range l.len() {
			if l.order != nil {
				i = int(l.order[i])
			}
			if !yield(l.unpack(l.at(i))) {
				return
			}
		}
	}
}
