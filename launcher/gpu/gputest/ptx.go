package gputest

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Translate translates PTX to C, for BuildKernels. Each entry becomes a function that executes the
// threads one after the other. A test thus executes the same PTX that a GPU's driver would get,
// instruction by instruction, by NVIDIA's PTX ISA.
//
// It supports the instructions that clang generates for kernels without shared memory, barriers and
// calls, and returns an error for any other. A misaligned access ends the process, as it would end
// the program on a GPU. Threads of a block run from the last to the first, and blocks from the
// first to the last, so that a kernel that depends on the order of its threads gives wrong results.
func Translate(ptx []byte) ([]byte, error) {
	t := &translation{}
	t.write("#include \"kernel.h\"\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n")
	t.write("#pragma GCC diagnostic ignored \"-Wunused-variable\"\n#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n#pragma GCC diagnostic ignored \"-Wunused-label\"\n#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n")
	t.write("static inline float of_f32(uint32_t bits) { float v; memcpy(&v, &bits, sizeof v); return v; }\n")
	t.write("static inline double of_f64(uint64_t bits) { double v; memcpy(&v, &bits, sizeof v); return v; }\n")
	t.write("static inline uint32_t bits_f32(float v) { uint32_t bits; memcpy(&bits, &v, sizeof v); return bits; }\n")
	t.write("static inline uint64_t bits_f64(double v) { uint64_t bits; memcpy(&bits, &v, sizeof v); return bits; }\n")
	t.write("static inline void *global(uint64_t address, uint64_t size) { if (address %% size != 0) abort(); return (void *)(uintptr_t)(address - DEVICE); }\n")
	for i, line := range strings.Split(string(ptx), "\n") {
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := t.line(line); err != nil {
			return nil, fmt.Errorf("PTX, line %d: %q: %w", i+1, line, err)
		}
	}
	if t.entry != "" {
		return nil, fmt.Errorf("PTX: entry %s has no end", t.entry)
	}
	return []byte(t.c.String()), nil
}

type translation struct {
	c     strings.Builder
	entry string // name of the entry being translated
	bytes string // size of its parameter
}

func (t *translation) write(format string, values ...any) { fmt.Fprintf(&t.c, format, values...) }

var (
	entryLine     = regexp.MustCompile(`^\.visible \.entry (\w+)\($`)
	parameterLine = regexp.MustCompile(`^\.param \.align \d+ \.b8 (\w+)_param_0\[(\d+)\]$`)
	registersLine = regexp.MustCompile(`^\.reg \.(\w+)\s+%(\w+)<(\d+)>;$`)
	labelLine     = regexp.MustCompile(`^\$?(\w+):$`)
	instruction   = regexp.MustCompile(`^(?:@(!?)%(p\d+)\s+)?([a-z0-9_.]+)(?:\s+(.*))?;$`)
)

func (t *translation) line(line string) error {
	switch line {
	case ")", "(":
		return nil
	case "{":
		t.write("static void %s_thread(const unsigned char *args, uint32_t ctaid, uint32_t ntid, uint32_t tid) {\n", t.entry)
		return nil
	case "}":
		t.write("}\nstatic void %[1]s_host(const void *args, unsigned long long threads) {\n"+
			"\tfor (unsigned long long i = 0; i < threads; i++) %[1]s_thread(args, (uint32_t)(i / 256), 256, (uint32_t)(255 - i %% 256));\n}\n"+
			"__attribute__((constructor)) static void %[1]s_known(void) { double_kernel(\"%[1]s\", %[2]s, %[1]s_host); }\n", t.entry, t.bytes)
		t.entry = ""
		return nil
	}
	if m := entryLine.FindStringSubmatch(line); m != nil {
		t.entry = m[1]
		return nil
	}
	if m := parameterLine.FindStringSubmatch(line); m != nil && m[1] == t.entry {
		t.bytes = m[2]
		return nil
	}
	if m := registersLine.FindStringSubmatch(line); m != nil {
		return t.registers(m[1], m[2], m[3])
	}
	if m := labelLine.FindStringSubmatch(line); m != nil {
		t.write("%s:;\n", m[1])
		return nil
	}
	if strings.HasPrefix(line, ".version ") || strings.HasPrefix(line, ".target ") || strings.HasPrefix(line, ".address_size ") || strings.HasPrefix(line, ".pragma ") {
		return nil
	}
	m := instruction.FindStringSubmatch(line)
	if m == nil || t.entry == "" {
		return fmt.Errorf("not understood")
	}
	statement, err := instructionInC(m[3], operands(m[4]))
	if err != nil {
		return err
	}
	if m[2] != "" {
		statement = fmt.Sprintf("if (%s%s) { %s }", m[1], m[2], statement)
	}
	t.write("\t%s\n", statement)
	return nil
}

