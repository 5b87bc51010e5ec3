package query

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/figure"
)

// Every figure's input can be read.
func TestInputs(t *testing.T) {
	for _, k := range figure.Presets() {
		if inputs[k.Input] == nil {
			t.Errorf("%s: no function reads its input", k.Name)
		}
	}
}
