// Package number formats numbers for people: three significant digits and a unit that
// suits the size. Stored values are never scaled; this package scales them for
// display. Every table, sentence and page uses it, so that a value reads the same
// everywhere. It has no side effects.
package number

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Absent is shown for a value that was not measured or does not exist.
const Absent = "–"

// Significant formats v with three significant digits: 0.0123, 12.3, 12.3k, 4.56M.
// Prefixes are powers of 1000.
func Significant(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent
	}
	rounded := round3(v)
	size := math.Abs(rounded)
	if scale, prefix := prefixed(size); prefix != "" && size < 1e15 {
		return digits3(rounded/scale) + prefix
	}
	if size != 0 && size < 1e-3 || size >= 1e15 {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return digits3(rounded)
}

// Plain formats v with three significant digits, without a prefix and with all digits of a
// larger integer part, for tables in which all cells of a column have one unit: 0.000123,
// 12.3, 12345.
func Plain(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case size >= 1e15 || size != 0 && size < 1e-6:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case size >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return digits3(round3(v))
}

// prefixed returns the power of 1000 used for numbers of this size, and its prefix (""
// for 1).
func prefixed(size float64) (scale float64, prefix string) {
	switch {
	case size >= 1e12:
		return 1e12, "T"
	case size >= 1e9:
		return 1e9, "G"
	case size >= 1e6:
		return 1e6, "M"
	case size >= 1e4: // 1230 is easy to read, 12300 is not
		return 1e3, "k"
	}
	return 1, ""
}

// round3 rounds v to three significant digits.
func round3(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// digits3 formats an already rounded number: "1.20", "12.0", "120". Integers of four
// digits are written in full.
func digits3(v float64) string {
	size := math.Abs(v)
	decimals := 0
	switch {
	case v == 0:
	case size < 100:
		decimals = 2 - int(math.Floor(math.Log10(size)+1e-12))
	}
	return strconv.FormatFloat(v, 'f', max(decimals, 0), 64)
}

// Seconds formats a duration: 1.23 ms, 12.3 s, 4m05s, 1h02m.
func Seconds(v float64) string { return duration(v, Significant) }

// ShortSeconds is like Seconds, without trailing zeros: 4 ms, 1.5 s, 4m05s.
func ShortSeconds(v float64) string {
	return duration(v, func(x float64) string { return Short(x, 3) })
}

func duration(v float64, write func(float64) string) string {
	if v == 0 {
		return "0 s"
	}
	return unitOf(math.Abs(v)).text(v, write)
}

// A unit is a unit of durations.
type unit int

const (
	micro unit = iota
	milli
	second
	minute // 4m05s
	hour   // 1h02m
)

// unitOf returns the unit for a duration shown alone.
func unitOf(size float64) unit {
	switch minutes := math.Round(size / 60); {
	case round3(size) < 1e-3:
		return micro
	case round3(size) < 1:
		return milli
	case round3(size) < 120 || minutes >= 1e9:
		return second
	case math.Round(size) < 3600:
		return minute
	}
	return hour
}

func (u unit) text(v float64, write func(float64) string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent
	}
	sign, size := "", math.Abs(v)
	if v < 0 {
		sign = "-"
	}
	switch u {
	case micro:
		return write(v*1e6) + " µs"
	case milli:
		return write(v*1e3) + " ms"
	case minute:
		whole := int64(math.Round(size))
		return fmt.Sprintf("%s%dm%02ds", sign, whole/60, whole%60)
	case hour:
		minutes := int64(math.Round(size / 60))
		return fmt.Sprintf("%s%dh%02dm", sign, minutes/60, minutes%60)
	}
	return write(v) + " s"
}

