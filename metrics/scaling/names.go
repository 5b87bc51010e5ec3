package scaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/maruel/natural"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// This file names series.

// name sets the name of every series: its framework, and the parameters in which the series
// differ. It returns the paths of these parameters. A parameter appears in names as the last part
// of its path if that is unambiguous. A parameter that only some frameworks have is left out if
// it has one value per framework. Parameters that split a model over workers are always part of
// the name.
func name(list []*series) (differing []string) {
	paths := map[string]bool{}
	for _, s := range list {
		for k := range s.parameters {
			paths[k] = true
		}
	}
	varies := func(k string) bool {
		return slices.ContainsFunc(list, func(s *series) bool { return literal(s.parameters[k]) != literal(list[0].parameters[k]) })
	}
	for _, k := range slices.Sorted(maps.Keys(paths)) {
		if varies(k) && !byFramework(list, k) {
			differing = append(differing, k)
		}
	}
	named := differing
	wide := slices.Clone(differing) // the longest values first
	slices.SortStableFunc(wide, func(a, b string) int { return cmp.Compare(widest(list, b), widest(list, a)) })
	for _, key := range wide {
		if longest(list, named) <= longName {
			break
		}
		if fewer := slices.DeleteFunc(slices.Clone(named), func(k string) bool { return k == key }); distinguish(list, fewer) {
			named = fewer // the named parameters determine its value
		}
	}
	for k := range paths {
		if !varies(k) && splits(k, list[0].parameters[k]) {
			named = append(slices.Clip(named), k)
		}
	}
	slices.Sort(named)
	show := map[string]func(any) string{}
	for _, k := range named {
		show[k] = shortened(list, k)
	}
	labels := Short(named)
	for _, s := range list {
		s.name = s.framework
		for i, k := range named {
			if s.parameters[k] == nil && measure.IsCoordinate(k) {
				continue // the other parameters identify the measurement
			}
			s.name += " " + labels[i] + "=" + show[k](s.parameters[k])
		}
		s.name = strings.TrimSpace(s.name)
	}
	return differing
}

// splits reports whether a parameter splits each replica of a model over several workers. It is
// then part of the name, so that readers see that the series is not purely data-parallel.
func splits(path string, v any) bool {
	degree, ok := numeric(v)
	return ok && degree > 1 && slices.Contains([]string{"tp", "pp", "cp", "ep"}, last(path))
}

// widest returns the length of a parameter's longest value.
func widest(list []*series, key string) int {
	most := 0
	for _, s := range list {
		most = max(most, utf8.RuneCountInString(text(s.parameters[key])))
	}
	return most
}

// longest returns the length of the longest name that is built from these parameters.
func longest(list []*series, keys []string) int {
	most := 0
	for _, s := range list {
		n := utf8.RuneCountInString(s.framework)
		for _, k := range keys {
			n += 2 + utf8.RuneCountInString(last(k)) + min(longValue, utf8.RuneCountInString(text(s.parameters[k])))
		}
		most = max(most, n)
	}
	return most
}

// distinguish reports whether the framework and these parameters distinguish all series.
func distinguish(list []*series, keys []string) bool {
	seen := map[string]bool{}
	for _, s := range list {
		id := identity(s.framework, s.parameters, keys)
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// shortened returns a function that formats the values of a parameter. It leaves out folders that
// paths do not need to differ, cuts the middle out of long values, and adds a number if two values
// would then be equal.
func shortened(list []*series, key string) func(any) string {
	ends := endsOf(list, key)
	cut := func(v any) string {
		r := []rune(cmp.Or(ends[text(v)], text(v)))
		if len(r) <= longValue {
			return string(r)
		}
		return string(r[:longValue/2]) + "…" + string(r[len(r)-longValue/2+1:])
	}
	of := map[string][]string{} // by the shortened form
	for _, s := range list {
		v := s.parameters[key]
		if short := cut(v); !slices.Contains(of[short], literal(v)) {
			of[short] = append(of[short], literal(v))
		}
	}
	for _, values := range of {
		slices.SortFunc(values, natural.Compare)
	}
	return func(v any) string {
		short := cut(v)
		if values := of[short]; len(values) > 1 && short != text(v) {
			short += fmt.Sprintf("#%d", slices.Index(values, literal(v))+1)
		}
		return short
	}
}

// pathLike matches a path. Names such as gcc/13 and org/model are not paths.
var pathLike = regexp.MustCompile(`^(?:~|\.{1,2})?/\S+$`)

// endsOf returns the shortest ends of a parameter's values that are paths with which all values
// differ: for /a/x/model and /b/x/model, a/x/model; for /a/one and /b/two, "one".
func endsOf(list []*series, key string) map[string]string {
	values := map[string]bool{}
	for _, s := range list {
		values[text(s.parameters[key])] = true
	}
	ends := map[string]string{}
	for v := range values {
		if !pathLike.MatchString(v) {
			continue
		}
		parts := strings.Split(v, "/")
		for n := 1; n < len(parts); n++ {
			end := strings.Join(parts[len(parts)-n:], "/")
			same := 0
			for other := range values {
				if other == end || strings.HasSuffix(other, "/"+end) {
					same++
				}
			}
			if end != "" && same == 1 {
				ends[v] = end
				break
			}
		}
	}
	return ends
}

// Keys returns the sorted parameters, other than the framework, in which the curves differ.
func Keys(curves []Curve) []string {
	list := make([]*series, len(curves))
	for i, c := range curves {
		list[i] = &series{framework: c.Framework, parameters: c.Parameters}
	}
	if len(list) == 0 {
		return nil
	}
	return name(list)
}

// byFramework reports whether the parameter has only one value per framework and is unset for
// some.
func byFramework(list []*series, key string) bool {
	of := map[string]string{}
	unset := false
	for _, s := range list {
		v, set := s.parameters[key]
		unset = unset || !set
		if other, seen := of[s.framework]; seen && other != literal(v) {
			return false
		}
		of[s.framework] = literal(v)
	}
	return unset
}

// Rename names each curve by the parameters in which it differs from the others, except those in
// but, which the caller shows in another way.
func Rename(curves []Curve, but ...string) []Curve {
	if len(curves) == 0 {
		return nil
	}
	list := make([]*series, len(curves))
	for i, c := range curves {
		list[i] = &series{framework: c.Framework, parameters: maps.Clone(c.Parameters)}
		for _, key := range but {
			delete(list[i].parameters, key)
		}
	}
	name(list)
	renamed := slices.Clone(curves)
	for i := range renamed {
		renamed[i].Series = list[i].name
	}
	return renamed
}

// Alike reports whether the series of two curves have the same parameters, except for the
// parameter but.
func Alike(a, b Curve, but string) bool {
	keys := map[string]bool{}
	for k := range a.Parameters {
		keys[k] = true
	}
	for k := range b.Parameters {
		keys[k] = true
	}
	delete(keys, but)
	for k := range keys {
		if literal(a.Parameters[k]) != literal(b.Parameters[k]) {
			return false
		}
	}
	return a.Framework == b.Framework
}

func last(path string) string {
	if file, ok := strings.CutPrefix(path, ranOn+fingerprint.FilePrefix); ok {
		return file // dots in a file name do not separate parts
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// text formats the value of a parameter for people. Equal numbers have the same text, whether
// integer or not.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "unset"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprint(v)
}

// literal formats the value of a parameter so that different values have different texts: the
// string "64" is not the number 64.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return text(v)
}

// numeric returns a parameter's value if it is a number.
func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
