package rundir

import (
	"encoding/json"
	"io/fs"
)

// WriteJSON writes a value as indented JSON, as WriteFile does.
func WriteJSON(path string, v any, perm fs.FileMode) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(text, '\n'), perm)
}
