package measure

import (
	"math"

	"github.com/scalebench/scalebench/metrics/number"
)

// Text formats a value of the measure according to its Show.
func (m Measure) Text(v float64) string {
	switch m.Show {
	case Seconds:
		return number.Seconds(v)
	case Percent:
		return number.Percent(v)
	case Size:
		return number.Bytes(math.Round(v))
	}
	return number.Significant(v)
}
