package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// Text formats a cell for people, on one line.
func (c Column) Text(cell any) string {
	switch v := cell.(type) {
	case nil:
		return number.Absent
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
	if n, ok := numeric(cell); ok {
		switch {
		case c.Show != nil:
			return c.Show(n)
		case math.Trunc(n) == n && reflect.TypeOf(cell).Kind() != reflect.Float64:
			return fmt.Sprint(cell) // a count keeps its digits
		}
		return number.Significant(n)
	}
	switch v := reflect.ValueOf(cell); v.Kind() {
	case reflect.String:
		return clean.Line(v.String())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = Column{Show: number.Exact}.Text(Deref(v.Index(i).Interface()))
		}
		return strings.Join(parts, ", ")
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, clean.Line(fmt.Sprint(k))+"="+Column{Show: number.Exact}.Text(Deref(v.MapIndex(k).Interface())))
		}
		slices.Sort(parts)
		return strings.Join(parts, ", ")
	}
	b, err := EncodeJSON(cell)
	if err != nil {
		return clean.Line(fmt.Sprint(cell))
	}
	return clean.Line(b)
}

// numeric returns a cell's value if it is a number.
func numeric(cell any) (float64, bool) {
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

// ColumnOf returns a column for values of a measure.
func ColumnOf(m measure.Measure) Column {
	c := Column{Key: m.Name, Head: m.Title, Show: m.Text}
	if m.Show == measure.Number {
		c.Unit = m.Unit
	}
	return c
}

// EncodeJSON encodes v as JSON that is safe to print: terminal controls are escaped,
// which changes no decoded value.
func EncodeJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return clean.JSON(strings.TrimSuffix(b.String(), "\n")), nil
}

// Deref dereferences a cell that is a pointer; nil means not measured.
func Deref(cell any) any {
	v := reflect.ValueOf(cell)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	switch c := v.Interface().(type) {
	case time.Time:
		if c.IsZero() {
			return nil
		}
		return c
	case float64:
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return nil
		}
		return c
	default:
		return c
	}
}

// NonZero returns a cell that is empty if v is zero, for values whose zero means
// unknown.
func NonZero[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
