package extract

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// These functions write protocol buffers and TFRecords, from their specifications.
func protoBytes(number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data)
}

func protoVarint(number protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), x)
}

func protoFloat(number protowire.Number, x float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), math.Float32bits(x))
}

func protoDouble(number protowire.Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), math.Float64bits(x))
}

func tfRecordOf(event []byte) []byte {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	b := append(head, binary.LittleEndian.AppendUint32(nil, masked(head))...)
	b = append(b, event...)
	return binary.LittleEndian.AppendUint32(b, masked(event))
}

// tfValue returns a record with the value of a tag: an Event with wall_time 1, step 2 and a
// summary 5, whose value 1 has a tag 1 and a simple_value 2.
func tfValue(wall float64, step int, tag string, x float32) []byte {
	value := append(protoBytes(1, []byte(tag)), protoFloat(2, x)...)
	event := append(protoDouble(1, wall), protoVarint(2, uint64(step))...)
	return tfRecordOf(append(event, protoBytes(5, protoBytes(1, value))...))
}

// A TensorProto has dtype 1, tensor_shape 2, tensor_content 4, float_val 5 and double_val 6.
func TestScalarTensors(t *testing.T) {
	float, double := protoVarint(1, 1), protoVarint(1, 2)
	f32, f64 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.1)), binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.3))
	for name, c := range map[string]struct {
		fields [][]byte
		want   float64 // 0: not a scalar
	}{
		"a float's bytes":              {[][]byte{float, protoBytes(4, f32)}, 0.1},
		"a double's bytes":             {[][]byte{double, protoBytes(4, f64)}, 0.3},
		"a float":                      {[][]byte{float, protoFloat(5, 0.1)}, 0.1},
		"a packed float":               {[][]byte{float, protoBytes(5, f32)}, 0.1},
		"a double":                     {[][]byte{double, protoDouble(6, 0.3)}, 0.3},
		"a packed double":              {[][]byte{double, protoBytes(6, f64)}, 0.3},
		"an empty shape":               {[][]byte{float, protoBytes(2, nil), protoFloat(5, 0.1)}, 0.1},
		"a vector":                     {[][]byte{float, protoBytes(2, protoBytes(2, protoVarint(1, 1))), protoFloat(5, 0.1)}, 0},
		"another type":                 {[][]byte{protoVarint(1, 3), protoBytes(4, f32)}, 0},
		"no type":                      {[][]byte{protoBytes(4, f32)}, 0},
		"a double's bytes for a float": {[][]byte{float, protoBytes(4, f64)}, 0},
		"a float's bytes for a double": {[][]byte{double, protoBytes(4, f32)}, 0},
		"nothing":                      {nil, 0},
		"an integer as float_val":      {[][]byte{float, protoVarint(5, 7)}, 0},
		"a double as float_val":        {[][]byte{double, protoDouble(5, 0.3)}, 0},
		"a float as double_val":        {[][]byte{float, protoFloat(6, 0.1)}, 0},
		"a name":                       {[][]byte{float, protoBytes(7, f32)}, 0},
		"a type as a float":            {[][]byte{protoFloat(1, 0.1), protoBytes(4, f32)}, 0},
	} {
		x, ok, err := tfScalar(bytes.Join(c.fields, nil))
		if err != nil || ok != (c.want != 0) || ok && x != c.want {
			t.Errorf("%s: %v, %v, %v; want %v", name, x, ok, err, c.want)
		}
	}
	if _, _, err := tfScalar([]byte{0x0d, 1}); err == nil {
		t.Error("a field that is cut off")
	}
	if _, _, err := tfScalar(protowire.AppendTag(nil, 9, protowire.StartGroupType)); err == nil {
		t.Error("a group")
	}
	if _, _, err := tfScalar([]byte{0x80}); err == nil {
		t.Error("a tag that is cut off")
	}
}

