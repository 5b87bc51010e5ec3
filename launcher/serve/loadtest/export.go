package loadtest

import (
	"bufio"
	"encoding/json"
	"errors"
)

// export makes a load write its requests to its file. end closes it.
func (s *Service) export(l Load, o *Options) (end func() error, err error) {
	if s.Export == nil || l.probes {
		return func() error { return nil }, nil
	}
	file, err := s.Export(l.file())
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	encoder := json.NewEncoder(w)
	var failed error
	o.Each = func(out Outcome) {
		if failed == nil {
			failed = encoder.Encode(out)
		}
	}
	return func() error { return errors.Join(failed, w.Flush(), file.Close()) }, nil
}
