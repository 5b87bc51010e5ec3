package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What all rows share is printed once, and only for people; what was not measured in
// any row is not mentioned.
func TestFold(t *testing.T) {
	columns := func() []Column {
		return append(Keys("point", "nodes", "partition", "exclusive"), Column{Key: "batch", Unit: "samples"})
	}
	two := &Table{Columns: columns(), Notes: []string{"first"}}
	two.Add("a", 1, nil, true, 32)
	two.Add("b", 1, nil, true, 64)
	one := &Table{Columns: columns()}
	one.Add("a", 1, nil, true, 32)
	for _, tt := range []struct {
		table  *Table
		format string
		want   string
	}{
		{two, FormatTable, "point  batch (samples)\na                   32\nb                   64\nfirst\nall 2 points: nodes 1, exclusive yes\n"},
		{two, FormatCSV, "point,nodes,partition,exclusive,batch\na,1,,true,32\nb,1,,true,64\n"},
		{one, FormatTable, "point  nodes  partition  exclusive  batch (samples)\na          1  –          yes                     32\n"},
	} {
		if tt.format == FormatTable {
			tt.table.Fold("point", "nodes", "partition", "exclusive", "batch")
		}
		var b strings.Builder
		if err := tt.table.Write(&b, tt.format, Screen{}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, b.String()); d != "" {
			t.Errorf("%s:\n%s", tt.format, d)
		}
	}
}