func TestEventsOfTensorBoard(t *testing.T) {
	const began = 1.7e9
	version := tfRecordOf(append(protoDouble(1, began), protoBytes(3, []byte("brain.Event:2"))...))
	tensor := func(x float32) []byte {
		value := append(protoBytes(1, []byte("loss")), protoBytes(8, append(protoVarint(1, 1), protoFloat(5, x)...))...)
		return tfRecordOf(bytes.Join([][]byte{protoDouble(1, began+3), protoVarint(2, 7), protoBytes(5, protoBytes(1, value))}, nil))
	}
	nan := float32(math.NaN())
	damaged := tfValue(began+1, 1, "loss", 1)
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name    string
		records [][]byte
		o       Options
		want    []string // parts of the findings; the number of findings is theirs and one of the train event
		note    string
		why     string // part of the error
	}{
		{"the last of a tag", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), tfValue(began+4, 2, "loss", 0.25)}, Options{}, []string{"loss 0.25  step 2"}, "the last of 2 values of the tag", ""},
		{"a tensor", [][]byte{version, tensor(0.1)}, Options{}, []string{"loss 0.1  step 7"}, "", ""},
		{"accuracies", [][]byte{version, tfValue(began+2, 1, "eval/accuracy", 0.5), tfValue(began+4, 2, "eval/accuracy", 0.75)}, Options{}, []string{"accuracy 0.5 at 2 epoch 0 step 1", "accuracy 0.75 at 4 epoch 0 step 2"}, "accuracy is from the tag eval/accuracy", ""},
		{"accuracies of epochs, counted from 0", [][]byte{version, tfValue(began+2, 0, "epoch_accuracy", 0.5), tfValue(began+4, 1, "epoch_accuracy", 0.75)}, Options{}, []string{"accuracy 0.5 at 2 epoch 1", "accuracy 0.75 at 4 epoch 2"}, "", ""},
		{"a tag that is only epoch", [][]byte{version, tfValue(began+2, 3, "epoch", 0.5)}, Options{Columns: map[string]string{"accuracy": "epoch"}, AccuracyUnit: ""}, []string{"accuracy 0.5 at 2 epoch 0 step 3"}, "", ""},
		{"training's accuracies", [][]byte{version, tfValue(began+2, 0, "epoch_accuracy", 0.5)}, Options{File: "run/train/events"}, []string{"epoch_accuracy 0.5  step 0"}, "", ""},
		{"training's, by steps", [][]byte{version, tfValue(began+2, 4, "eval/accuracy", 0.5)}, Options{File: "run/train/events"}, []string{"accuracy 0.5 at 2 epoch 0 step 4"}, "", ""},
		{"training's, as the user says", [][]byte{version, tfValue(began+2, 0, "epoch_accuracy", 0.5)}, Options{File: "run/train/events", Columns: map[string]string{"accuracy": "epoch_accuracy"}}, []string{"accuracy 0.5 at 2 epoch 1"}, "", ""},
		// 10 steps of 4·8 samples in 5 s are 64/s, which 16 is a quarter of, and 60 nearly.
		{"a rate that agrees", [][]byte{version, tfValue(began+5, 10, "speed", 60), tfValue(began+10, 20, "speed", 62), tfValue(began+15, 30, "speed", 70)}, Options{Workers: 4, WorkerBatch: 8, Columns: map[string]string{"throughput": "speed"}},
			[]string{"throughput 62 samples/s median of 3"}, "the median of the values of the tag speed; the log's own samples over time agree", ""},
		{"one worker's rate", [][]byte{version, tfValue(began+5, 10, "speed", 15), tfValue(began+10, 20, "speed", 16), tfValue(began+15, 30, "speed", 17)}, Options{Workers: 4, WorkerBatch: 8, Columns: map[string]string{"throughput": "speed"}},
			[]string{"throughput 64 samples/s median of 3"}, "one worker's", ""},
		{"a rate of unknown batches", [][]byte{version, tfValue(began+5, 10, "speed", 15)}, Options{Workers: 4, Columns: map[string]string{"throughput": "speed"}}, []string{"throughput 15 samples/s"}, "nothing to check it against", ""},
		{"a rate of 0", [][]byte{version, tfValue(began+5, 10, "speed", 0)}, Options{Columns: map[string]string{"throughput": "speed"}}, nil, "", "log: tag speed at step 10: a throughput of 0 samples/s; want more than 0"},
		{"no such tag", [][]byte{version, tfValue(began+5, 10, "a", 1), tfValue(began+5, 10, "b", 1)}, Options{Columns: map[string]string{"throughput": "speed"}}, nil, "", `log: no tag "speed"; the file has "a", "b"`},
		{"an accuracy of 2", [][]byte{version, tfValue(began+5, 10, "eval/accuracy", 2)}, Options{}, nil, "", "tag eval/accuracy at step 10"},
		{"not a number", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), tfValue(began+3, 2, "loss", nan)}, Options{}, []string{"loss 0.5  step 1"}, "the last of 1 value of the tag", ""},
		{"no tag, or a step before the first", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), tfValue(began+3, 2, "", 9), tfValue(began+4, -1, "loss", 8)}, Options{}, []string{"loss 0.5  step 1"}, "the last of 1 value", ""},
		{"cut off", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), tfValue(began+3, 2, "loss", 0.25)[:20]}, Options{}, []string{"loss 0.5  step 1"}, "the file ends within record 3, which was left out", ""},
		{"cut off in its length", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), tfValue(began+3, 2, "loss", 0.25)[:11]}, Options{}, []string{"loss 0.5  step 1"}, "the file ends within record 3", ""},
		{"cut off by a byte", [][]byte{version, tfValue(began+2, 1, "loss", 0.5), damaged[:len(damaged)-1]}, Options{}, []string{"loss 0.5  step 1"}, "the file ends within record 3", ""},
		{"damaged", [][]byte{version, damaged}, Options{}, nil, "", "log: record 2, from byte 40 on: its checksum is wrong: the file is damaged"},
		{"damaged within", [][]byte{version, tfRecordOf([]byte{0x0d})}, Options{}, nil, "", "log: record 2, from byte 40 on: a damaged protocol buffer"},
		{"a negative time", [][]byte{version, tfRecordOf(protoDouble(1, -1))}, Options{}, nil, "", "log: record 2, from byte 40 on: its wall time"},
		{"an earlier time", [][]byte{version, tfValue(began-1, 1, "loss", 1)}, Options{}, nil, "", "log: record 2, from byte 40 on: its time is before that of the first record"},
		{"the same time", [][]byte{version, tfValue(began, 1, "loss", 1)}, Options{}, []string{"loss 1  step 1"}, "", ""},
		{"no value", [][]byte{version}, Options{}, nil, "", "nothing found"},
	} {
		o := c.o
		if o.File == "" {
			o.File = "log"
		}
		r, err := tensorboard.Extract(bytes.NewReader(bytes.Join(c.records, nil)), o)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", c.name, err, c.why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var lines []string
		notes := strings.Join(r.Notes, "\n")
		for f := range r.Findings() {
			lines = append(lines, strings.TrimPrefix(written(f), "0 "))
			if f.Event.Figure != nil {
				notes += "\n" + f.Event.Figure.Note
			}
		}
		all := strings.Join(lines, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) || len(lines) != len(c.want)+1 {
				t.Errorf("%s: no %q, or not alone, in\n%s", c.name, want, all)
			}
		}
		if !strings.Contains(notes, c.note) || r.StartUnix != began {
			t.Errorf("%s: no %q in %q; start %f", c.name, c.note, notes, r.StartUnix)
		}
	}
}
