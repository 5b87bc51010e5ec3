package target

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// An output is a tensor of an answer.
type output struct {
	oip.Port
	numbers []float64 // values of floating-point types
	exact   []string  // elements of all other types, as text
}

// newOutput parses a tensor from its JSON, or from raw if that is not nil. The memory counts against room.
func newOutput(tensor oip.Tensor, raw []byte, room *share) (output, error) {
	o := output{Port: oip.Port{Name: tensor.Name, Datatype: tensor.Datatype, Shape: tensor.Shape}}
	n, ok := oip.Elements(tensor.Shape)
	if !ok {
		return o, fmt.Errorf("its shape is %v, which is not valid", tensor.Shape)
	}
	if size, fixed := oip.Size(tensor.Datatype); raw != nil && fixed && len(raw)%size == 0 && len(raw)/size != n {
		return o, fmt.Errorf("its shape %v has %d elements, but %d came", tensor.Shape, n, len(raw)/size)
	}
	if err := room.take(o.cost(n), fmt.Sprintf("%s %v", tensor.Datatype, tensor.Shape)); err != nil {
		return o, err
	}
	var err error
	switch {
	case raw != nil && tensor.Data != nil && !bytes.Equal(tensor.Data, []byte("null")):
		return o, errors.New("it has data both in the JSON and after it")
	case raw != nil:
		err = o.fromBytes(raw, n)
	default:
		err = o.fromJSON(tensor.Data, n)
	}
	if err != nil {
		return o, err
	}
	if got := len(o.numbers) + len(o.exact); got != n {
		return o, fmt.Errorf("its shape %v has %d elements, but %d came", tensor.Shape, n, got)
	}
	for i, v := range o.numbers {
		if v-v != 0 {
			return o, fmt.Errorf("element %d is %g", i, v)
		}
	}
	return o, nil
}

func (o *output) floating() bool { return strings.Contains(o.Datatype, "FP") || o.Datatype == "BF16" }

// cost returns how many bytes n elements use while they are compared.
func (o *output) cost(n int) int64 {
	if o.floating() {
		return int64(n) * 8
	}
	return int64(n) * 24 // a string header and its text
}

// fromBytes parses n elements from raw bytes.
func (o *output) fromBytes(raw []byte, n int) error {
	if o.Datatype == "BYTES" {
		for len(raw) > 0 {
			if len(o.exact) == n {
				return fmt.Errorf("its shape %v has %d elements, but more came", o.Shape, n)
			}
			if len(raw) < 4 || uint64(len(raw)-4) < uint64(binary.LittleEndian.Uint32(raw)) {
				return errors.New("it ends within an element")
			}
			end := 4 + int(binary.LittleEndian.Uint32(raw))
			o.exact, raw = append(o.exact, string(raw[4:end])), raw[end:]
		}
		return nil
	}
	size, ok := oip.Size(o.Datatype)
	if !ok {
		return fmt.Errorf("its datatype %q is not one of the Open Inference Protocol", o.Datatype)
	}
	if len(raw)%size != 0 {
		return fmt.Errorf("%d bytes are not a whole number of %s elements", len(raw), o.Datatype)
	}
	for element := range slices.Chunk(raw, size) {
		switch o.Datatype {
		case "FP64":
			o.numbers = append(o.numbers, math.Float64frombits(binary.LittleEndian.Uint64(element)))
		case "FP32":
			o.numbers = append(o.numbers, float64(math.Float32frombits(binary.LittleEndian.Uint32(element))))
		case "BF16":
			o.numbers = append(o.numbers, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(element))<<16)))
		case "FP16":
			o.numbers = append(o.numbers, fromHalf(binary.LittleEndian.Uint16(element)))
		default:
			o.exact = append(o.exact, inJSON(o.Datatype, element))
		}
	}
	return nil
}

