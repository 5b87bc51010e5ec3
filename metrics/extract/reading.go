package extract

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A reading says how to convert the numbers of a column to a figure.
type reading struct {
	Column
	scale float64 // factor to the figure's unit
	per   string  // number.PerDevice or number.PerNode: multiply by the number of devices or nodes in the row
	steps bool    // the column is a rate of steps: multiply by the global batch
	each  bool    // the column is a step time: divide by it
	// stated: the user gave the unit, or the column's name states one. cells: whether the cells read
	// so far state one, "with" or "without"; "" before the first. unit: that of the first cell.
	stated      bool
	cells, unit string
	sure        bool // the user gave the unit, or the column's name says that it covers all devices
}

// tableUnits maps the figures to which columns of a table can be mapped to the units in which they
// are stored.
var tableUnits = func() map[string]string {
	all := map[string]string{"throughput": "samples/s", "end_to_end": "samples/s", "train_seconds": "s", "elapsed": "s", "epoch_seconds": "s", "accuracy": "", "rate": "requests/s"}
	for _, f := range modelFigures {
		all[f.Name] = f.Unit
	}
	for _, name := range loadFigures {
		all[name] = must(measure.Find(name)).Unit
	}
	return all
}()

// figureIn returns the name of the figure that accepts a unit, for hints; "" if none does.
func figureIn(d unit) string {
	switch {
	case d.steps && d.each:
		return stepSeconds
	case d.base == "tokens/s" && d.per == number.PerDevice:
		return tokensPerGPU
	}
	return map[string]string{"samples/s": "throughput", "tokens/s": tokensPerSecond, "requests/s": measure.RequestsPerSecond}[d.base]
}

// reading decides how to convert a column: by the unit that the user gave, or else by the
// column's name.
func (l *log) reading(ours string, c Column) (reading, error) {
	r := reading{Column: c, scale: 1}
	base, figure := tableUnits[ours]
	if !figure || c.Label {
		if c.Unit != "" {
			return r, fmt.Errorf("%s has no unit; write %s", ours, mapping(ours, c.Name, ""))
		}
		return r, nil
	}
	if c.Unit != "" {
		d, fits := fitting(unitsNamed(c.Unit), base)
		if !fits || d.steps && base == "samples/s" && !slices.Contains(stepRated, ours) {
			return r, fmt.Errorf("%s cannot be in %q; it may be in %s, for example", ours, c.Unit, strings.Join(validUnits(ours, base), ", "))
		}
		r.take(d, ours)
		r.sure, r.stated = true, true
		return r, l.batched(ours, r)
	}
	h := headingOf(c.Name)
	r.sure, r.stated = h.Total, h.Said != ""
	d, fits := fitting(h.dims, base)
	if err := cmp.Or(derived(ours, c.Name, base), misnamed(ours, c.Name, base, h)); err != nil {
		return r, err
	}
	switch {
	case h.Factor != 1 && !strings.HasSuffix(base, "/s"):
		return r, fmt.Errorf("the factor in the name of column %s is unclear; say the unit of the numbers (%s), like %s", clip(c.Name), strings.Join(validUnits(ours, base), ", "), mapping(ours, c.Name, hinted(ours, base)))
	case h.Said == "":
		r.scale = h.Factor
		return r, nil
	case fits && !(d.steps && !slices.Contains(stepRated, ours)):
		r.take(d, ours)
		return r, l.batched(ours, r)
	}
	return r, otherUnit(ours, c.Name, base, h)
}

// misnamed returns an error if a column's name says that it is another quantity than the figure,
// or that its unit is unclear.
func misnamed(ours, name, base string, h heading) error {
	d, fits := fitting(h.dims, base)
	whole := ours == "train_seconds" || ours == "elapsed"
	bare := strings.TrimSpace(brackets.ReplaceAllString(name, ""))
	switch {
	case (ours == measure.Errors || ours == measure.Timeouts) && successes.MatchString(name):
		return fmt.Errorf("column %s is a share of successes, judging by its name, and %s is its complement: add a column with 1 - %s; or, if the name is wrong, write %s", clip(name), ours, name, mapping(ours, name, "fraction"))
	case (ours == measure.Errors || ours == measure.Timeouts) && (perTime.MatchString(name) || counting.MatchString(name)):
		return fmt.Errorf("column %s is a rate or a number, judging by its name, but %s is a share of the requests: add a column with failed / all requests, or, if the name is wrong, write %s", clip(name), ours, mapping(ours, name, "fraction"))
	case base == "" && notAccuracy.MatchString(name) && ours == "accuracy":
		return fmt.Errorf("column %s is a loss or an error, judging by its name, and not an accuracy: write %s, or, if the name is wrong, %s",
			clip(name), mapping("loss", name, ""), mapping(ours, name, "fraction"))
	case whole && h.Of != "" && (h.Said == "" || fits && d.base == "s"):
		of := map[string]string{"steps": stepSeconds, "epochs": "epoch_seconds"}[h.Of]
		return fmt.Errorf("column %s is the time of one of the %s, judging by its name, but %s covers the whole training: write %s, or, if the name is wrong, %s",
			clip(name), h.Of, ours, mapping(of, name, ""), mapping(ours, name, "s"))
	case h.Said == "" && base == "s" && slices.Contains(loadFigures, ours) && bare != ours:
		return fmt.Errorf("column %s does not state its unit, and most load generators print ms: write %s, or %s (or us, or ns)", clip(name), mapping(ours, name, "ms"), mapping(ours, name, "s"))
	case h.Said != "" && fits && ours == tokensPerSecond && d.per == number.PerDevice:
		return fmt.Errorf("column %s covers one device, judging by its name: write %s, which is multiplied by the workers, or, if it covers all of them, %s",
			clip(name), mapping(tokensPerGPU, name, ""), mapping(ours, name, "tokens/s"))
	case h.Said != "" && fits && ours == tokensPerGPU && h.Total:
		return fmt.Errorf("column %s covers all devices, judging by its name: write %s, or, if it covers one of them, %s",
			clip(name), mapping(tokensPerSecond, name, ""), mapping(ours, name, "tokens/s/GPU"))
	}
	return nil
}

