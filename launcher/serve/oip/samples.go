package oip

import (
	"fmt"
	"maps"
	"slices"
)

// A SampleSet holds the samples of a model's inputs and the expected outputs, by name.
type SampleSet struct {
	Inputs, Outputs map[string]SampleFile
}

// most bounds the size of all input files together, since all requests are built before the first is sent, and
// of all output files together.
const most = 256 << 20

// A SampleError reports a problem with the files of one key of the study.
type SampleError struct {
	Key string // its TOML path
	err error
}

func (e *SampleError) Error() string { return e.Key + ": " + e.err.Error() }

func (e *SampleError) Unwrap() error { return e.err }

// Message returns the message without the key.
func (e *SampleError) Message() string { return e.err.Error() }

// Keys of the study that name the files.
const (
	inputsKey  = "workload.inputs"
	outputsKey = "workload.outputs"
)

// CheckSamples returns an error if the files, by name of the input or output, cannot make requests of the given batch
// sizes.
func CheckSamples(inputs, outputs map[string]string, batches []int) error {
	_, err := load(inputs, outputs, batches, false)
	return err
}

// ReadSamples reads the files that CheckSamples checks.
func ReadSamples(inputs, outputs map[string]string, batches []int) (*SampleSet, error) {
	return load(inputs, outputs, batches, true)
}

func load(inputs, outputs map[string]string, batches []int, numbers bool) (*SampleSet, error) {
	s := &SampleSet{Inputs: map[string]SampleFile{}, Outputs: map[string]SampleFile{}}
	var first SampleFile
	for _, part := range []struct {
		key   string
		files map[string]string
		into  map[string]SampleFile
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
				return nil, &SampleError{part.key, fmt.Errorf("%s: %w", name, err)}
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
		return nil, &SampleError{inputsKey, fmt.Errorf("%s holds %d samples, too few for a request of workload.batch = %d", first.File, first.Samples(), n)}
	}
	return s, nil
}
