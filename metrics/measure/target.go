package measure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Target is a value that training should reach: an accuracy, a loss, or a figure of
// the user's program.
type Target struct {
	Of     string    // OfAccuracy, OfLoss, OfPerplexity, or a figure's name
	Value  float64   // in the figure's unit; an accuracy is a fraction
	Better Direction // Higher: reached at Value or above; Lower: at Value or below
}

// The targets whose direction is known. Perplexity is exp(loss), where the loss is a
// token's cross-entropy in nats.
const (
	OfAccuracy   = "accuracy"
	OfLoss       = "loss"
	OfPerplexity = "perplexity"
)

// judged holds their directions.
var judged = map[string]Direction{OfAccuracy: Higher, OfLoss: Lower, OfPerplexity: Lower}

// Accuracy returns a target for an accuracy, a fraction.
func Accuracy(value float64) Target { return Target{OfAccuracy, value, Higher} }

var targetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)

// newTarget returns a target, or an error if it is invalid; better may be Neither if
// the direction of the figure is known.
func newTarget(of string, value float64, better Direction) (Target, error) {
	known, is := judged[of]
	switch {
	case !targetName.MatchString(of):
		return Target{}, fmt.Errorf("%q is not a valid name of a measure; want letters, digits and _", of)
	case !is && better == Neither:
		return Target{}, fmt.Errorf("whether a higher or a lower %s is better is unknown; write { %s = %s, better = \"higher\" } or \"lower\"", of, of, decimal(value))
	case is && better != Neither && better != known:
		return Target{}, fmt.Errorf("%s is better when it is %s; leave better out", of, known)
	case !(math.Abs(value) <= farthest):
		return Target{}, fmt.Errorf("%s = %g is not a number that can be reached", of, value)
	case of == OfAccuracy && !(value > 0 && value <= 1):
		return Target{}, fmt.Errorf("a target is an accuracy above 0 and up to 1 (0.75 for 75 %%), or a table such as { loss = 2.0 }; got %g", value)
	case of == OfPerplexity && !(value >= 1):
		return Target{}, fmt.Errorf("a perplexity is 1 or more, got %g", value)
	case is:
		better = known
	}
	return Target{of, value, better}, nil
}

// farthest exceeds every plausible target; larger values would make long names.
const farthest = 1e12

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// signs are the operators in a target's text, by direction.
var signs = map[Direction]string{Higher: ">=", Lower: "<="}

// String returns the target as written in JSON and on the command line: "0.75",
// "loss<=2", "bleu>=25".
func (t Target) String() string {
	if t.Of == OfAccuracy {
		return decimal(t.Value)
	}
	return t.Of + signs[t.Better] + decimal(t.Value)
}

// ParseTarget is the inverse of String. For a loss, perplexity or accuracy it also
// accepts "loss=2".
func ParseTarget(text string) (Target, error) {
	bad := fmt.Errorf("%q is not a target; want an accuracy such as 0.75, or loss<=2, perplexity<=20, bleu>=25", text)
	of, rest := OfAccuracy, strings.TrimSpace(text)
	better := Neither
	if i := strings.IndexAny(rest, "<>="); i >= 0 {
		of, rest = strings.TrimSpace(rest[:i]), rest[i:]
		for d, sign := range signs {
			if after, ok := strings.CutPrefix(rest, sign); ok {
				better, rest = d, after
			}
		}
		if better == Neither {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, "="); !ok {
				return Target{}, bad
			}
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if err != nil {
		return Target{}, bad
	}
	return newTarget(of, x, better)
}

// Short returns the target for places where the heading says what it is: "0.75", "loss
// 2".
func (t Target) Short() string {
	if t.Of == OfAccuracy {
		return decimal(t.Value)
	}
	return t.Text()
}

// Text returns the target with its figure: "accuracy 0.75", "loss 2", "bleu 25".
func (t Target) Text() string { return t.Of + " " + decimal(t.Value) }

// MarshalJSON writes an accuracy as a number and any other target as text.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.Of == OfAccuracy {
		return json.Marshal(t.Value)
	}
	text := strconv.Quote(t.String()) // json.Marshal would write < as \u003c
	return []byte(text), nil
}

// UnmarshalJSON accepts both forms.
func (t *Target) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return t.UnmarshalTOML(v)
}

// UnmarshalTOML accepts 0.75, { loss = 2.0 }, { bleu = 25, better = "higher" }, and
// the text of String.
func (t *Target) UnmarshalTOML(v any) (err error) {
	switch v := v.(type) {
	case float64:
		*t, err = newTarget(OfAccuracy, v, Neither)
	case int64:
		*t, err = newTarget(OfAccuracy, float64(v), Neither)
	case string:
		*t, err = ParseTarget(v)
	case map[string]any:
		*t, err = tableTarget(v)
	default:
		err = fmt.Errorf("want an accuracy such as 0.75, or a table such as { loss = 2.0 }")
	}
	return err
}

