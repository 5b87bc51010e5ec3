package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// span is a set of places within a run that differ only in their position on the axis of their
// measure, such as all message sizes of an operation. They are always on the same curve. So
// curves are built with one place per span instead of up to two million.
type span struct {
	least  spot
	at     map[string]any // coordinates of least
	along  bool           // the places have the axis as a coordinate
	places []spot
}

// spot is a place (a set of coordinates within a run) and its position on a curve's axis.
type spot struct {
	place int64
	at    scaling.Value
}

// spanKey identifies a span by its run, the coordinates of its places, and the measure.Key of its
// first place.
type spanKey struct {
	run    string
	within measure.Coordinates
	place  string
}

// places finds the spans of the runs, and adds the first place of each span to its run.
func (o *observer) places() error {
	all, err := newReader(o.ctx, o.tx)
	if err != nil {
		return err
	}
	apart := scaling.Bounded(o.list)
	type located struct {
		within measure.Coordinates
		rest   string // measure.Key of the coordinates without the axis
	}
	type seen struct { // one bit per place; 64 places each
		within measure.Coordinates
		places int64
	}
	o.spans = map[spanKey]*span{}
	var run int64
	var known map[seen]uint64 // of the current run
	var spans map[located]*span
	var order []*span
	var names map[*span]string // name of a measure at the place
	end := func() {
		if run == 0 {
			return
		}
		v := &o.list[o.at[run]]
		for where, s := range spans {
			o.spans[spanKey{v.Run, where.within, measure.Key(s.at)}] = s
		}
		for _, s := range order {
			v.Places = append(v.Places, measure.Place{At: s.at, Values: map[string]float64{names[s]: 0}})
		}
	}
	err = o.each(`SELECT v.run, v.measure, v.place, p.at FROM value v JOIN place p ON p.id = v.place JOIN run r ON r.id = v.run
		WHERE v.place <> 0 AND v.value IS NOT NULL AND `+good+` ORDER BY v.run, v.measure, v.place`,
		func(rows *sql.Rows) error {
			var id, number, place int64
			var text sql.RawBytes
			if err := rows.Scan(&id, &number, &place, &text); err != nil {
				return err
			}
			if id != run {
				end()
				run, known, spans, order, names = id, map[seen]uint64{}, map[located]*span{}, nil, map[*span]string{}
			}
			m, declared := all.measures[number]
			if !declared {
				return nil
			}
			nearby, bit := seen{m.At, place / 64}, uint64(1)<<(place%64)
			if known[nearby]&bit != 0 {
				return nil
			}
			known[nearby] |= bit
			var at map[string]any
			if err := json.Unmarshal(text, &at); err != nil {
				return fmt.Errorf("place %d: %w", place, err)
			}
			_, along := at[m.Axis]
			where := located{m.At, string(text)}
			if along && !apart {
				rest := maps.Clone(at)
				delete(rest, m.Axis)
				where.rest = measure.Key(rest)
			}
			one := spot{place, scaling.ValueOf(at[m.Axis])}
			s := spans[where]
			if s == nil {
				s = &span{least: one, at: at, along: along}
				spans[where], names[s], order = s, m.Name, append(order, s)
			} else if one.at.Compare(s.least.at) < 0 {
				s.least, s.at = one, at
			}
			s.places = append(s.places, one)
			return nil
		})
	if err == nil {
		end()
	}
	return err
}