func (t *translation) registers(kind, name, count string) error {
	c, ok := types[kind]
	n, err := strconv.Atoi(count)
	if !ok || err != nil {
		return fmt.Errorf("registers of an unknown type")
	}
	t.write("\t%s %s0 = 0", c, name)
	for i := 1; i < n; i++ {
		t.write(", %s%d = 0", name, i)
	}
	t.write(";\n")
	return nil
}

// types maps PTX types to C types. Registers have no sign; instructions do.
var types = map[string]string{
	"pred": "int",
	"b16":  "uint16_t", "b32": "uint32_t", "b64": "uint64_t",
	"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
	"s8": "int8_t", "s16": "int16_t", "s32": "int32_t", "s64": "int64_t",
	"f32": "float", "f64": "double",
}

// operands splits a text at commas outside braces.
func operands(text string) (list []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(list, strings.TrimSpace(text[from:]))
}

var (
	register = regexp.MustCompile(`^%((p|rs|r|rd|f|fd)\d+)$`)
	special  = regexp.MustCompile(`^%(ctaid|ntid|tid)\.x$`)
	argument = regexp.MustCompile(`^\w+_param_0$`)
	address  = regexp.MustCompile(`^\[(%?\w+)(?:\+(-?\d+))?\]$`)
)

// registerOf returns the C variable of a register, which must be able to hold the type.
func registerOf(operand, kind string) (string, error) {
	m := register.FindStringSubmatch(operand)
	if m == nil {
		return "", fmt.Errorf("register %q is not understood", operand)
	}
	class := map[string]string{"p": "pred", "f": "f32", "fd": "f64"}[m[2]]
	if own := kind == "pred" || kind == "f32" || kind == "f64"; own && kind != class || !own && class != "" {
		return "", fmt.Errorf("%s is no %s", operand, kind)
	}
	return m[1], nil
}

// value returns the C expression for an operand, read as the given type.
func value(operand, kind string) (string, error) {
	c, ok := types[kind]
	if !ok {
		return "", fmt.Errorf("unknown type %q", kind)
	}
	if strings.HasPrefix(operand, "%") && !special.MatchString(operand) {
		name, err := registerOf(operand, kind)
		if err == nil && kind == "pred" {
			name += " != 0"
		}
		return "(" + c + ")(" + name + ")", err
	}
	if m := special.FindStringSubmatch(operand); m != nil {
		return "(" + c + ")" + m[1], nil
	}
	if argument.MatchString(operand) {
		return "(uint64_t)(uintptr_t)args", nil
	}
	if bits, ok := strings.CutPrefix(operand, "0f"); ok && kind == "f32" {
		return "of_f32(0x" + bits + "u)", nil
	}
	if bits, ok := strings.CutPrefix(operand, "0d"); ok && kind == "f64" {
		return "of_f64(0x" + bits + "ull)", nil
	}
	if n, ok := new(big.Int).SetString(operand, 10); ok && c != "float" && c != "double" {
		bits := new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1)) // two's complement
		return fmt.Sprintf("(%s)%#xull", c, bits), nil
	}
	return "", fmt.Errorf("operand %q is not understood", operand)
}

