package gputest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A form returns the C expression of an instruction, given its operands, read as the type in the
// last modifier.
type form struct {
	operands   int
	expression func(modifiers, in []string) (string, error)
}

var forms = map[string]form{
	"add":  {2, arithmetic("+")},
	"sub":  {2, arithmetic("-")},
	"mul":  {2, product},
	"mad":  {3, product},
	"div":  {2, division("/")},
	"rem":  {2, division("%")},
	"min":  {2, among("$1 < $2 ? $1 : $2", "s32", "u32", "s64", "u64")},
	"max":  {2, among("$1 > $2 ? $1 : $2", "s32", "u32", "s64", "u64")},
	"and":  {2, among("$1 & $2", "b16", "b32", "b64", "pred")},
	"or":   {2, among("$1 | $2", "b16", "b32", "b64", "pred")},
	"xor":  {2, among("$1 ^ $2", "b16", "b32", "b64", "pred")},
	"not":  {1, not},
	"neg":  {1, among("($0)-$1", "s32", "s64", "f32", "f64")},
	"mov":  {1, move},
	"cvta": {1, among("$1", "u64")},
	"rcp":  {1, exactly("1 / $1")},
	"sqrt": {1, root},
	"shl":  {2, shift("<<")},
	"shr":  {2, shift(">>")},
	"bfe":  {3, among("(uint32_t)((uint64_t)$1 >> ($2 & 63) & ((1ull << ($3 & 63)) - 1))", "u32")},
	"selp": {3, func(_, in []string) (string, error) { return fmt.Sprintf("%s ? %s : %s", in[2], in[0], in[1]), nil }},
	"setp": {2, comparison},
	"cvt":  {1, conversion},
}

// fill inserts the C type of the last modifier ($0) and the operands into a pattern.
func fill(pattern string, modifiers, in []string) string {
	with := []string{"$0", types[modifiers[len(modifiers)-1]]}
	for i, v := range in {
		with = append(with, fmt.Sprintf("$%d", i+1), v)
	}
	return strings.NewReplacer(with...).Replace(pattern)
}

func among(pattern string, kinds ...string) func(modifiers, in []string) (string, error) {
	return func(modifiers, in []string) (string, error) {
		if slices.Contains(kinds, modifiers[len(modifiers)-1]) {
			return fill(pattern, modifiers, in), nil
		}
		return "", fmt.Errorf("this type is not understood")
	}
}

// exactly returns the form of a floating-point operation that rounds to nearest, as C does.
func exactly(pattern string) func(modifiers, in []string) (string, error) {
	return func(modifiers, in []string) (string, error) {
		if k := strings.Join(modifiers, "."); k != "rn.f32" && k != "rn.f64" {
			return "", fmt.Errorf("only rounding to the nearest is understood")
		}
		return fill(pattern, modifiers, in), nil
	}
}

func floating(modifiers []string) bool { return strings.HasPrefix(modifiers[len(modifiers)-1], "f") }

// arithmetic returns the form of an integer operation. It computes in 64 bits without sign, because
// C does not define signed overflow; the result's register takes the lower bits.
func arithmetic(operator string) func(modifiers, in []string) (string, error) {
	return func(modifiers, in []string) (string, error) {
		if floating(modifiers) {
			return exactly("$1 "+operator+" $2")(modifiers, in)
		}
		if len(modifiers) != 1 {
			return "", fmt.Errorf("not understood")
		}
		return fmt.Sprintf("(uint64_t)%s %s (uint64_t)%s", in[0], operator, in[1]), nil
	}
}

func product(modifiers, in []string) (string, error) {
	if floating(modifiers) {
		if len(in) > 2 {
			return "", fmt.Errorf("not understood")
		}
		return exactly("$1 * $2")(modifiers, in)
	}
	both := fmt.Sprintf("(uint64_t)%s * (uint64_t)%s", in[0], in[1])
	switch modifiers[0] {
	case "lo":
	case "wide":
		if k := modifiers[1]; k != "s32" && k != "u32" && k != "s16" && k != "u16" {
			return "", fmt.Errorf("this type is not understood")
		}
	case "hi":
		if modifiers[1] == "s32" {
			both = fmt.Sprintf("(uint64_t)((int64_t)%s * (int64_t)%s >> 32)", in[0], in[1])
		} else if modifiers[1] == "u32" {
			both += " >> 32"
		} else {
			return "", fmt.Errorf("this type is not understood")
		}
	default:
		return "", fmt.Errorf("not understood")
	}
	if len(in) > 2 {
		if modifiers[0] == "wide" {
			return "", fmt.Errorf("not understood")
		}
		both = fmt.Sprintf("(%s) + (uint64_t)%s", both, in[2])
	}
	return both, nil
}

