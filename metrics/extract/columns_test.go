package extract

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// Spreadsheets write UTF-16 as "Unicode text".
func TestTableInUTF16(t *testing.T) {
	for name, order := range map[string][2]int{"little-endian": {0, 8}, "big-endian": {8, 0}} {
		var file strings.Builder
		for _, unit := range utf16.Encode([]rune("\ufeffworkers,throughput\n1,100\n")) {
			file.WriteByte(byte(unit >> order[0]))
			file.WriteByte(byte(unit >> order[1]))
		}
		for _, err := range Runs(strings.NewReader(file.String()), Options{File: "t.csv"}, nil) {
			if err == nil || !strings.Contains(err.Error(), "t.csv: encoded in UTF-16; save it in UTF-8") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}
