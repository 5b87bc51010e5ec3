package samples

import (
	"fmt"
	"maps"
	"slices"
)

// A Set holds the samples of a model's inputs and the expected outputs, by name.
type Set struct {
	Inputs, Outputs map[string]Array
}

// most bounds the size of all input files together, since all requests are built before the first is sent, and
// of all output files together.
const most = 256 << 20

// An Error reports a problem with the files of one key of the study.
type Error struct {
	Key string // its TOML path
	err error
}

func (e *Error) Error() string { return e.Key + ": " + e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// What returns the message without the key.
func (e *Error) What() string { return e.err.Error() }

// Keys of the study that name the files.
const (
	inputsKey  = "workload.inputs"
	outputsKey = "workload.outputs"
)

// Check returns an error if the files, by name of the input or output, cannot make requests of the given batch
// sizes.
func Check(inputs, outputs map[string]string, batches []int) error {
	_, err := load(inputs, outputs, batches, false)
	return err
}

// Read reads the files that Check checks.
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
				err = fmt.Errorf("%s holds %d samples, %s %d; the first dimension counts samples and must be equal in all files", a.File, a.Samples(), first.File, first.Samples())
			default:
				if total += a.size(); total > most {
					err = fmt.Errorf("%s makes the files %d MiB in total, and at most %d MiB are read; use fewer samples", a.File, total>>20, most>>20)
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