// otherUnit returns the error for a column whose name states a unit that the figure cannot have.
func otherUnit(ours, name, base string, h heading) error {
	valid := strings.Join(validUnits(ours, base), ", ")
	is := "in " + clip(h.Said)
	if base == "" {
		base = "a share"
	}
	instead := ""
	if list := number.ParseUnits(h.Said); len(list) > 0 && list[0].Inverse && list[0].Base == base {
		return fmt.Errorf("column %s is in %s, judging by its name, the inverse of %s: add a column with 1 / %s in %[3]s of all workers, and map it", clip(name), clip(h.Said), base, name)
	}
	if len(h.dims) > 0 {
		if other := figureIn(h.dims[0]); other != "" && other != ours {
			instead = fmt.Sprintf("write %s, or, ", mapping(other, name, ""))
		}
	}
	if h.dims == nil {
		return fmt.Errorf("column %s is %s, judging by its name, which is not a known unit; say which it is (%s), like %s", clip(name), is, valid, mapping(ours, name, hinted(ours, base)))
	}
	return fmt.Errorf("column %s is %s, judging by its name, but %s is in %s: %sif the name is wrong, give its unit (%s), like %s",
		clip(name), is, ours, base, instead, valid, mapping(ours, name, hinted(ours, base)))
}

// perTime matches the names of rates, and counting the names of numbers of things.
var (
	perTime   = regexp.MustCompile(`(?i)(?:/ ?|per[ _]?)(?:s|sec|second|min|minute|h|hour)\b|_(?:per_sec|ps)$`)
	successes = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:success\w*|succeeded|ok|availability|goodput)(?:[^a-z]|$)`)
	counting  = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:count|counts|number|num|nr|no|total)(?:[^a-z]|$)|#`)
)

// hinted returns the unit that a hint to the user suggests for a figure.
func hinted(ours, base string) string {
	if base == "s" && slices.Contains(loadFigures, ours) {
		return "ms" // as most load generators print
	}
	return cmp.Or(usual[base], usual[ours])
}

// usual maps base units to the units that hints suggest.
var usual = map[string]string{"samples/s": "samples/s", "tokens/s": "tokens/s", "requests/s": "requests/s", "s": "s", "a share": "fraction"}

// stepRated are the figures that can be computed from a rate of steps if the batch is known.
var stepRated = []string{"throughput", "end_to_end"}

// notAccuracy matches the names of values that should fall during training.
var notAccuracy = regexp.MustCompile(`(?i)(^|[^a-z])(loss|losses|nll|perplexity|ppl|err|error|errors|error_?rate|wer|cer|rmse|mse|mae|bpb|bpc|cross_?entropy)([^a-z]|$)`)

// take sets how to convert a column whose unit is d.
func (r *reading) take(d unit, ours string) {
	r.scale, r.steps, r.each = d.scale, d.steps, d.each
	if ours != tokensPerGPU && (strings.HasSuffix(d.base, "/s") || d.base == number.AnyQuantity) {
		r.per = d.per
	}
}

// batched returns an error if a column is a rate of steps and the batch is unknown.
func (l *log) batched(ours string, r reading) error {
	if r.steps && l.o.WorkerBatch == 0 {
		return fmt.Errorf("column %s counts steps: for samples/s, give the samples per worker and step with --worker-batch N; or write %s", clip(r.Name), mapping(stepSeconds, r.Name, ""))
	}
	return nil
}

// fitting returns the first of a text's possible units that has the base unit; ok is false if none has.
func fitting(dims []unit, base string) (unit, bool) {
	for _, d := range dims {
		if d.base == base || d.base == number.AnyQuantity && strings.HasSuffix(base, "/s") {
			return d, true
		}
	}
	return unit{}, false
}

// unitsNamed returns the possible meanings of a unit that the user gave, nil if it is unknown.
func unitsNamed(text string) []unit { return storedUnits(number.ParseUnits(text)) }

// validUnits returns examples of the units that a figure accepts, for messages.
func validUnits(ours, base string) []string {
	list := map[string][]string{
		"samples/s": {"samples/s", "kimg/s", "samples/s/worker", "samples/s/node"}, "tokens/s": {"tokens/s", "Mtok/s", "tokens/s/worker", "tokens/s/node"},
		"requests/s": {"requests/s", "requests/min"}, "s": {"s", "ms", "min", "h"}, "": {"%", "fraction"},
	}[base]
	if slices.Contains(stepRated, ours) {
		list = append(list, "steps/s", "ms/step")
	}
	for i, name := range list {
		list[i] = strconv.Quote(name)
	}
	return list
}

// mapping returns the command-line option that maps a column to our name, quoted for a shell.
func mapping(ours, theirs, unit string) string {
	text := ours + "=" + theirs
	if unit != "" {
		text += ":" + unit
	}
	return "--map " + shellQuoted(text)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=%+,@-]+$`)

func shellQuoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