func division(operator string) func(modifiers, in []string) (string, error) {
	return func(modifiers, in []string) (string, error) {
		if floating(modifiers) && operator == "/" {
			return exactly("$1 / $2")(modifiers, in)
		}
		if floating(modifiers) || len(modifiers) != 1 {
			return "", fmt.Errorf("not understood")
		}
		return in[0] + " " + operator + " " + in[1], nil
	}
}

func root(modifiers, in []string) (string, error) {
	if modifiers[len(modifiers)-1] == "f32" {
		return exactly("sqrtf($1)")(modifiers, in)
	}
	return exactly("sqrt($1)")(modifiers, in)
}

func not(modifiers, in []string) (string, error) {
	if modifiers[0] == "pred" {
		return "!" + in[0], nil
	}
	return among("~$1", "b16", "b32", "b64")(modifiers, in)
}

func move(modifiers, in []string) (string, error) {
	if len(modifiers) != 1 {
		return "", fmt.Errorf("not understood")
	}
	return in[0], nil
}

// bits translates a mov between a floating-point register and an integer register of the same size.
func bits(name, to, from string) (statement string, ok bool) {
	t, f := register.FindStringSubmatch(to), register.FindStringSubmatch(from)
	if t == nil || f == nil {
		return "", false
	}
	switch name + " " + t[2] + " " + f[2] {
	case "mov.b32 r f":
		return fmt.Sprintf("%s = bits_f32(%s);", t[1], f[1]), true
	case "mov.b64 rd fd":
		return fmt.Sprintf("%s = bits_f64(%s);", t[1], f[1]), true
	case "mov.b32 f r":
		return fmt.Sprintf("%s = of_f32(%s);", t[1], f[1]), true
	case "mov.b64 fd rd":
		return fmt.Sprintf("%s = of_f64(%s);", t[1], f[1]), true
	}
	return "", false
}

// shift returns the form of a shift. A shift by more than the type's bits counts as one by all
// bits.
func shift(operator string) func(modifiers, in []string) (string, error) {
	return func(modifiers, in []string) (string, error) {
		kind := modifiers[0]
		bits, err := strconv.Atoi(kind[1:])
		if err != nil || len(modifiers) != 1 || floating(modifiers) {
			return "", fmt.Errorf("not understood")
		}
		beyond := "0"
		if operator == ">>" && kind[0] == 's' {
			beyond = fmt.Sprintf("%s >> %d", in[0], bits-1)
		}
		return fmt.Sprintf("%[1]s < %[2]d ? %[3]s %[4]s %[1]s : %[5]s", in[1], bits, in[0], operator, beyond), nil
	}
}

// comparison is the form of a comparison. An ordered comparison with a NaN is false, as in C.
func comparison(modifiers, in []string) (string, error) {
	if len(modifiers) != 2 {
		return "", fmt.Errorf("not understood")
	}
	a, b := in[0], in[1]
	if operator, ok := map[string]string{"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[modifiers[0]]; ok {
		return a + " " + operator + " " + b, nil
	}
	float := floating(modifiers)
	switch {
	case modifiers[0] == "ne" && !float, modifiers[0] == "neu" && float:
		return a + " != " + b, nil
	case modifiers[0] == "nan" && float:
		return fmt.Sprintf("isnan(%s) || isnan(%s)", a, b), nil
	case modifiers[0] == "num" && float:
		return fmt.Sprintf("!isnan(%s) && !isnan(%s)", a, b), nil
	}
	if opposite, ok := map[string]string{"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}[modifiers[0]]; ok && float {
		return fmt.Sprintf("!(%s %s %s)", a, opposite, b), nil
	}
	return "", fmt.Errorf("not understood")
}

// conversion is the form of a conversion. Integers keep their value; floating-point numbers are
// rounded to nearest, or towards 0 for conversion to an integer.
func conversion(modifiers, in []string) (string, error) {
	if len(modifiers) < 2 {
		return "", fmt.Errorf("not understood")
	}
	to, from := modifiers[len(modifiers)-2], modifiers[len(modifiers)-1]
	c, ok := types[to]
	if !ok {
		return "", fmt.Errorf("this type is not understood")
	}
	switch rounding := strings.Join(modifiers[:len(modifiers)-2], "."); {
	case to[0] == 'f' && from == "f32" && to == "f64" && rounding == "",
		to[0] == 'f' && rounding == "rn",
		to[0] != 'f' && from[0] != 'f' && rounding == "",
		to == "s32" && from[0] == 'f' && rounding == "rzi":
		return "(" + c + ")" + in[0], nil
	}
	return "", fmt.Errorf("this rounding is not understood")
}
