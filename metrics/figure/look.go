package figure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// A look is the colour and the marker of a style, each an index as for colorOf and shapeOf.
type look struct{ colour, shape int }

// look returns the look of a style in this chart.
func (c *chart) look(style int) look {
	if c == nil || style < 0 || style >= len(c.crossed) {
		return look{style, style}
	}
	return c.crossed[style]
}

// theMeasure is the key in which lines of several measures differ.
const theMeasure = "measure"

// cross gives lines that differ in two keys, such as batch and precision, a colour for each value
// of one key, that with more values, and a marker for each value of the other. The caption says so.
// The style of a trend is its index.
func (c *chart) cross(list []trend) {
	values := map[string][]scaling.Value{} // distinct ones, by key
	keys := crossable(list)
	for _, key := range keys {
		for _, t := range list {
			if v := t.value(key); !slices.Contains(values[key], v) {
				values[key] = append(values[key], v)
			}
		}
		slices.SortFunc(values[key], scaling.Value.Compare)
	}
	for i, a := range keys {
		for _, b := range keys[i+1:] {
			colour, marker := a, b
			if len(values[b]) >= len(values[a]) && b != theMeasure {
				colour, marker = b, a
			}
			looks := make([]look, len(list))
			for i, t := range list {
				looks[i] = look{slices.Index(values[colour], t.value(colour)), slices.Index(values[marker], t.value(marker))}
			}
			if len(values[colour]) > len(palette) || len(values[marker]) > len(shapes) || max(len(values[a]), len(values[b])) >= len(list) || repeats(looks) {
				continue
			}
			c.crossed = looks
			c.caption = append(c.caption, fmt.Sprintf("Colour: %s; marker: %s.", shown(last(colour)), shown(last(marker))))
			return
		}
	}
}

func repeats(looks []look) bool {
	looks = slices.SortedFunc(slices.Values(looks), func(a, b look) int {
		return cmp.Or(cmp.Compare(a.colour, b.colour), cmp.Compare(a.shape, b.shape))
	})
	return len(slices.Compact(looks)) < len(looks)
}

// crossable returns the keys in which trends differ; the measure is the last.
func crossable(list []trend) []string {
	curves := make([]scaling.Curve, len(list))
	for i, t := range list {
		curves[i] = t.curve
	}
	keys := append(scaling.Keys(curves), "framework", theMeasure)
	return slices.DeleteFunc(keys, func(key string) bool {
		return !slices.ContainsFunc(list, func(t trend) bool { return t.value(key) != list[0].value(key) })
	})
}

// value returns the trend's value of a key.
func (t *trend) value(key string) scaling.Value {
	if key == theMeasure {
		return scaling.ValueOf(t.measure.Name)
	}
	return parameter(t.curve, key)
}

// mostCaption is the number of lines of a caption in a picture. The command prints the whole text.
const mostCaption = 4

// captionLines wraps a caption, and cuts it after mostCaption lines.
func captionLines(sentences []string, width vg.Length) []string {
	style := textStyle(captionSize)
	lines := wrap(strings.Join(sentences, " "), style, width)
	if len(lines) <= mostCaption {
		return lines
	}
	const rest = " … (plot prints the rest)"
	end := wrap(lines[mostCaption-1], style, width-style.Width(rest))
	return append(lines[:mostCaption-1:mostCaption-1], end[0]+rest)
}
