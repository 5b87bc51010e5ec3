package target

import (
	"fmt"
	"maps"
	"slices"
)

// A Set is the samples of a model's inputs and what is known of its outputs, by their
// names.
type SampleSet struct {
	Inputs, Outputs map[string]SampleArray
}

// most bounds what the files of all inputs hold, because every request is made before
// the first is sent, and what those of all outputs hold.
const most = 256 << 20

// An Error says what is wrong with the files of a key of the study.
type SampleError struct {
	Key string // its TOML path
	err error
}

func (e *SampleError) Error() string { return e.Key + ": " + e.err.Error() }

func (e *SampleError) Unwrap() error { return e.err }

// What is wrong, without the key.
func (e *SampleError) What() string { return e.err.Error() }

// Keys of the study that name the files.
const (
	inputsKey  = "workload.inputs"
	outputsKey = "workload.outputs"
)

// CheckSamples says what is wrong with files, by input and output, of which requests of these
// sizes are to be made.
func CheckSamples(inputs, outputs map[string]string, batches []int) error {
	_, err := load(inputs, outputs, batches, false)
	return err
}

// ReadSamples reads them.
func ReadSamples(inputs, outputs map[string]string, batches []int) (*SampleSet, error) {
	return load(inputs, outputs, batches, true)
}

func load(inputs, outputs map[string]string, batches []int, numbers bool) (*SampleSet, error) {
	s := &SampleSet{Inputs: map[string]SampleArray{}, Outputs: map[string]SampleArray{}}
	var first SampleArray
	for _, part := range []struct {
		key   string
		files map[string]string
		into  map[string]SampleArray
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
