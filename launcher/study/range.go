package study

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
)

// A workerRange is a range of worker counts such as "1..64", from which counts are chosen: the
// doublings of the lowest count and the highest one; in a study that is measured until its
// question is decided, also counts between two of those, once the answer is next to them.
type workerRange struct{ low, high int }

// rangePattern matches a range of worker counts.
var rangePattern = regexp.MustCompile(`^\s*(\d{1,7})\s*\.\.\s*(\d{1,7})\s*$`)

// Unfit is a count of a range of workers that the study leaves out.
type Unfit struct {
	Workers int    `json:"workers"`
	Why     string `json:"why"`
}

func (r workerRange) String() string { return fmt.Sprintf("%d..%d", r.low, r.high) }

// doublings returns the counts that are measured first, ascending.
func (r workerRange) doublings() (list []int) {
	for n := r.low; n < r.high; n *= 2 {
		list = append(list, n)
	}
	return append(list, r.high)
}

// between returns the counts at the quarters of each interval between two doublings,
// ascending.
func (r workerRange) between() (list []int) {
	first := r.doublings()
	for i := range len(first) - 1 {
		from, width := first[i], float64(first[i+1]-first[i])
		for quarter := 1.0; quarter < 4; quarter++ {
			list = append(list, from+int(math.Floor(width*quarter/4)))
		}
	}
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(n int) bool { return slices.Contains(first, n) })
}

// isBetween reports whether a count lies between doublings; r may be nil.
func (r *workerRange) isBetween(workers int) bool {
	return r != nil && slices.Contains(r.between(), workers)
}

// workerRange reads a range of workers, as a string or as a list of one; ok is false if the value
// is neither, and the range is nil if it cannot be used.
func (d *decoder) workerRange(path string, p toml.Primitive) (r *workerRange, ok bool) {
	var v any
	if d.md.PrimitiveDecode(p, &v) != nil { // values reports it
		return nil, false
	}
	if list, is := v.([]any); is && len(list) == 1 {
		v = list[0]
	}
	text, is := v.(string)
	if !is {
		return nil, false
	}
	parts := rangePattern.FindStringSubmatch(text)
	if parts == nil {
		d.rule(path, fmt.Sprintf("want a list of counts like [1, 2, 4, 8], or a range like \"1..64\", got %q", text))
		return nil, true
	}
	low, _ := strconv.Atoi(parts[1])
	high, _ := strconv.Atoi(parts[2])
	if low < 1 || high <= low || high > maxWorkers {
		d.rule(path, fmt.Sprintf("want a range from 1 or more to a larger count of at most %d, got %q", maxWorkers, text))
		return nil, true
	}
	return &workerRange{low, high}, true
}

// values returns the counts as values of an axis; between also those between doublings.
func (r workerRange) values(between bool) (list []reflect.Value) {
	counts := r.doublings()
	if between {
		counts = append(counts, r.between()...)
	}
	slices.Sort(counts)
	for _, n := range counts {
		list = append(list, reflect.ValueOf(n))
	}
	return list
}

// Range returns the study's range of workers, as it is written, and the counts of it that
// are measured only if the answer is next to them; "" if the study lists its counts.
func (s *Study) Range() (text string, between []int) {
	if s.counts == nil {
		return "", nil
	}
	if s.UntilDecided {
		between = s.counts.between()
	}
	return s.counts.String(), between
}

// fitting returns the study with those counts of its range that have no problem on the
// site, and the others. If all have one, it returns the study as it is, whose problems
// expand then reports.
func (s *Study) fitting(site *Site, known flaws) (fits *Study, unfit []Unfit) {
	if s.counts == nil {
		return s, nil
	}
	at := slices.IndexFunc(s.axes, func(a axis) bool { return a.path == "workers" })
	var values []reflect.Value
	for _, v := range s.axes[at].values {
		one := *s
		one.axes, one.exclusions = slices.Clone(s.axes), nil
		one.axes[at].values = []reflect.Value{v}
		if _, problems := one.expand(site, known); len(problems) > 0 {
			unfit = append(unfit, Unfit{int(v.Int()), problems[0].Message})
			continue
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return s, nil
	}
	part := *s
	part.axes = slices.Clone(s.axes)
	part.axes[at].values = values
	return &part, unfit
}
