package measure

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A target has one form each as a measure's name, as text and as JSON, and each can be
// read back.
func TestTarget(t *testing.T) {
	for want, target := range map[string]Target{
		"to_0.75": Accuracy(0.75), "to_0.759": Accuracy(0.759), "to_0.0000001": Accuracy(1e-7), "to_1": Accuracy(1),
		"to_loss_2": {OfLoss, 2, Lower}, "to_loss_-0.5": {OfLoss, -0.5, Lower}, "to_perplexity_20": {OfPerplexity, 20, Lower},
		"to_bleu_above_25.5": {"bleu", 25.5, Higher}, "to_val_wer_below_0.05": {"val_wer", 0.05, Lower},
	} {
		if got := target.Time().Name; got != want {
			t.Errorf("%+v: %q, want %q", target, got, want)
		}
		if got, ok := TargetOf(want); !ok || got != target {
			t.Errorf("%q is %+v", want, got)
		}
		if got, err := ParseTarget(target.String()); err != nil || got != target {
			t.Errorf("%q is %+v, %v", target, got, err)
		}
		text, err := json.Marshal(target)
		var back Target
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back != target {
			t.Errorf("%s is %+v, %v", text, back, err)
		}
	}
	if m, _ := Find("to_0.750"); m.Name != "to_0.75" {
		t.Errorf("to_0.750 is %q", m.Name)
	}
	for _, name := range []string{"to_target", "to_", "to_2", "to_end_5", "to_loss_", "to_loss_x", "to_0x1p-2x", "to_loss_nan", "to_loss_1e300", "loss_2"} {
		if got, ok := TargetOf(name); ok {
			t.Errorf("%q is %+v", name, got)
		}
	}
}

// Each case is a target in a study that is accepted or rejected.
func TestReadTarget(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string // the target, or part of the error
	}{
		{0.75, "0.75"}, {int64(1), "1"}, {map[string]any{"loss": 2.0}, "loss<=2"}, {map[string]any{"perplexity": int64(20)}, "perplexity<=20"},
		{"loss=2.5", "loss<=2.5"}, {"bleu >= 25", "bleu>=25"}, {map[string]any{"bleu": 25.0, "better": "higher"}, "bleu>=25"},
		{map[string]any{"accuracy": 0.5}, "0.5"},
		{75.0, "a target is an accuracy above 0 and up to 1 (0.75 for 75 %)"}, {0.0, "an accuracy above 0 and up to 1"},
		{map[string]any{"bleu": 25.0}, "whether a higher or a lower bleu is better is unknown"}, {map[string]any{"loss": 2.0, "better": "higher"}, "loss is better when it is lower"},
		{map[string]any{"loss": "2"}, "want a number"}, {map[string]any{"loss": 1.0, "wer": 2.0}, "want one figure in each table"}, {map[string]any{}, "want one figure"},
		{map[string]any{"perplexity": 0.5}, "a perplexity is 1 or more"}, {"fast", "is not a target"}, {"loss>2", "is not a target"}, {true, "want an accuracy"},
		{map[string]any{"a b": 1.0, "better": "lower"}, "is not a valid name of a measure"}, {map[string]any{"wer": 1.0, "better": "less"}, "want \"higher\" or \"lower\""},
	} {
		var got Target
		err := got.UnmarshalTOML(c.in)
		if text := got.String(); err != nil && !strings.Contains(err.Error(), c.want) || err == nil && text != c.want {
			t.Errorf("%v: %s, %v; want %s", c.in, text, err, c.want)
		}
	}
}

// Targets for one figure are sorted with the hardest last, in either direction; accuracies come
// after other figures.
func TestHarder(t *testing.T) {
	list := []Target{Accuracy(0.9), {OfLoss, 2, Lower}, Accuracy(0.5), {OfLoss, 3, Lower}, {"bleu", 25, Higher}, {"bleu", 30, Higher}}
	slices.SortFunc(list, Harder)
	var got []string
	for _, x := range list {
		got = append(got, x.String())
	}
	if text := strings.Join(got, " "); text != "bleu>=25 bleu>=30 loss<=3 loss<=2 0.5 0.9" {
		t.Error(text)
	}
}
