package figure

import (
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// styleAttribute matches the style attribute of an SVG element. Text from users cannot contain it,
// since quotes are escaped there.
var styleAttribute = regexp.MustCompile(`\s+style="([^"]*)"`)

// Inline returns the figure as an HTML element for a page whose content security policy forbids
// style attributes: each property is an attribute of the element. Over a median, a run or an end,
// the browser shows the values.
func (f *Drawing) Inline() (string, error) {
	_, drawing, err := f.svg()
	if err != nil {
		return "", err
	}
	drawing = styleAttribute.ReplaceAllStringFunc(drawing, func(attribute string) string {
		var b strings.Builder
		for property := range strings.SplitSeq(styleAttribute.FindStringSubmatch(attribute)[1], ";") {
			if name, value, ok := strings.Cut(property, ":"); ok {
				fmt.Fprintf(&b, ` %s="%s"`, strings.TrimSpace(name), strings.TrimSpace(value))
			}
		}
		return b.String()
	})
	body, ok := strings.CutSuffix(strings.TrimSpace(drawing), "</svg>")
	if !ok {
		return "", errors.New("the drawing does not end with </svg>")
	}
	return fmt.Sprintf(`<svg width="%.5gpt"%s%s</svg>`, f.size.X.Points(), body, f.hovers()), nil
}

// hovers returns an invisible circle over each mark that shows values, with the values as its title.
func (f *Drawing) hovers() string {
	var b strings.Builder
	for _, p := range f.panels {
		for _, m := range p.chart.marks {
			switch m.Kind {
			case Median, Dot, End, Missed:
			default:
				continue
			}
			at := p.layout.place(&p.chart, m, m.Points[0]).Add(p.at)
			fmt.Fprintf(&b, "<circle cx=\"%.5g\" cy=\"%.5g\" r=\"5\" fill=\"none\" pointer-events=\"all\"><title>%s</title></circle>\n",
				at.X.Points(), (f.size.Y - at.Y).Points(), html.EscapeString(p.chart.described(m)))
		}
	}
	return b.String()
}

// described returns the values of a mark, for example "native; workers: 8; throughput (samples/s):
// 12.3k; interval: 12.1k to 12.5k".
func (c *chart) described(m Mark) string {
	var parts []string
	if m.Series != "" {
		parts = append(parts, shown(m.Series))
	}
	at := m.Points[0]
	parts = append(parts, c.x.value(at.X), c.y.value(at.Y))
	if m.Kind == Median {
		for _, bar := range c.marks {
			if bar.Kind == Bar && bar.Series == m.Series && bar.style == m.style && bar.Points[0].X == at.X && bar.Points[1].X == at.X {
				parts = append(parts, "interval: "+c.y.number(bar.Points[0].Y)+" to "+c.y.number(bar.Points[1].Y))
			}
		}
	}
	if m.Kind == Missed {
		parts = append(parts, "target missed")
	}
	return strings.Join(parts, "; ")
}

// value returns the axis's title with a value on it.
func (a *axis) value(x float64) string {
	if i := int(x); a.names != nil && i >= 0 && i < len(a.names) {
		return a.title + ": " + a.names[i]
	}
	return a.title + ": " + a.number(x)
}

// number formats a value in the axis's unit.
func (a *axis) number(x float64) string {
	switch {
	case a.bytes:
		return number.Bytes(x)
	case a.at != nil || a.whole:
		return number.Exact(x)
	}
	return number.Significant(x / a.unit)
}
