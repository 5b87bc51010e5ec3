package metrics

import (
	"encoding/json"
	"strings"
)

// eventLevels are the objects whose members are fields of ours: the event and
// its payload. encoding/json takes their names in any case.
const eventLevels = 2

// duplicate is the first name that stands twice in one object of a line that is
// valid JSON; "" if none does. encoding/json would take the last of the two, or
// merge them: which of them was meant cannot be known.
func duplicate(line []byte) string {
	type object struct {
		names map[string]bool // as they are compared
		isKey bool            // the next string is a name
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
					compared = strings.ToLower(strings.ToUpper(name)) // as json folds: ſ is an s
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
