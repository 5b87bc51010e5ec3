package samples

import (
	"fmt"
	"maps"
	"slices"
)

// A Set is the samples of a model's inputs and what is known of its outputs, by their
// names.
type Set struct {
	Inputs, Outputs map[string]Array
}

// most bounds what the files of all inputs hold, because every request is made before
// the first is sent, and what those of all outputs hold.
const most = 256 << 20

// An Error says what is wrong with the files of a key of the study.
type Error struct {
	Key string // its TOML path
	err error
}

func (e *Error) Error() string { return e.Key + ": " + e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// What is wrong, without the key.
func (e *Error) What() string { return e.err.Error() }

// Keys of the study that name the files.
const (
	inputsKey  = "workload.inputs"
	outputsKey = "workload.outputs"
)

// Check says what is wrong with files, by input and output, of which requests of these
// sizes are to be made.
func Check(inputs, outputs map[string]string, batches []int) error {
	_, err := load(inputs, outputs, batches, false)
	return err
}

// Read reads them.
func Read(inputs, outputs map[string]string, batches []int) (*Set, error) {
	return load(inputs, outputs, batches, true)
}

func load(inputs, outputs map[string]string, batches []int, numbers bool) (*Set, error) {
	s := &Set{Inputs: map[string]Array{}, Outputs: map[string]Array{}}
	var first Array
	for _, part := range []struct {
		key   string
		files map[string]string
		into  map[string]Array
	}{{inputsKey, inputs, s.Inputs}, {outputsKey, outputs, s.Outputs}} {
		total := 0
		for _, name := range slices.Sorted(maps.Keys(part.files)) {
			a, err := open(part.files[name], false)
			switch {
			case err != nil:
			case first.Shape != nil && a.Samples() != first.Samples():
				err = fmt.Errorf("%s holds %d samples, %s %d; the first size of each array counts samples, and is to be the same", a.File, a.Samples(), first.File, first.Samples())
			default:
				if total += a.size(); total > most {
					err = fmt.Errorf("%s brings the files to %d MiB, and at most %d MiB are read; take fewer samples", a.File, total>>20, most>>20)
				}
			}
			if err == nil && numbers {
				a, err = open(a.File, true)
			}
			if err != nil {
				return nil, &Error{part.key, fmt.Errorf("%s: %w", name, err)}
			}
			if part.into[name] = a; first.Shape == nil {
				first = a
			}
		}
	}
	if first.Shape == nil {
		return s, nil
	}
	if n := slices.Max(batches); n > first.Samples() {
		return nil, &Error{inputsKey, fmt.Errorf("%s holds %d samples, too few for a request of workload.batch = %d", first.File, first.Samples(), n)}
	}
	return s, nil
}