// Alike returns a format for numbers read together, such as a value and the ends of
// its interval. Durations (show is Seconds or ShortSeconds, recognised by how it
// formats a second and an hour) share the unit of the longest, unless the shortest
// would lose its digits: 1m59s and 2m00s, 45.0 s and 130 s. Other numbers are
// formatted by show.
func Alike(show func(float64) string, together ...float64) func(float64) string {
	var write func(float64) string
	for _, time := range []struct{ show, write func(float64) string }{
		{Seconds, Significant}, {ShortSeconds, func(x float64) string { return Short(x, 3) }}} {
		if show(1) == time.show(1) && show(3600) == time.show(3600) {
			write = time.write
		}
	}
	least, most := math.Inf(1), 0.0
	for _, v := range together {
		if size := math.Abs(v); size > 0 && !math.IsInf(size, 0) {
			least, most = min(least, size), max(most, size)
		}
	}
	if write == nil || most == 0 {
		return show
	}
	u := unitOf(most)
	if u == hour && math.Round(least) < 3600 {
		u = minute
	}
	if u == minute && math.Round(least) < 60 {
		u = second
	}
	return func(v float64) string { return u.text(v, write) }
}

// Bytes formats an amount of memory in powers of 1024: 1.50 GiB.
func Bytes(v float64) string {
	v, unit := binary(v)
	if unit == "B" {
		return Exact(v) + " B"
	}
	return digits3(round3(v)) + " " + unit
}

// ShortBytes is like Bytes, without trailing zeros: 4 KiB, 1.5 GiB.
func ShortBytes(v float64) string {
	v, unit := binary(v)
	return Short(v, 3) + " " + unit
}

// binary scales v by a power of 1024 and returns the unit.
func binary(v float64) (float64, string) {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; math.Abs(v) >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return v, units[i]
}

// Short formats x with at most the given number of significant digits and no trailing
// zeros, for axes and sentences: 0.05, 12.3, 1,024, 3e-5.
func Short(x float64, digits int) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return Absent
	case x == 0:
		return "0"
	}
	if a := math.Abs(x); a >= 1e7 || a < 1e-3 {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		e, _ := strconv.Atoi(exponent) // cannot fail: FormatFloat wrote it
		return mantissa + "e" + strconv.Itoa(e)
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x)))))
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// Prefixed is like Short, with the prefixes of Significant: 500k, 2.5M, 10M.
func Prefixed(x float64, digits int) string {
	scale, prefix := prefixed(math.Abs(x))
	return Short(x/scale, digits) + prefix
}

// Percent formats a fraction as a percentage.
func Percent(v float64) string { return Significant(v*100) + " %" }

// Exact formats a number that a user entered, with all its digits.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// ExactPercent is like Exact for a fraction that the user entered as a percentage. It
// hides rounding errors.
func ExactPercent(v float64) string { return Short(100*v, exactDigits) + " %" }

// ExactSeconds is like Exact for a duration: 12.345 s, 4m05s, 1h30m32s.
func ExactSeconds(v float64) string {
	whole := int64(v)
	switch h, m, s := whole/3600, whole/60%60, whole%60; {
	case v < 120 || v > 1e9:
		return duration(v, func(x float64) string { return Short(x, exactDigits) })
	case v != float64(whole):
		return Exact(v) + " s"
	case h > 0 && s > 0:
		return fmt.Sprintf("%dh%02dm%02ds", h, m, s)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	default:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
}

// exactDigits is more than a user enters and less than a float64 holds.
const exactDigits = 12

// Count formats a count with its noun: "1 run", "2 runs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Few returns the first n entries of a list, and one that says how many more there are.
func Few(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
}

// List joins words for a sentence: "a, b and c".
func List(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// Money formats an amount with two decimals, or with two significant digits if it is below 0.1.
func Money(x float64) string {
	if x != 0 && x < 0.1 {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Are is Count with its verb: "1 run is", "2 runs are".
func Are(n int, noun string) string { return Count(n, noun) + plural(n, " is", " are") }

// Have is Count with its verb: "1 run has", "2 runs have".
func Have(n int, noun string) string { return Count(n, noun) + plural(n, " has", " have") }

// Them is the pronoun for n things: "it" or "them".
func Them(n int) string { return plural(n, "it", "them") }

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

var numerals = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

// Masked returns a text with each number replaced by 0, so that texts that differ only in numbers
// are equal.
func Masked(text string) string { return numerals.ReplaceAllString(text, "0") }

// NodeHours formats node-hours; less than 0.01 is in node-seconds.
func NodeHours(hours float64) string {
	if hours < 0.01 {
		return Significant(3600*hours) + " node-seconds"
	}
	return Significant(hours) + " node-hours"
}
