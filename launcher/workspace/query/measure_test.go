package query

import "testing"

// A name that states a target, but not as ours do, is answered with ours.
func TestTargetHint(t *testing.T) {
	for name, want := range map[string]string{
		"to_75": "to_0.75", "to75": "to_0.75", "to_75%": "to_0.75", "to_0,75": "to_0.75", "time_to_0.75": "to_0.75", "to_.75": "to_0.75", "to-0.9": "to_0.9",
		"to_accuracy_0.9": "to_0.9", "to_loss2": "to_loss_2", "to_loss_2.5": "to_loss_2.5", "to_750": "", "to_target": "", "throughput": "", "to_0": "",
	} {
		if want != "" {
			want = "Did you mean " + want + "?"
		}
		if got := targetHint(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
