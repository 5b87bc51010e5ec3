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

// Target is a value that a training is to reach of something that is judged while
// it goes on: an accuracy, a loss, a figure of the user's.
type Target struct {
	Of     string    // OfAccuracy, OfLoss, OfPerplexity, or a figure's name
	Value  float64   // in the figure's unit; an accuracy is a fraction
	Better Direction // Higher: it is reached at Value or more; Lower: or less
}

// What targets are of without a word about which way it is better. A perplexity is
// e to the power of the loss, which is then a token's cross-entropy in nats.
const (
	OfAccuracy   = "accuracy"
	OfLoss       = "loss"
	OfPerplexity = "perplexity"
)

// judged says of these which way they are better.
var judged = map[string]Direction{OfAccuracy: Higher, OfLoss: Lower, OfPerplexity: Lower}

// Accuracy is the target of an accuracy, a fraction.
func Accuracy(value float64) Target { return Target{OfAccuracy, value, Higher} }

var targetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)

// newTarget is the target of what is called of; better may be Neither where that
// is known. The error says what cannot be a target.
func newTarget(of string, value float64, better Direction) (Target, error) {
	known, is := judged[of]
	switch {
	case !targetName.MatchString(of):
		return Target{}, fmt.Errorf("%q is no name of a figure; want letters, digits and _", of)
	case !is && better == Neither:
		return Target{}, fmt.Errorf("which way %s is better is not known; write { %s = %s, better = \"higher\" } or \"lower\"", of, of, decimal(value))
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

// farthest is more than anything that is judged; beyond, names grow long.
const farthest = 1e12

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// signs are how a target is written in text, by which way it is better.
var signs = map[Direction]string{Higher: ">=", Lower: "<="}

// String is the target as in JSON and on the command line: "0.75", "loss<=2",
// "bleu>=25".
func (t Target) String() string {
	if t.Of == OfAccuracy {
		return decimal(t.Value)
	}
	return t.Of + signs[t.Better] + decimal(t.Value)
}

// ParseTarget undoes String. Of a loss, a perplexity or an accuracy "loss=2" will do.
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

// Short is the target where a heading says that it is one: "0.75", "loss 2".
func (t Target) Short() string {
	if t.Of == OfAccuracy {
		return decimal(t.Value)
	}
	return t.Text()
}

// Text is the target for people: "accuracy 0.75", "loss 2", "bleu 25".
func (t Target) Text() string { return t.Of + " " + decimal(t.Value) }

// MarshalJSON writes an accuracy as a number and any other target as text.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.Of == OfAccuracy {
		return json.Marshal(t.Value)
	}
	text := strconv.Quote(t.String()) // json.Marshal would write < as \u003c
	return []byte(text), nil
}

// UnmarshalJSON reads either.
func (t *Target) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return t.UnmarshalTOML(v)
}

// UnmarshalTOML reads 0.75, { loss = 2.0 }, { bleu = 25, better = "higher" }, or the
// text of String.
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

// Reached reports whether a value of what the target is of reaches it.
func (t Target) Reached(x float64) bool {
	if t.Better == Lower {
		return x <= t.Value
	}
	return x >= t.Value
}

// Judges is the value of an evaluation that the target is about: its accuracy, or
// its loss; ok is false where the evaluation has none.
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

// JudgesEvaluations reports whether an evaluation with a loss is all it takes to judge
// the target.
func (t Target) JudgesEvaluations() bool {
	_, ok := t.Judges(0, new(float64))
	return ok
}

const (
	toPrefix = "to_"
	above    = "_above_"
	below    = "_below_"
)

// Time is the time to the target, in seconds from the start of the training clock:
// "to_0.75", "to_loss_2", "to_bleu_above_25".
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

// FromStart is the time to the same target from the start of the run's processes,
// with initialisation: "start_to_0.75".
func FromStart(m Measure) Measure {
	m.Name, m.Title = "start_"+m.Name, m.Title+" from the start"
	return m
}

// TargetOf is the target whose time is called name; ok is false for any other name.
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
	if of == OfAccuracy && x == 0 { // never asked for, and known as a measure
		return Accuracy(0), true
	}
	t, err = newTarget(of, x, better)
	return t, err == nil
}

// Harder orders targets: what is no accuracy first, by name, and each by how hard it
// is to reach. The last of a list is the one that says most of a training.
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

// ByGoal orders missable measures: the program's own target, then others as Harder
// does.
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

// Targets are the targets whose times are among values, as Harder orders them.
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

// Goal is what a missable measure is the time to, in a word: "0.75", "loss_2", or
// "target" for the program's own.
func (m Measure) Goal() string { return strings.TrimPrefix(m.Name, toPrefix) }

// GoalText is it for people: "accuracy 0.75", "loss 2", "the program's target".
func (m Measure) GoalText() string {
	if t, ok := TargetOf(m.Name); ok {
		return t.Text()
	}
	return "the program's target"
}
