package figure

import (
	"strings"
	"testing"
)

// Each preset describes and draws itself. Without data, its error says so under its own
// name.
func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Presets() {
		if k.Name == "" || seen[k.Name] || k.Title == "" || k.About == "" || k.draw == nil {
			t.Errorf("%q: want a name once, a title, a line of help and what draws it", k.Name)
			continue
		}
		seen[k.Name] = true
		if k.Concerns(Data{}) {
			t.Errorf("%s: a report without data draws it", k.Name)
		}
		if _, err := k.Draw(Data{}, Options{}); err == nil || !strings.HasPrefix(err.Error(), k.Name+" figure: ") {
			t.Errorf("%s: drawn of nothing: %v", k.Name, err)
		}
		if k.Demand && k.Input != OfPrices {
			t.Errorf("%s: Demand is for figures of OfPrices", k.Name)
		}
	}
}
