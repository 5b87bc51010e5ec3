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
	"github.com/scalebench/scalebench/metrics/number"
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
		var wall float64
		var some []scalar
		if err == nil {
			wall, some, err = tfEvent(record)
		}
		if began == 0 {
			began = wall
		}
		if err == nil && len(some) > 0 && wall < began {
			err = errors.New("its time is before that of the first record")
		}
		if err != nil {
			l.fail(0, "record %d, from byte %d on: %w", n, at, err)
		}
		scalars, at = append(scalars, some...), next
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
				Note: fmt.Sprintf("the last of %s of the tag", number.Count(len(values), "value"))}}, 1, last.v)
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
		if err := try(func() { l.namedAccuracy(e, s.v, tag) }); err != nil {
			fail("%w; tag %s at step %d", err, tag, s.step)
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
			l.fail(0, "tag %s at step %d: a throughput of %g samples/s; want more than 0", tag, s.step, s.v.Number)
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
			l.fail(0, "no tag %q; the file has %s", theirs, listed(slices.Sorted(maps.Keys(tags))))
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
// are: wall_time 1, step 2, summary 5. Those of Summary: value 1; of its values: tag 1,
// simple_value 2, tensor 8.
func tfEvent(data []byte) (wall float64, list []scalar, err error) {
	event, err := parseMessage(data)
	if err != nil {
		return 0, nil, err
	}
	wall, _ = float(event.last(1, protowire.Fixed64Type))
	if err := metrics.CheckUnix(wall); err != nil {
		return 0, nil, fmt.Errorf("its wall time: %w", err)
	}
	step, _ := protowire.ConsumeVarint(event.last(2, protowire.VarintType))
	summary, err := parseMessage(event.last(5, protowire.BytesType))
	for _, f := range summary {
		if f.number != 1 || f.wire != protowire.BytesType {
			continue
		}
		value, err := parseMessage(f.data)
		if err != nil {
			return 0, nil, err
		}
		x, has := float(value.last(2, protowire.Fixed32Type))
		if tensor := value.last(8, protowire.BytesType); tensor != nil {
			if x, has, err = tfScalar(tensor); err != nil {
				return 0, nil, err
			}
		}
		if tag := string(value.last(1, protowire.BytesType)); has && finite(x) && tag != "" && int64(step) >= 0 {
			list = append(list, scalar{tag, int64(step), wall, Value{Number: x}})
		}
	}
	return wall, list, err
}

// tfScalar returns the number in a serialised TensorProto without dimensions; ok is false for
// other tensors. Field numbers: dtype 1 (1 is float, 2 is double), tensor_shape 2 with dim 2,
// tensor_content 4, float_val 5, double_val 6.
func tfScalar(data []byte) (x float64, ok bool, err error) {
	tensor, err := parseMessage(data)
	if err != nil || len(tensor.last(2, protowire.BytesType)) > 0 {
		return 0, false, err
	}
	content := tensor.last(4, protowire.BytesType)
	single := slices.Concat(content, tensor.last(5, protowire.BytesType), tensor.last(5, protowire.Fixed32Type))
	double := slices.Concat(content, tensor.last(6, protowire.BytesType), tensor.last(6, protowire.Fixed64Type))
	switch dtype, _ := protowire.ConsumeVarint(tensor.last(1, protowire.VarintType)); {
	case dtype == 1 && len(single) == 4:
		x, ok = float(single)
	case dtype == 2 && len(double) == 8:
		x, ok = float(double)
	}
	return x, ok, nil
}

// float returns the number in the bytes of a float32 or a float64; ok is false for other lengths.
func float(data []byte) (x float64, ok bool) {
	switch len(data) {
	case 4:
		return widen(math.Float32frombits(binary.LittleEndian.Uint32(data))), true
	case 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(data)), true
	}
	return 0, false
}

// widen converts a float32 to the float64 with the same shortest decimal form, so that 0.1 stays
// 0.1.
func widen(x float32) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return y
}

// A message holds the fields of a protocol buffer in order.
type message []field

// field is a field of a protocol buffer; data is its value, without the length of bytes.
type field struct {
	number protowire.Number
	wire   protowire.Type
	data   []byte
}

// last returns the last value of a field, which takes precedence; nil without values.
func (m message) last(number protowire.Number, wire protowire.Type) (data []byte) {
	for _, f := range m {
		if f.number == number && f.wire == wire {
			data = f.data
		}
	}
	return data
}

func parseMessage(data []byte) (m message, err error) {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 || wire == protowire.StartGroupType || wire == protowire.EndGroupType { // groups are obsolete
			return nil, errors.New("a damaged protocol buffer")
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, wire, data); n < 0 {
			return nil, errors.New("a damaged protocol buffer")
		}
		value := data[:n]
		if wire == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(data)
		}
		m, data = append(m, field{number, wire, value}), data[n:]
	}
	return m, nil
}
