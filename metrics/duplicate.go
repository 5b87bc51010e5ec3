package metrics

import (
	"encoding/json"
	"strings"
)

// eventLevels is the nesting depth at which keys are fields of our structs: the event and its
// payload. encoding/json matches such keys without regard to case.
const eventLevels = 2

// An object is an object or a list of a JSON text that is being read.
type object struct {
	names map[string]bool // in the form that is compared
	isKey bool            // the next string is a key
	list  bool
}

// add adds a key, with its quotes, and reports whether the object had it already.
func (o *object) add(key []byte, fold bool) (name string, again bool) {
	name = string(key[1 : len(key)-1])
	if strings.ContainsRune(name, '\\') {
		_ = json.Unmarshal(key, &name) // the line is valid
	}
	compared := name
	if fold {
		compared = strings.ToLower(strings.ToUpper(name)) // the same folding as encoding/json's: ſ equals s
	}
	if o.names[compared] {
		return name, true
	}
	if o.names == nil {
		o.names = map[string]bool{}
	}
	o.names[compared] = true
	return name, false
}

// duplicate returns the first key that occurs twice in the same object of a valid JSON line, or "".
// encoding/json would silently use the last value or merge both.
func duplicate(line []byte) string {
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
				open[n-1].isKey = false
				if name, again := open[n-1].add(line[i:end+1], n <= eventLevels); again {
					return name
				}
			}
			i = end
		}
	}
	return ""
}
