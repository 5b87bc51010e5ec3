package extract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scalebench/scalebench/metrics"
)

// tensorboard reads the scalars of a TensorBoard event file. The file consists of TFRecords
// (length, masked CRC-32C of the length, data, masked CRC-32C of the data), each with an Event
// protocol buffer. Times are counted from the file's first event, which the writer adds when it
// opens the file.
var tensorboard = Extractor{
	Name:  "tensorboard",
	Kind:  "train",
	Apart: true,
	Reads: "the scalars of a TensorBoard event file",
	read:  readTensorBoard,
}

// scalar is one value of a tag at a step.
type scalar struct {
	tag  string
	step int64
	wall float64 // seconds since the Unix epoch
	v    Value
}

func readTensorBoard(l *log, r io.Reader) {
	data := must(l.wholeFile(r))
	var scalars []scalar
	began := 0.0
	for n, at := 1, 0; at < len(data); n++ {
		record, next, err := tfRecord(data, at)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			l.note("the file ends within record %d, which was left out", n)
			break
		}
		if err != nil {
			fail(fmt.Errorf("%s: record %d, from byte %d on: %w", l.o.File, n, at, err))
		}
		wall, some, err := tfEvent(record)
		if err != nil {
			fail(fmt.Errorf("%s: record %d, from byte %d on: %w", l.o.File, n, at, err))
		}
		if began == 0 {
			began = wall
		}
		for _, s := range some {
			if s.wall < began {
				fail(fmt.Errorf("%s: record %d, from byte %d on: its time is before that of the first record", l.o.File, n, at))
			}
			scalars = append(scalars, s)
		}
		at = next
	}
	l.scalars(scalars, began)
}

// scalars adds an evaluation for each value of the tag with the accuracy, and a figure for the
// last value of every other tag.
func (l *log) scalars(list []scalar, began float64) {
	if len(list) == 0 {
		return
	}
	byTag := map[string][]scalar{}
	for _, s := range list {
		byTag[s.tag] = append(byTag[s.tag], s)
	}
	accuracy := l.tag("accuracy", byTag, append([]string{"eval/accuracy", "epoch_accuracy", "epoch_sparse_categorical_accuracy"}, validation...)...)
	if _, said := l.o.Columns["accuracy"]; !said && filepath.Base(filepath.Dir(l.o.File)) == "train" && perEpoch(accuracy) {
		accuracy = "" // Keras uses the same tags in train/ and validation/
	}
	rate := l.tag("throughput", byTag)
	l.res.StartUnix = began
	l.note("times count from the event file's first record, by the writer's wall clock")
	l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		values := byTag[tag]
		last := values[len(values)-1]
		switch tag {
		case accuracy:
			l.tagAccuracy(tag, values, began)
		case rate:
			l.tagRate(tag, values, began)
		default:
			l.add(metrics.Event{Time: last.wall - began, Figure: &metrics.Figure{Name: tag, Value: last.v.Number, At: map[string]any{"step": float64(last.step)},
				Note: fmt.Sprintf("the last of %d values of the tag", len(values))}}, 1, last.v)
		}
	}
}

// tagAccuracy adds an evaluation for each value of a tag. began is the time of the file's first
// event.
func (l *log) tagAccuracy(tag string, values []scalar, began float64) {
	for _, s := range values {
		e := metrics.Event{Time: s.wall - began, Evaluation: &metrics.Evaluation{Step: int(s.step)}}
		if perEpoch(tag) { // with Keras, the step is the epoch
			e.Evaluation.Step, e.Evaluation.Epoch = 0, l.epoch(int(min(s.step, math.MaxInt32)), 0)
		}
		if err := l.namedAccuracy(e, s.v, tag); err != nil {
			fail(fmt.Errorf("%w; tag %s at step %d", err, tag, s.step))
		}
	}
	l.note("accuracy is from the tag %s", tag)
}

// tagRate adds the run's throughput, the median of the tag's values.
func (l *log) tagRate(tag string, values []scalar, began float64) {
	var rates []Value
	var counted []ownCount
	batch := l.o.globalBatch()
	for _, s := range values {
		if s.v.Number < metrics.MinRate {
			fail(fmt.Errorf("%s: tag %s at step %d: a throughput of %g samples/s; want more than 0", l.o.File, tag, s.step, s.v.Number))
		}
		rates = append(rates, s.v)
		if batch > 0 {
			counted = append(counted, ownCount{float64(s.step) * batch, s.wall - began})
		}
	}
	l.rate("median", 1, rates, "the median of the values of the tag "+tag, ownOf(counted, 1), "the batch of all ranks times the steps, over the time of the records")
}

// perEpoch reports whether the steps of a tag are epochs, which Keras does for tags that begin
// with "epoch".
func perEpoch(tag string) bool { return len(tag) > 5 && strings.HasPrefix(tag, "epoch") }

