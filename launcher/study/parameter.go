package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Own are the study's own parameters by name, from the [parameters] table. They are scalars
// that only the user's program interprets.
type Own map[string]Scalar

// parameterPrefix is the prefix of the TOML paths of the study's own parameters, such as
// "parameters.hidden".
const parameterPrefix = "parameters."

// parameterName matches valid names. A name becomes a placeholder, part of an environment
// variable, and an argument of a Python function.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// yielding are the keys of [workload] that are newer than [parameters]. An older study may
// have a parameter of the same name: there, the short name denotes the parameter.
var yielding = []string{"sequence", "micro_batch", "zero", "shard", "checkpointing", "accumulate", "tp", "pp", "cp", "ep", "dp", "recompute", "sample",
	"prompts", "headers", "api_key", "routing", "arrivals", "max_concurrency", "ramp", "warmup", "requests", "cancel", "cancel_after", "metrics", "gpus", "export", "server_options"}

// Yields reports whether a parameter with this name takes precedence over the key of
// [workload] and its placeholder.
func Yields(name string) bool { return slices.Contains(yielding, name) }

// ParameterVariable returns the name of the environment variable that passes a parameter to
// the user's program. For the parameter "hidden" it is SCALEBENCH_PARAM_HIDDEN.
func ParameterVariable(name string) string { return "SCALEBENCH_PARAM_" + strings.ToUpper(name) }

// Names returns the names of the parameters, sorted.
func (o Own) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Scalar is the value of a parameter: string, int64, float64 or bool. JSON preserves its
// type: 1.0 does not become 1.
type Scalar struct{ Value any }

// UnmarshalTOML reads a value of one of the four types.
func (s *Scalar) UnmarshalTOML(v any) error {
	switch x := v.(type) {
	case string:
		if err := given(x); err != nil {
			return err
		}
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("want a finite number, got %g", x)
		}
	case int64, bool:
	default:
		return fmt.Errorf("want a string, a number, true or false, got %v", v)
	}
	s.Value = v
	return nil
}

// longestArgument is the maximum length in bytes of an argument or a variable's value.
// Linux limits each to 128 KiB (MAX_ARG_STRLEN), including a variable's name and other
// parts of an argument.
const longestArgument = 64 << 10

// given returns an error if a text cannot be passed to a program as an argument or
// variable.
func given(text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return errors.New("has a zero byte, which no program can be given")
	case len(text) > longestArgument:
		return fmt.Errorf("is %d bytes long, and no program starts with more than %d in an argument or variable; put it into a file", len(text), longestArgument)
	}
	return nil
}

// String returns the value as a program receives it.
func (s Scalar) String() string { return fmt.Sprint(s.Value) }

// MarshalJSON writes a float so that it is read as a float again.
func (s Scalar) MarshalJSON() ([]byte, error) {
	if _, real := s.Value.(float64); real {
		text := s.String()
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return []byte(text), nil
	}
	return json.Marshal(s.Value)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (s *Scalar) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			v = i
		} else if v, err = n.Float64(); err != nil {
			return err
		}
	}
	return s.UnmarshalTOML(v)
}

// kind returns the name of the value's type, for messages.
func (s Scalar) kind() string {
	switch s.Value.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case float64:
		return "a real number"
	}
	return "a whole number"
}

// real converts an integer to a float; other values are unchanged.
func (s Scalar) real() Scalar {
	if n, whole := s.Value.(int64); whole {
		return Scalar{float64(n)}
	}
	return s
}

// parameters decodes [parameters].
func (d *decoder) parameters(k kind) Own {
	t := d.sub(d.top, "parameters")
	if len(t) == 0 {
		return nil
	}
	own := Own{}
	taken := shortKeys(pointFields()[k.defaults.Kind])
	for name, p := range t {
		path := parameterPrefix + name
		var v Scalar
		switch {
		case !parameterName.MatchString(name):
			d.problem(path, "cannot name a parameter; use lower-case letters, digits and underscores, starting with a letter")
		case taken[name] != nil && !slices.Contains(yielding, name):
			d.problem(path, fmt.Sprintf("%s is a key of every study already; choose another name, like own_%s", strings.Join(taken[name], ", "), name))
		case d.value(path, p, &v):
			own[name] = v
		}
	}
	return own
}

// sameType gives all values of a parameter, swept or declared, the same type. If some are
// floats, it converts the integers to floats.
func (d *decoder) sameType(at, name string, values []Scalar, own Own) {
	all := slices.Clone(values)
	declared, ok := own[name]
	if ok {
		all = append(all, declared)
	}
	isReal := func(s Scalar) bool { _, real := s.Value.(float64); return real }
	if slices.ContainsFunc(all, isReal) {
		for i := range values {
			values[i] = values[i].real()
		}
		if ok {
			own[name] = declared.real()
		}
	}
	first := own[name]
	for i, v := range values {
		if d.flaws.in(at + "[" + strconv.Itoa(i) + "]") {
			continue
		}
		if first.Value == nil {
			first = v
		}
		if v.kind() != first.kind() {
			d.problem(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("want %s, as %s has elsewhere, got %s", first.kind(), name, v.kind()))
		}
	}
}
