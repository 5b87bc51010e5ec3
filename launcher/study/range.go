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

// A workerRange is a range of worker counts such as "1..64", of which only some are measured: the
// lowest count, its doublings, and the highest count. A study that is measured until its question
// is decided also measures counts between two doublings, if the best count is next to them.
type workerRange struct{ low, high int }

// rangePattern matches a range of worker counts.
var rangePattern = regexp.MustCompile(`^\s*(\d{1,7})\s*\.\.\s*(\d{1,7})\s*$`)

// Unfit is a worker count of a range that the study cannot measure on this site, and the reason.
type Unfit struct {
	Workers int    `json:"workers"`
	Why     string `json:"why"`
}

func (r workerRange) String() string { return fmt.Sprintf("%d..%d", r.low, r.high) }

// doublings returns the worker counts of a range that are measured first, ascending: the lowest,
// its doublings, and the highest.
func (r workerRange) doublings() (list []int) {
	for n := r.low; n < r.high; n *= 2 {
		list = append(list, n)
	}
	return append(list, r.high)
}

// between returns the worker counts at the quarters of each interval between two doublings,
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

// isBetween reports whether a worker count is one of r.between(). r may be nil.
func (r *workerRange) isBetween(workers int) bool {
	return r != nil && slices.Contains(r.between(), workers)
}

// workerRange decodes a range of worker counts: a string, or a list of one string. ok is false if
// the value has another form. r is nil if the range is invalid, which workerRange then reports.
func (d *decoder) workerRange(path string, p toml.Primitive) (r *workerRange, ok bool) {
	var v any
	if d.md.PrimitiveDecode(p, &v) != nil { // the method values reports that error
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

// values returns the worker counts of the range as values of an axis: the doublings and, if
// between is set, the counts between them.
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

// Range returns the study's range of workers as text, such as "1..64", and the counts in it that
// are only measured if the best count is next to them. text is "" if the study lists its worker
// counts.
func (s *Study) Range() (text string, between []int) {
	if s.counts == nil {
		return "", nil
	}
	if s.UntilDecided {
		between = s.counts.between()
	}
	return s.counts.String(), between
}

// fitting returns the study with only those counts of its range that have no problem on the site.
// unfit are the other counts. If all counts have a problem, it returns the study unchanged, so
// that expand reports the problems.
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
