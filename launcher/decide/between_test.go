package decide

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// rangedSpeeds returns throughputs of doublings up to 8 workers, of which 4 is the best, and of
// counts in between: 6 workers are worth 173.5·500/340·1.4^-0.585 = 209, 20 % more than 4.
func rangedSpeeds() map[int][]float64 {
	return map[int][]float64{1: {100, 101, 100, 99}, 2: {190, 191, 189, 190}, 3: {250}, 4: {340, 341, 339, 340}, 5: {385, 386, 385, 384}, 6: {500, 501, 499, 500}, 7: {505, 506, 504, 505}, 8: {400, 401, 399, 400}}
}

// After the doublings, 6 is measured together with 4, in the same repeats. It is the best; of
// its neighbours 5 cannot be better (the line through 2 and 4 has 188 for it), and 7 lies below
// the line through 4 and 6 alone, so that it is measured, too.
func TestRunWithRange(t *testing.T) {
	l, f := newLab(rangedSpeeds()), folder(t)
	l.later = []int{3, 5, 6, 7}
	o := run(t, l.study(t, f, 12))
	if !o.Decided || *o.Views[0].Advice.Workers != 6 {
		t.Fatalf("%+v, %v", o.Views[0].Look, l.told)
	}
	made := map[int][]int{}
	for _, x := range l.order {
		made[x.Workers] = append(made[x.Workers], x.Repeat)
	}
	if made[3] != nil || made[5] != nil || made[7] == nil || made[6][0] != 5 || len(made[2]) != 4 {
		t.Errorf("made %v", made)
	}
	for _, r := range made[6][:2] {
		if !slices.Contains(made[4], r) {
			t.Errorf("6 workers ran in repeat %d, 4 in %v", r, made[4])
		}
	}
	if got := o.Views[0].Sentence(); !strings.HasPrefix(got, "Decided. Use 6 workers") || !strings.Contains(got, "Left out: 5 cannot be better than 6 by more than 2 %, as the counts around them show; 3 not next to the answer.") {
		t.Errorf("%s", got)
	}
	r, err := Read(f)
	if err != nil || len(r.From) != 6 || r.From["w1"] != r.From["w7"] || made[7][0] != r.From["w7"] {
		t.Errorf("%+v, %v", r, err)
	}
	// If it is killed in the batch that first measures 6, it makes the same runs after a restart.
	m, g := newLab(rangedSpeeds()), folder(t)
	m.later, m.dies = l.later, 3
	if _, err := m.study(t, g, 12).Run(t.Context()); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if o := run(t, m.study(t, g, 12)); !o.Decided || len(m.order) != len(l.order) {
		t.Errorf("killed: %d runs, not %d", len(m.order), len(l.order))
	}
	// A limit of node-hours ends it before the counts in between.
	n, h := newLab(rangedSpeeds()), folder(t)
	n.later = l.later
	limited := n.study(t, h, 12)
	limited.NodeHours = 31 // the doublings take 2·(1 + 2 + 4 + 8) = 30
	if o := run(t, limited); o.Decided || !strings.Contains(o.Stopped, "max_node_hours") {
		t.Errorf("%+v", o)
	}
}
