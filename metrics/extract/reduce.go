package extract

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// reductions are the methods that reduceBy supports.
var reductions = []string{"last", "mean", "median", "max", "min", "sum"}

// reduceBy reduces values to one number by the method how, one of reductions.
func reduceBy(how string, values []float64) (float64, error) {
	if len(values) == 0 {
		return 0, errors.New("no values to reduce")
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	switch how {
	case "last":
		return values[len(values)-1], nil
	case "mean":
		return sum / float64(len(values)), nil
	case "sum":
		return sum, nil
	case "max":
		return slices.Max(values), nil
	case "min":
		return slices.Min(values), nil
	case "median":
		sorted := slices.Sorted(slices.Values(values))
		n := len(sorted)
		return sorted[(n-1)/2]/2 + sorted[n/2]/2, nil
	}
	return 0, fmt.Errorf("unknown reduction %q; valid: %s", how, strings.Join(reductions, ", "))
}

// median returns the median of values in the log's unit; 0 without values.
func median(values []Value) float64 {
	x, _ := reduceBy("median", numbers(values))
	return x
}

func numbers(values []Value) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = v.Number
	}
	return list
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// scaled returns x converted by the factor scale. For a factor like 1e-6 it divides by 1e6
// instead of multiplying, so that 20006 µs give exactly 0.020006 s.
func scaled(x, scale float64) float64 {
	if parts := math.Round(1 / scale); scale < 1 && 1/parts == scale {
		return x / parts
	}
	return x * scale
}
