package figure

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// An inline figure is well-formed, has no style attribute, and shows the values of each dot and
// median under the pointer.
func TestInline(t *testing.T) {
	f := studies["small"].draw(t, "throughput", Options{})
	text, err := f.Inline()
	if err != nil {
		t.Fatal(err)
	}
	marks := 0
	for _, m := range f.Marks() {
		if m.Kind == Median || m.Kind == Dot {
			marks++
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	circles, circle := 0, false
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "title" && circle { // not the figure's own
			circles++
		}
		circle = e.Name.Local == "circle"
		for _, a := range e.Attr {
			if a.Name.Local == "style" {
				t.Fatalf("%s has a style", e.Name.Local)
			}
		}
	}
	if circles != marks || marks == 0 {
		t.Errorf("%d places with values, want %d", circles, marks)
	}
}

// The text of a mark: series, values with the axes' units, and the interval of its own series.
func TestDescribed(t *testing.T) {
	workers := workersAxis()
	minutes := newAxis("time (min)")
	minutes.unit = 60
	c := &chart{x: workers, y: minutes}
	median := Mark{Kind: Median, Series: "a <b>", Points: []XY{{1024, 90}}}
	c.add(Mark{Kind: Bar, Series: "a <b>", Points: []XY{{1024, 60}, {1024, 120}}})
	c.add(Mark{Kind: Bar, Series: "other", Points: []XY{{1024, 6}, {1024, 12}}, style: 1})
	c.add(median)
	// 90 s are 1.5 minutes; 60 s to 120 s are 1 to 2.
	if got, want := c.described(median), "a <b>; workers: 1024; time (min): 1.50; interval: 1.00 to 2.00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
