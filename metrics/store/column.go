package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

const (
	blockSteps = 1024
	absent     = -1               // a missing entry; recorded entries are never negative
	maxValue   = metrics.MaxTicks // maximum of ticks or samples per step; a larger number means that the line is damaged
)

// block holds up to 1024 steps of one rank, as the table block stores them. Entry i is the step
// number·1024 + i.
type block struct {
	number  int
	tick    float64 // length of a tick in seconds
	columns [numColumns]column
	dirty   bool
}

// The columns of a block.
const (
	duration = iota
	samples
	dataWait
	compute
	communication
	numColumns
)

// timeColumns are the columns whose entries are times in ticks.
var timeColumns = [...]int{duration, dataWait, compute, communication}

// column has blockSteps entries; it is nil if nothing was measured.
type column []int64

// stepColumns returns the columns of an event, in the order of a block's columns.
func stepColumns(s *metrics.Steps) [numColumns][]int64 {
	return [numColumns][]int64{s.Duration, s.Samples, s.DataWait, s.Compute, s.Communication}
}

// has reports whether the step of entry i was recorded.
func (b *block) has(i int) bool {
	return b.columns[duration] != nil && b.columns[duration][i] != absent
}

// fits returns an error if entries from to to of s cannot be added to the block. All times in a
// block have the same unit, the finest of its lines. Programs rarely change the unit between
// lines; if they do, coarser values are multiplied, which can exceed the maximum.
func (b *block) fits(tick float64, s *metrics.Steps, from, to int) error {
	if b.tick == 0 || tick == b.tick {
		return nil
	}
	tooFine := func(v int64, by float64) bool { return float64(v)*by > maxValue }
	columns := stepColumns(s)
	for _, c := range timeColumns {
		if columns[c] != nil && tick > b.tick && tooFine(slices.Max(columns[c][from:to]), tick/b.tick) ||
			b.columns[c] != nil && tick < b.tick && tooFine(slices.Max(b.columns[c]), b.tick/tick) {
			return fmt.Errorf("steps.tick = %g seconds, %g in the steps before: the durations cannot be stored in one unit", tick, b.tick)
		}
	}
	return nil
}

// useTick changes the block's unit to tick if tick is finer.
func (b *block) useTick(tick float64) {
	if b.tick == 0 {
		b.tick = tick
	}
	if tick >= b.tick {
		return
	}
	for _, c := range timeColumns {
		for i, v := range b.columns[c] {
			if v != absent {
				b.columns[c][i] = rescale(v, b.tick, tick)
			}
		}
	}
	b.tick, b.dirty = tick, true
}

// rescale converts v from ticks of one unit to another.
func rescale(v int64, from, to float64) int64 { return int64(math.Round(float64(v) * (from / to))) }

// set stores entry j of an event's columns as entry i of the block.
func (b *block) set(i int, tick float64, from *[numColumns][]int64, j int) {
	b.dirty = true
	for c, values := range from {
		if values == nil {
			continue
		}
		if b.columns[c] == nil {
			b.columns[c] = newColumn()
		}
		v := values[j]
		if tick != b.tick && c != samples {
			v = rescale(v, tick, b.tick)
		}
		b.columns[c][i] = v
	}
}

func newColumn() column {
	c := make(column, blockSteps)
	for i := range c {
		c[i] = absent
	}
	return c
}

// blockColumns are the columns of the table block that scan reads and store writes.
const blockColumns = `tick, duration_min, duration, samples_min, samples, data_wait_min, data_wait,
	compute_min, compute, communication_min, communication`

// scan reads a row of a query for blockColumns into the block. It reuses the block's columns.
// before are destinations for the columns in front of them.
func (b *block) scan(row interface{ Scan(...any) error }, before ...any) error {
	var minimum [numColumns]*int64
	var array [numColumns]*string
	into := append(before, &b.tick)
	for c := range numColumns {
		into = append(into, &minimum[c], &array[c])
	}
	if err := row.Scan(into...); err != nil {
		return err
	}
	for c := range numColumns {
		if minimum[c] == nil {
			b.columns[c] = nil
			continue
		}
		if b.columns[c] == nil {
			b.columns[c] = newColumn()
		}
		if err := b.columns[c].decode(b.columns[duration], minimum[c], array[c]); err != nil {
			return err
		}
	}
	return nil
}

// store inserts or replaces the block's row.
func (b *block) store(tx *sql.Tx, file int64) error {
	args := []any{file, b.number, b.tick}
	for _, c := range b.columns {
		if c == nil {
			args = append(args, nil, nil)
			continue
		}
		minimum, array := c.encode(b.columns[duration])
		args = append(args, minimum, array)
	}
	_, err := tx.Exec(`INSERT OR REPLACE INTO block (file, block, `+blockColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args...)
	b.dirty = false
	return err
}

// encode returns the column's minimum and its JSON array in the form that the schema describes.
// exists is the block's duration column, which says which steps exist; its own array is always
// stored.
func (c column) encode(exists column) (minimum *int64, array *string) {
	low, last := int64(absent), -1
	for i, v := range c {
		if v == absent {
			continue
		}
		last = i
		if low == absent || v < low {
			low = v
		}
	}
	if low == absent {
		return nil, nil
	}
	if &c[0] != &exists[0] && c.constant(exists) {
		return &low, nil
	}
	text := make([]byte, 1, 5*(last+1)+1)
	text[0] = '['
	for i, v := range c[:last+1] {
		if i > 0 {
			text = append(text, ',')
		}
		if v == absent {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendInt(text, v-low, 10)
		}
	}
	s := string(append(text, ']'))
	return &low, &s
}

// constant reports whether all recorded steps have the same value.
func (c column) constant(exists column) bool {
	first := int64(absent)
	for i, e := range exists {
		if e == absent {
			continue
		}
		if c[i] == absent || first != absent && c[i] != first {
			return false
		}
		first = c[i]
	}
	return true
}

// decode reverses encode. c must have blockSteps entries. A nil minimum means that all entries
// are missing.
func (c column) decode(exists column, minimum *int64, array *string) error {
	for i := range c {
		c[i] = absent
	}
	if minimum == nil {
		return nil
	}
	if array == nil {
		for i, e := range exists {
			if e != absent {
				c[i] = *minimum
			}
		}
		return nil
	}
	// encoding/json is not used: it takes 60 ns per number, and a run may have twenty million.
	text := *array
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return errColumn
	}
	text = text[1 : len(text)-1]
	for i := 0; text != ""; i++ {
		entry, rest, more := strings.Cut(text, ",")
		if i >= len(c) || more && rest == "" {
			return errColumn
		}
		text = rest
		if entry == "null" {
			continue
		}
		v, err := strconv.ParseInt(entry, 10, 64)
		if err != nil || v < 0 || v > maxValue {
			return errColumn
		}
		c[i] = *minimum + v
	}
	return nil
}

var errColumn = errors.New("a stored column of steps is damaged; move the database away and run `scalebench collect` to rebuild it from the run folders")
