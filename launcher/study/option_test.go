package study

import (
	"testing"

	"github.com/scalebench/scalebench/slurm/notation"
)

// The error for an sbatch option that scalebench sets itself says which key to set instead.
func TestEveryOwnedOptionSaysWhatDecidesIt(t *testing.T) {
	used := map[string]bool{}
	for _, o := range notation.Options() {
		if o.Field != "" && decides[o.Field] == "" {
			t.Errorf("%s is decided by %s, of which a user of the site file knows nothing", o.Name, o.Field)
		}
		used[o.Field] = true
	}
	for field := range decides {
		if !used[field] {
			t.Errorf("no option is decided by %s", field)
		}
	}
}