// tag returns the tag for our key: the one that the user mapped to it, else the first of usual
// that the file has, else "".
func (l *log) tag(ours string, tags map[string][]scalar, usual ...string) string {
	if theirs, ok := l.o.Columns[ours]; ok {
		if _, ok := tags[theirs]; !ok {
			fail(fmt.Errorf("%s: no tag %q; the file has %s", l.o.File, theirs, listed(slices.Sorted(maps.Keys(tags)))))
		}
		return theirs
	}
	for _, t := range usual {
		if _, ok := tags[t]; ok {
			return t
		}
	}
	return ""
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the CRC-32C of data in the masked form that TFRecords store.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// tfRecord returns the data of the record at an offset, and the offset of the next record. The
// error is io.ErrUnexpectedEOF if the file ends within the record.
func tfRecord(data []byte, at int) (record []byte, next int, err error) {
	rest := data[at:]
	if len(rest) < 12 {
		return nil, 0, io.ErrUnexpectedEOF
	}
	if masked(rest[:8]) != binary.LittleEndian.Uint32(rest[8:]) {
		return nil, 0, errors.New("the checksum of its length is wrong: the file is damaged, or not a TensorBoard event file")
	}
	n := binary.LittleEndian.Uint64(rest)
	if n > uint64(len(rest)) || uint64(len(rest)) < n+16 {
		return nil, 0, io.ErrUnexpectedEOF
	}
	record = rest[12 : 12+n]
	if masked(record) != binary.LittleEndian.Uint32(rest[12+n:]) {
		return nil, 0, errors.New("its checksum is wrong: the file is damaged")
	}
	return record, at + int(n) + 16, nil
}

// tfEvent returns the time and the scalars of a serialised tensorflow.Event. Its field numbers
// are: wall_time 1, step 2, summary 5.
func tfEvent(data []byte) (wall float64, list []scalar, err error) {
	var step int64
	var summary []byte
	err = fields(data, func(f field) error {
		switch {
		case f.number == 1 && f.wire == protowire.Fixed64Type:
			wall = math.Float64frombits(f.bits)
		case f.number == 2 && f.wire == protowire.VarintType:
			step = int64(f.bits)
		case f.number == 5 && f.wire == protowire.BytesType:
			summary = f.data
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, nil, err
	}
	if err := metrics.CheckUnix(wall); err != nil {
		return 0, nil, fmt.Errorf("its wall time: %w", err)
	}
	// Field numbers of Summary: value 1; of its values: tag 1, simple_value 2, tensor 8.
	err = fields(summary, func(f field) error {
		if f.number != 1 || f.wire != protowire.BytesType {
			return nil
		}
		s, has := scalar{step: step, wall: wall}, false
		err := fields(f.data, func(f field) error {
			switch {
			case f.number == 1 && f.wire == protowire.BytesType:
				s.tag = string(f.data)
			case f.number == 2 && f.wire == protowire.Fixed32Type:
				s.v.Number, has = widen(math.Float32frombits(uint32(f.bits))), true
			case f.number == 8 && f.wire == protowire.BytesType:
				x, ok, err := tfScalar(f.data)
				if ok {
					s.v.Number, has = x, true
				}
				return err
			}
			return nil
		})
		if err == nil && has && finite(s.v.Number) && s.tag != "" && step >= 0 {
			list = append(list, s)
		}
		return err
	})
	return wall, list, err
}

// widen converts a float32 to the float64 with the same shortest decimal form, so that 0.1 stays
// 0.1.
func widen(x float32) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	if err != nil {
		return float64(x) // NaN or infinite; the caller drops it
	}
	return y
}

// tfScalar returns the number in a serialised TensorProto without dimensions; ok is false for
// other tensors. Field numbers: dtype 1 (1 is float, 2 is double), tensor_shape 2 with dim 2,
// tensor_content 4, float_val 5, double_val 6.
func tfScalar(data []byte) (x float64, ok bool, err error) {
	var dtype uint64
	var content []byte
	err = fields(data, func(f field) error {
		switch {
		case f.number == 1 && f.wire == protowire.VarintType:
			dtype = f.bits
		case f.number == 2 && len(f.data) > 0:
			content = nil
			dtype = 0 // has dimensions
			return errNotScalar
		case f.wire == protowire.BytesType && (f.number == 4 || f.number == 5 || f.number == 6):
			content = f.data
		case f.number == 5 && f.wire == protowire.Fixed32Type:
			content = binary.LittleEndian.AppendUint32(nil, uint32(f.bits))
		case f.number == 6 && f.wire == protowire.Fixed64Type:
			content = binary.LittleEndian.AppendUint64(nil, f.bits)
		}
		return nil
	})
	switch {
	case errors.Is(err, errNotScalar):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case dtype == 1 && len(content) == 4:
		return widen(math.Float32frombits(binary.LittleEndian.Uint32(content))), true, nil
	case dtype == 2 && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true, nil
	}
	return 0, false, nil
}

var errNotScalar = errors.New("no scalar")

// errProto reports a damaged protocol buffer.
var errProto = errors.New("a damaged protocol buffer")

// field is a field of a protocol buffer: the bits of a number, or bytes.
type field struct {
	number protowire.Number
	wire   protowire.Type
	bits   uint64
	data   []byte
}

// fields calls f with each field of a serialised protocol buffer in order.
func fields(data []byte, f func(field) error) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errProto
		}
		data = data[n:]
		one := field{number: number, wire: wire}
		switch wire {
		case protowire.VarintType:
			one.bits, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			one.bits, n = protowire.ConsumeFixed64(data)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(data)
			one.bits = uint64(bits)
		case protowire.BytesType:
			one.data, n = protowire.ConsumeBytes(data)
		default: // groups, which are obsolete
			return errProto
		}
		if n < 0 {
			return errProto
		}
		data = data[n:]
		if err := f(one); err != nil {
			return err
		}
	}
	return nil
}
