package export

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

var tensorBoardFormat = Format{
	Name:   "tensorboard",
	About:  "TensorBoard's event files: scalars over steps, a folder for each run; 32-bit floats",
	Suffix: "-tensorboard",
	folder: writeTensorBoard,
}

func writeTensorBoard(ctx context.Context, s *Source, dir string) error {
	return s.each(ctx, func(r *store.RunFacts) error {
		_, name, _ := strings.Cut(r.Run, "/")
		file := fmt.Sprintf("events.out.tfevents.%010d.scalebench", r.Created.Unix())
		return create(filepath.Join(dir, safeName(name, word)), file, func(w io.Writer) error {
			b := board{w: w, began: r.Created}
			b.event(0, r.Created, 3, []byte("brain.Event:2")) // the file's version
			b.text("run", aboutRun(r))
			for _, v := range r.Results {
				if v.Value != nil {
					tag := "run/" + titled(v.Measure, v.Unit)
					if v.At != nil {
						tag += "/" + placed(v.At)
					}
					b.scalar(tag, 0, r.Created, *v.Value)
				}
			}
			err := s.eachEvaluation(ctx, r, func(at time.Time, e *metrics.Evaluation) {
				b.scalar("evaluation/accuracy", e.Step, at, e.Accuracy)
				if e.Loss != nil {
					b.scalar("evaluation/loss", e.Step, at, *e.Loss)
				}
			})
			if err != nil || !r.Stepped {
				return errors.Join(err, b.err)
			}
			return s.DB.EachCommonStep(ctx, r.Run, r.Restart, b.step)
		})
	})
}

// aboutRun describes a run in Markdown, which TensorBoard shows.
func aboutRun(r *store.RunFacts) string {
	var b strings.Builder
	row := func(key, value string) {
		value = strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;").Replace(text(value))
		fmt.Fprintf(&b, "| %s | %s |\n", key, value)
	}
	b.WriteString("| | |\n|---|---|\n")
	row("run", r.Run)
	row("status", string(r.Status))
	row("detail", r.Detail)
	row("workers", fmt.Sprint(r.Workers))
	for _, key := range slices.Sorted(maps.Keys(r.Parameters)) {
		row(key, plain(r.Parameters[key]))
	}
	return b.String()
}

// A board writes one event file: TFRecords of protocol buffers, of which only these fields are
// needed. The numbers are those of TensorFlow's event.proto, summary.proto and tensor.proto.
type board struct {
	w     io.Writer
	began time.Time
	err   error // the first one
}

// event writes an Event with one field of bytes besides its time and step.
func (b *board) event(step int, at time.Time, field protowire.Number, content []byte) {
	var e []byte
	e = protowire.AppendTag(e, 1, protowire.Fixed64Type) // wall_time
	e = protowire.AppendFixed64(e, math.Float64bits(metrics.Unix(at)))
	e = protowire.AppendTag(e, 2, protowire.VarintType) // step
	e = protowire.AppendVarint(e, uint64(step))
	b.record(appendBytes(e, field, content))
}

// scalar writes a summary with one number.
func (b *board) scalar(tag string, step int, at time.Time, value float64) {
	v := appendBytes(nil, 1, []byte(text(tag)))
	v = protowire.AppendTag(v, 2, protowire.Fixed32Type) // simple_value
	v = protowire.AppendFixed32(v, math.Float32bits(float32(value)))
	b.event(step, at, 5, appendBytes(nil, 1, v))
}

// text writes a summary with a text in Markdown.
func (b *board) text(tag, content string) {
	const typeString = 7
	tensor := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), typeString) // dtype
	tensor = appendBytes(tensor, 2, nil)                                                            // tensor_shape: a scalar
	tensor = appendBytes(tensor, 8, []byte(content))                                                // string_val
	plugin := appendBytes(nil, 1, appendBytes(nil, 1, []byte("text")))                              // plugin_data.plugin_name
	v := appendBytes(nil, 1, []byte(tag))
	v = appendBytes(v, 9, plugin) // metadata
	v = appendBytes(v, 8, tensor)
	b.event(0, b.began, 5, appendBytes(nil, 1, v))
}

func appendBytes(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record writes a TFRecord: length, its checksum, data, its checksum.
func (b *board) record(data []byte) {
	masked := func(p []byte) uint32 {
		c := crc32.Checksum(p, castagnoli)
		return (c>>15 | c<<17) + 0xa282ead8
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	out = binary.LittleEndian.AppendUint32(out, masked(out))
	out = append(out, data...)
	out = binary.LittleEndian.AppendUint32(out, masked(data))
	if b.err == nil {
		_, b.err = b.w.Write(out)
	}
}

// step writes the scalars of a step over all ranks.
func (b *board) step(s store.RankStep) error {
	for _, part := range []struct {
		tag     string
		seconds *float64
	}{
		{"step/duration of the slowest rank (s)", &s.Duration}, {"step/data wait, mean over ranks (s)", s.DataWait},
		{"step/compute, mean over ranks (s)", s.Compute}, {"step/communication, mean over ranks (s)", s.Communication},
	} {
		if part.seconds != nil {
			b.scalar(part.tag, s.Step, b.began, *part.seconds)
		}
	}
	return b.err
}