// inJSON returns an element of an integer, boolean or string type as JSON text.
func inJSON(datatype string, element []byte) string {
	var wide [8]byte
	copy(wide[:], element)
	bits := binary.LittleEndian.Uint64(wide[:])
	switch {
	case datatype == "BOOL":
		return strconv.FormatBool(bits != 0)
	case strings.HasPrefix(datatype, "U"):
		return strconv.FormatUint(bits, 10)
	}
	unused := 64 - 8*len(element)
	return strconv.FormatInt(int64(bits)<<unused>>unused, 10)
}

// fromHalf converts a half-precision number.
func fromHalf(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits>>10&0x1f), float64(bits&0x3ff)
	if bits&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		return sign * math.Inf(1)
	case exponent == 31:
		return math.NaN()
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// fromJSON parses n elements from a flat or nested list, token by token: decoding the whole list would use many
// times the memory of its text.
func (o *output) fromJSON(data json.RawMessage, n int) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for depth, begun := 0, false; !begun || depth > 0; begun = true {
		token, err := d.Token()
		if err != nil {
			return errors.New("it has no data")
		}
		if token == json.Delim('[') {
			depth++
			continue
		}
		if !begun {
			return errors.New("its data are not a list")
		}
		if token == json.Delim(']') {
			depth--
			continue
		}
		if len(o.numbers)+len(o.exact) == n {
			return fmt.Errorf("its shape %v has %d elements, but more came", o.Shape, n)
		}
		if err := o.element(token); err != nil {
			return err
		}
	}
	return nil
}

// element parses one JSON element and appends it to the output.
func (o *output) element(token json.Token) error {
	switch v := token.(type) {
	case json.Number:
		if !o.floating() {
			o.exact = append(o.exact, v.String())
			return nil
		}
		x, err := v.Float64()
		if err != nil {
			return err
		}
		o.numbers = append(o.numbers, x)
	case string, bool:
		if o.floating() {
			return fmt.Errorf("%.40q is not a number", fmt.Sprint(v))
		}
		o.exact = append(o.exact, fmt.Sprint(v))
	default:
		return fmt.Errorf("%.40q is not an element of a tensor", fmt.Sprint(v))
	}
	return nil
}

// tolerances holds how far numbers of a type may differ, relative to the largest number of their tensor.
// Servers that batch requests add numbers in another order than for a single request.
var tolerances = map[string]float64{"FP64": 1e-3, "FP32": 1e-3, "FP16": 3e-2, "BF16": 1e-1}

func different(format string, args ...any) error { return differentError(fmt.Sprintf(format, args...)) }

// compare returns an error if an answer differs from the known one. tolerance 0 means the default of the
// datatype.
func compare(got, known []output, tolerance float64) error {
	if len(got) != len(known) {
		return different("%d outputs; the known answer has %d", len(got), len(known))
	}
	for i, want := range known {
		o := got[i]
		if o.Name != want.Name || o.Datatype != want.Datatype || !slices.Equal(o.Shape, want.Shape) {
			return different("output %d is %s %s %v; in the known answer it is %s %s %v", i+1, o.Name, o.Datatype, o.Shape, want.Name, want.Datatype, want.Shape)
		}
		if err := compareNumbers(o, want, tolerance, "the known answer"); err != nil {
			return err
		}
	}
	return nil
}

// compareNumbers compares the elements of an output with as many known ones.
func compareNumbers(o, want output, tolerance float64, where string) error {
	largest := 0.0
	for _, v := range want.numbers {
		largest = max(largest, math.Abs(v))
	}
	if tolerance == 0 {
		tolerance = tolerances[o.Datatype]
	}
	for j, v := range want.numbers {
		if !(math.Abs(o.numbers[j]-v) <= tolerance*largest) {
			return different("element %d of output %s is %g; in %s it is %g", j, o.Name, o.numbers[j], where, v)
		}
	}
	for j, v := range want.exact {
		if o.exact[j] != v {
			return different("element %d of output %s is %.40q; in %s it is %.40q", j, o.Name, o.exact[j], where, v)
		}
	}
	return nil
}
