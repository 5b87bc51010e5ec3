package extract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// bracketed is the end of a column's name that reads like a unit: time (ms),
// rate[img/s].
var bracketed = regexp.MustCompile(`[(\[]\s*([^()\[\]]+?)\s*[)\]]$`)

// lastWord is what a column's name ends with, and what stands before it: time_ms,
// failed %, img/min.
var lastWord = regexp.MustCompile(`^(.*?)(%|[A-Za-zµμ]+)$`)

// headUnits are the words that end columns' names and are no base unit, and how
// we write them.
var headUnits = map[string]string{
	"ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "milliseconds": "ms",
	"us": "us", "µs": "us", "μs": "us", "usec": "us", "usecs": "us", "micros": "us", "microseconds": "us",
	"ns": "ns", "nsec": "ns", "nanos": "ns", "nanoseconds": "ns",
	"min": "min", "mins": "min", "minute": "min", "minutes": "min",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"%": "%", "pct": "%", "percent": "%",
}

// headed is the unit that a column's name says, "" if it says none that we would
// have to know of. A figure's base unit says nothing new.
func headed(name string) string {
	name = strings.TrimSpace(name)
	if m := bracketed.FindStringSubmatch(name); m != nil {
		said := m[1]
		if ours, known := headUnits[strings.ToLower(said)]; known {
			return ours
		}
		if _, known := units[said]; known || strings.Contains(said, "/") {
			return said
		}
		return ""
	}
	m := lastWord.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	unit := headUnits[strings.ToLower(m[2])]
	before := strings.ToLower(strings.TrimRight(m[1], " _-."))
	if unit != "" && (strings.HasSuffix(before, "/") || before == "per" || strings.HasSuffix(before, "_per") || strings.HasSuffix(before, " per")) {
		return "1/" + unit
	}
	return unit
}

// headFits says what is wrong with a column whose name says another unit than the
// mapping takes it in. A unit that the user gives goes before the name.
func headFits(ours string, c Column, base string) error {
	said := headed(c.Name)
	if said == "" || c.Unit != "" {
		return nil
	}
	u, known := units[said]
	if known && u.base == base && u.scale == 1 && !u.steps {
		return nil
	}
	valid := unitsOf(base)
	valid = slices.DeleteFunc(valid, func(quoted string) bool { n := strings.Trim(quoted, `"`); return n == "" || units[n].steps })
	if known && u.base == base && !u.steps {
		in := base
		if in == "" {
			in = "a fraction of 1"
		}
		return fmt.Errorf("column %s is in %s by its name, and %s is in %s: map %s=%s:%s, or give the unit that it is in (%s)",
			clip(c.Name), said, ours, in, ours, c.Name, said, strings.Join(valid, ", "))
	}
	if len(valid) == 0 {
		return nil
	}
	return fmt.Errorf("column %s is in %q by its name, and %s cannot be; if the name is wrong, give the unit that it is in (%s), like %s=%s:%s",
		clip(c.Name), said, ours, strings.Join(valid, ", "), ours, c.Name, strings.Trim(valid[len(valid)-1], `"`))
}
