package decision

import "testing"

// An option is a rival if it may be better by more than a tenth, or is sure where the choice is
// not; with a least probability, if it is better and not surely too little.
func TestRivals(t *testing.T) {
	for _, test := range []struct {
		name      string
		least     float64
		p, chosen prospect
		want      bool
	}{
		{"12 % more, 6 % likely", 0, prospect{1, 0.06, 1.12}, prospect{0, 0.99, 1}, true},
		{"12 % more, 4 % likely", 0, prospect{1, 0.04, 1.12}, prospect{0, 0.99, 1}, false},
		{"10 % more", 0, prospect{1, 0.9, 1.1}, prospect{0, 0.99, 1}, false},
		{"safer", 0, prospect{1, 0.95, 0.5}, prospect{0, 0.94, 1}, true},
		{"not sure either", 0, prospect{1, 0.949, 0.5}, prospect{0, 0.94, 1}, false},
		{"the choice is sure", 0, prospect{1, 0.99, 0.5}, prospect{0, 0.95, 1}, false},
		{"smaller, 3 % likely", 0.975, prospect{1, 0.03, 1.01}, prospect{0, 0.99, 1}, true},
		{"smaller, 2 % likely", 0.975, prospect{1, 0.02, 1.01}, prospect{0, 0.99, 1}, false},
		{"as good", 0.975, prospect{1, 0.9, 1}, prospect{0, 0.99, 1}, false},
	} {
		q := Question{Least: test.least}
		if got := q.rivals(test.p, test.chosen); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
