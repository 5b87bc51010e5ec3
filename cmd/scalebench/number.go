package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
)

// How single values are written for people. Stored values are never scaled;
// that happens here, last.

// notHad stands for a value that was not measured or does not exist.
const notHad = "–"

// text is a cell for people, on one line.
func (c column) text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return notHad
	case string:
		return clean.Line(v)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case time.Time:
		return v.Local().Format("2006-01-02 15:04:05")
	}
	if n, ok := number(cell); ok {
		switch {
		case c.show != nil:
			return c.show(n)
		case math.Trunc(n) == n && reflect.TypeOf(cell).Kind() != reflect.Float64:
			return fmt.Sprint(cell) // a count keeps its digits
		}
		return significant(n)
	}
	switch v := reflect.ValueOf(cell); v.Kind() {
	case reflect.String:
		return clean.Line(v.String())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = column{show: exactly}.text(bare(v.Index(i).Interface()))
		}
		return strings.Join(parts, ", ")
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, clean.Line(fmt.Sprint(k))+"="+column{show: exactly}.text(bare(v.MapIndex(k).Interface())))
		}
		slices.Sort(parts)
		return strings.Join(parts, ", ")
	}
	b, err := encodeJSON(cell)
	if err != nil {
		return clean.Line(fmt.Sprint(cell))
	}
	return clean.Line(b)
}

// number is a cell's value, if it is a number.
func number(cell any) (float64, bool) {
	v := reflect.ValueOf(cell)
	switch {
	case !v.IsValid():
		return 0, false
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// writes is how the values of a measure are written.
func writes(m measure.Measure) func(float64) string {
	return map[measure.Show]func(float64) string{measure.Number: significant, measure.Seconds: seconds, measure.Percent: percent}[m.Show]
}

// measureColumn is the column of a table that holds values of a measure.
func measureColumn(m measure.Measure) column {
	c := column{key: m.Name, head: m.Title, show: writes(m)}
	if m.Show == measure.Number {
		c.unit = m.Unit
	}
	return c
}

// significant writes v with three significant digits: 0.0123, 12.3, 12.3k,
// 4.56M. Prefixes are powers of 1000.
func significant(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return notHad
	}
	rounded := round3(v)
	size := math.Abs(rounded)
	for _, p := range []struct {
		scale  float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if size >= p.scale {
			scale := p.scale
			if p.prefix == "k" {
				scale = 1e3 // 1230 is still read at a glance, 12300 is not
			}
			return digits3(rounded/scale) + p.prefix
		}
	}
	if size != 0 && size < 1e-3 {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return digits3(rounded)
}

// round3 rounds to three significant digits.
func round3(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// digits3 writes a number that has three significant digits, as "1.20", "12.0"
// and "120"; whole ones of four digits are written out.
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

// seconds writes a length of time for people: 1.23 ms, 12.3 s, 4m05s, 1h02m.
func seconds(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return notHad
	}
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0 s"
	case round3(size) < 1e-3:
		return significant(v*1e6) + " µs"
	case round3(size) < 1:
		return significant(v*1e3) + " ms"
	case round3(size) < 120:
		return significant(v) + " s"
	}
	sign := ""
	if v < 0 {
		sign = "-"
	}
	if whole := math.Round(size); whole < 3600 {
		return fmt.Sprintf("%s%dm%02ds", sign, int64(whole)/60, int64(whole)%60)
	}
	minutes := math.Round(size / 60)
	if minutes >= 1e9 {
		return significant(v) + " s"
	}
	return fmt.Sprintf("%s%dh%02dm", sign, int64(minutes)/60, int64(minutes)%60)
}

// binaryBytes writes an amount of memory for people, in powers of 1024.
func binaryBytes(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return strconv.FormatFloat(v, 'f', -1, 64) + " B"
	}
	return digits3(round3(v)) + " " + units[i]
}

// percent writes a fraction as a percentage.
func percent(v float64) string { return significant(v*100) + " %" }

// encodeJSON is v as JSON that is safe to print: what steers a terminal is
// escaped, which JSON allows in strings without loss.
func encodeJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return clean.JSON(strings.TrimSuffix(b.String(), "\n")), nil
}

// exactly writes a number that a person chose, with the digits they gave it.
func exactly(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
