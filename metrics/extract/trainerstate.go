package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// hfTrainerState reads trainer_state.json of Hugging Face's Trainer. Its
// train_samples_per_second is the samples of all epochs over the whole run time,
// warm-up, evaluations and checkpoints included.
var hfTrainerState = Extractor{
	Name:  "hf-trainer-state",
	Reads: "JSON with log_history: eval_accuracy, train_samples_per_second",
	read:  readTrainerState,
}

func readTrainerState(l *log, r io.Reader) error {
	doc, err := l.json(r)
	if err != nil {
		return err
	}
	var state struct {
		History *[]map[string]json.RawMessage `json:"log_history"`
	}
	if err := json.Unmarshal(doc.data, &state); err != nil {
		return fmt.Errorf("%s: no state of a Trainer: %w", l.o.File, err)
	}
	if state.History == nil {
		return nil
	}
	accuracy := "eval_accuracy"
	if name, ok := l.o.Columns["accuracy"]; ok {
		accuracy = name
	}
	at, found := doc.find("log_history", 0), false
	for _, entry := range *state.History {
		// The entry's own braces bound where its keys are looked for.
		number := func(key string) (v Value, ok bool, err error) {
			raw, has := entry[key]
			if !has || string(raw) == "null" {
				return v, false, nil
			}
			line := doc.line(doc.find(key, at))
			if raw[0] == '"' {
				return v, false, l.errorAt(line, "%s is a text", key)
			}
			v, err = l.parse(line, string(raw))
			return v, err == nil, err
		}
		step, _, err := number("step")
		if err != nil {
			return err
		}
		epoch, _, err := number("epoch")
		if err != nil {
			return err
		}
		if epoch.Number < 0 || epoch.Number > 1e9 || step.Number < 0 || step.Number > 1e12 {
			return l.errorAt(max(epoch.Line, step.Line), "epoch %g, step %g: no counts", epoch.Number, step.Number)
		}
		if v, ok, err := number(accuracy); err != nil {
			return err
		} else if ok {
			e := &metrics.Evaluation{Epoch: int(math.Ceil(epoch.Number)), Step: int(step.Number)}
			if s, ok, err := number("eval_runtime"); err != nil {
				return err
			} else if ok && s.Number > 0 {
				e.Seconds = s.Number
			}
			if err := l.accuracy(metrics.Event{Evaluation: e}, 1, v); err != nil {
				return err
			}
		}
		if v, ok, err := number("eval_loss"); err != nil {
			return err
		} else if ok {
			l.figure("eval_loss", "", v, "").At = map[string]any{"epoch": epoch.Number}
		}
		for _, f := range []struct{ key, name, unit, note string }{
			{"train_runtime", "train_seconds", "s", "the Trainer's whole run time, evaluations and checkpoints included"},
			{"train_samples_per_second", "end_to_end", "samples/s", "the samples of all epochs over the Trainer's whole run time"},
			{"train_samples_per_second", "throughput", "samples/s", "over the Trainer's whole run time: warm-up, evaluations and checkpoints included"},
		} {
			v, ok, err := number(f.key)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if v.Number <= 0 {
				return l.errorAt(v.Line, "%s is %g", f.key, v.Number)
			}
			if f.name == "train_seconds" && found {
				return l.errorAt(v.Line, "a second train_runtime. One file is one run")
			}
			found = true
			l.figure(f.name, f.unit, v, f.note)
		}
		at = doc.after(at)
	}
	return nil
}

// document is a JSON file whose keys can be found by line.
type document struct{ data []byte }

// json reads a whole JSON file; one that was cut off is not valid.
func (l *log) json(r io.Reader) (*document, error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return nil, err
	}
	var any json.RawMessage
	if err := json.Unmarshal(data, &any); err != nil {
		d := &document{data}
		offset := len(data)
		if s, ok := err.(*json.SyntaxError); ok {
			offset = int(s.Offset)
		}
		return nil, l.errorAt(d.line(offset), "not JSON: %w", err)
	}
	return &document{data}, nil
}

// line is the line that an offset lies in.
func (d *document) line(offset int) int {
	offset = min(max(offset, 0), len(d.data))
	return bytes.Count(d.data[:offset], []byte{'\n'}) + 1
}

// find is where a key stands behind an offset.
func (d *document) find(key string, from int) int {
	quoted := fmt.Sprintf("%q", key)
	if i := strings.Index(string(d.data[from:]), quoted); i >= 0 {
		return from + i
	}
	return from
}

// after is the end of the object that begins behind an offset.
func (d *document) after(from int) int {
	i := bytes.IndexByte(d.data[from:], '{')
	if i < 0 {
		return from
	}
	dec := json.NewDecoder(bytes.NewReader(d.data[from+i:]))
	var any json.RawMessage
	if dec.Decode(&any) != nil {
		return from
	}
	return from + i + int(dec.InputOffset())
}