// place returns the expression for a number of the given type at an address in memory.
func place(operand, space, kind string, count int) (list []string, err error) {
	m := address.FindStringSubmatch(operand)
	c, ok := types[kind]
	if m == nil || !ok {
		return nil, fmt.Errorf("address %q is not understood", operand)
	}
	base, err := value(m[1], "u64")
	if err != nil {
		return nil, err
	}
	offset := m[2]
	if offset == "" {
		offset = "0"
	}
	at := fmt.Sprintf("%s + (uint64_t)%sll", base, offset)
	switch space {
	case "param":
		at = fmt.Sprintf("((%s *)(uintptr_t)(%s))", c, at)
	case "global":
		at = fmt.Sprintf("((%s *)global(%s, %d * sizeof(%s)))", c, at, count, c)
	default:
		return nil, fmt.Errorf("memory %q is not understood", space)
	}
	for i := range count {
		list = append(list, fmt.Sprintf("%s[%d]", at, i))
	}
	return list, nil
}

// instructionInC returns an instruction as a C statement.
func instructionInC(name string, operands []string) (string, error) {
	parts := strings.Split(name, ".")
	op, modifiers := parts[0], parts[1:]
	kind := modifiers
	if len(kind) > 0 {
		kind = kind[len(kind)-1:]
	}
	switch op {
	case "ret":
		return "return;", nil
	case "bra":
		return "goto " + strings.TrimPrefix(operands[0], "$") + ";", nil
	case "ld", "st":
		return access(op, modifiers, operands)
	}
	if op == "mov" && len(operands) == 2 {
		if s, ok := bits(name, operands[0], operands[1]); ok {
			return s, nil
		}
	}
	form, ok := forms[op]
	if !ok || len(kind) == 0 || len(operands) != form.operands+1 {
		return "", fmt.Errorf("instruction %s with %d operands is not understood", name, len(operands))
	}
	// The types as which operands are read and the result is written.
	as := kind[0]
	var in []string
	for i, o := range operands[1:] {
		k := as
		switch {
		case op == "selp" && i == 2:
			k = "pred"
		case (op == "shl" || op == "shr") && i == 1, op == "bfe" && i > 0:
			k = "u32"
		}
		v, err := value(o, k)
		if err != nil {
			return "", err
		}
		in = append(in, v)
	}
	result := as
	if op == "setp" {
		result = "pred"
	} else if op == "cvt" && len(modifiers) > 1 {
		result = modifiers[len(modifiers)-2]
	}
	to, err := registerOf(operands[0], result)
	if err != nil {
		return "", err
	}
	expression, err := form.expression(modifiers, in)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Sprintf("%s = %s;", to, expression), nil
}

// access translates a load or store of one, two or four numbers.
func access(op string, modifiers, operands []string) (string, error) {
	if len(modifiers) < 2 || len(operands) != 2 {
		return "", fmt.Errorf("%s.%s is not understood", op, strings.Join(modifiers, "."))
	}
	space, kind, count := modifiers[0], modifiers[len(modifiers)-1], 1
	switch strings.Join(modifiers[1:len(modifiers)-1], ".") {
	case "":
	case "v2":
		count = 2
	case "v4":
		count = 4
	default:
		return "", fmt.Errorf("%s.%s is not understood", op, strings.Join(modifiers, "."))
	}
	numbers, at := operands[0], operands[1]
	if op == "st" {
		numbers, at = at, numbers
	}
	places, err := place(at, space, kind, count)
	if err != nil {
		return "", err
	}
	numbers = strings.TrimSuffix(strings.TrimPrefix(numbers, "{"), "}")
	var statement string
	for i, n := range strings.Split(numbers, ",") {
		if i == count {
			return "", fmt.Errorf("more than %d numbers", count)
		}
		n = strings.TrimSpace(n)
		if op == "st" {
			v, err := value(n, kind)
			if err != nil {
				return "", err
			}
			statement += fmt.Sprintf("%s = %s; ", places[i], v)
			continue
		}
		to, err := registerOf(n, kind)
		if err != nil {
			return "", err
		}
		statement += fmt.Sprintf("%s = %s; ", to, places[i])
	}
	return statement, nil
}