func tableTarget(v map[string]any) (Target, error) {
	better := Neither
	keys := slices.Sorted(maps.Keys(v))
	if word, given := v["better"]; given {
		text, _ := word.(string)
		var err error
		if better, err = ParseDirection(text); err != nil || better == Neither {
			return Target{}, fmt.Errorf("better = %v; want \"higher\" or \"lower\"", word)
		}
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "better" })
	}
	if len(keys) != 1 {
		return Target{}, fmt.Errorf("want one figure in each table, such as { loss = 2.0 }; got %d", len(keys))
	}
	switch x := v[keys[0]].(type) {
	case float64:
		return newTarget(keys[0], x, better)
	case int64:
		return newTarget(keys[0], float64(x), better)
	}
	return Target{}, fmt.Errorf("%s = %v; want a number", keys[0], v[keys[0]])
}

// Reached reports whether x reaches the target.
func (t Target) Reached(x float64) bool {
	if t.Better == Lower {
		return x <= t.Value
	}
	return x >= t.Value
}

// Judges returns the value of an evaluation that the target refers to: its accuracy or
// its loss. ok is false if the evaluation lacks it.
func (t Target) Judges(accuracy float64, loss *float64) (x float64, ok bool) {
	switch {
	case t.Of == OfAccuracy:
		return accuracy, true
	case loss == nil:
		return 0, false
	case t.Of == OfLoss:
		return *loss, true
	case t.Of == OfPerplexity:
		return math.Exp(*loss), true
	}
	return 0, false
}

// JudgesEvaluations reports whether evaluations with a loss suffice to judge the
// target.
func (t Target) JudgesEvaluations() bool {
	_, ok := t.Judges(0, new(float64))
	return ok
}

const (
	toPrefix = "to_"
	above    = "_above_"
	below    = "_below_"
)

// Time returns the measure of the time to the target, in seconds from the start of the
// training clock: "to_0.75", "to_loss_2", "to_bleu_above_25".
func (t Target) Time() Measure {
	name := decimal(t.Value)
	if t.Of != OfAccuracy {
		name = t.Of + "_" + name
		if _, is := judged[t.Of]; !is {
			name = t.Of + map[Direction]string{Higher: above, Lower: below}[t.Better] + decimal(t.Value)
		}
	}
	return Measure{Name: toPrefix + name, Title: "time to " + t.Short(), Unit: "s", Better: Lower, Show: Seconds, Missable: true, Scales: true}
}

// FromStart returns the time to the same target from the start of the run's processes,
// including initialisation: "start_to_0.75".
func FromStart(m Measure) Measure {
	m.Name, m.Title = "start_"+m.Name, m.Title+" from the start"
	return m
}

// TargetOf returns the target whose time has this name; ok is false for other names.
func TargetOf(name string) (t Target, ok bool) {
	text, ok := strings.CutPrefix(name, toPrefix)
	if !ok {
		return t, false
	}
	of, better := OfAccuracy, Neither
	for word, d := range map[string]Direction{above: Higher, below: Lower} {
		if i := strings.LastIndex(text, word); i > 0 {
			of, text, better = text[:i], text[i+len(word):], d
		}
	}
	if i := strings.LastIndexByte(text, '_'); better == Neither && i > 0 {
		of, text = text[:i], text[i+1:]
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return t, false
	}
	if of == OfAccuracy && x == 0 { // a target of 0 is invalid
		return Accuracy(0), true
	}
	t, err = newTarget(of, x, better)
	return t, err == nil
}

// Harder orders targets: figures other than accuracy first, by name; within a figure
// by difficulty. The last one says most about a training.
func Harder(a, b Target) int {
	accuracy := func(t Target) int {
		if t.Of == OfAccuracy {
			return 1
		}
		return 0
	}
	value := cmp.Compare(a.Value, b.Value)
	if a.Better == Lower {
		value = -value
	}
	return cmp.Or(cmp.Compare(accuracy(a), accuracy(b)), strings.Compare(a.Of, b.Of), cmp.Compare(a.Better, b.Better), value)
}

// ByGoal orders missable measures: the program's target first, then as Harder does.
func ByGoal(a, b Measure) int {
	x, known := TargetOf(a.Name)
	y, also := TargetOf(b.Name)
	switch {
	case known && also:
		return Harder(x, y)
	case known:
		return 1
	case also:
		return -1
	}
	return 0
}

// Targets returns the targets whose times are among values, ordered by Harder.
func Targets(values map[string]float64) []Target {
	var list []Target
	for name := range values {
		if target, ok := TargetOf(name); ok {
			list = append(list, target)
		}
	}
	slices.SortFunc(list, Harder)
	return list
}

// Goal returns the goal of a missable measure as a name: "0.75", "loss_2", or "target"
// for the program's goal.
func (m Measure) Goal() string { return strings.TrimPrefix(m.Name, toPrefix) }

// GoalText returns the goal as text: "accuracy 0.75", "loss 2", "the program's
// target".
func (m Measure) GoalText() string {
	if t, ok := TargetOf(m.Name); ok {
		return t.Text()
	}
	return "the program's target"
}
