package metrics

import (
	"encoding/json"
	"strings"
)

// eventLevels is the nesting depth at which keys are fields of our structs: the event and its
// payload. encoding/json matches such keys without regard to case.
const eventLevels = 2

// duplicate returns the first key that occurs twice in the same object of a valid JSON line, or "".
// encoding/json would silently use the last value or merge both.
func duplicate(line []byte) string {
	type object struct {
		names map[string]bool // in the form that is compared
		isKey bool            // the next string is a key
		list  bool
	}
	var open []object
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{':
			open = append(open, object{isKey: true})
		case '[':
			open = append(open, object{list: true})
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			top := &open[len(open)-1]
			top.isKey = !top.list
		case '"':
			end := i + 1
			for line[end] != '"' {
				if line[end] == '\\' {
					end++
				}
				end++
			}
			if n := len(open); n > 0 && open[n-1].isKey {
				top := &open[n-1]
				top.isKey = false
				name := string(line[i+1 : end])
				if strings.ContainsRune(name, '\\') {
					_ = json.Unmarshal(line[i:end+1], &name) // the line is valid
				}
				compared := name
				if n <= eventLevels {
					compared = strings.ToLower(strings.ToUpper(name)) // the same folding as encoding/json's: ſ equals s
				}
				if top.names[compared] {
					return name
				}
				if top.names == nil {
					top.names = map[string]bool{}
				}
				top.names[compared] = true
			}
			i = end
		}
	}
	return ""
}
