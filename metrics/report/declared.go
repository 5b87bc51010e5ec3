package report

import (
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/table"
)

// DeclaredMeasures returns a table of the measures that -m and --measure accept, sorted
// by name.
func DeclaredMeasures() *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "measure"}, {Key: "unit"}, {Key: "better"}, {Key: "title", Head: "what"}}}
	for _, name := range measure.Names() {
		m, err := measure.Find(name)
		if err != nil {
			continue
		}
		better := any(m.Better.String())
		if m.Better == measure.Neither {
			better = nil
		}
		t.Add(m.Name, table.NonZero(m.Unit), better, m.Title)
	}
	t.Notes = []string{"The time to a target is to_0.75 or to_loss_2. Figures that a program reports have the names in its [[extract]]."}
	return t
}
