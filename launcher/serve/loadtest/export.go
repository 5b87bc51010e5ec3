package loadtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// export makes a load write its requests to its files. end closes them.
func (s *Service) export(l Load, o *Options) (end func() error, err error) {
	if s.Export == nil || l.probes {
		return func() error { return nil }, nil
	}
	lines, err := s.Export(l.file(), "jsonl")
	if err != nil {
		return nil, err
	}
	rows, err := s.Export(l.file(), "parquet")
	if err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	w := bufio.NewWriterSize(lines, 1<<20)
	encoder, table := json.NewEncoder(w), newTable(rows)
	var failed error
	o.Each = func(out Outcome) {
		if failed == nil {
			failed = errors.Join(encoder.Encode(out), table.add(out))
		}
	}
	return func() error {
		return errors.Join(failed, w.Flush(), table.end(), lines.Close(), rows.Close())
	}, nil
}

// A table writes requests as the rows of a Parquet file.
type table struct {
	writer *parquet.GenericWriter[Outcome]
	rows   []Outcome // not yet written
}

// rowGroup is the number of rows that a Parquet file keeps in memory.
const rowGroup = 1 << 16

func newTable(out io.Writer) *table {
	return &table{writer: parquet.NewGenericWriter[Outcome](out, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))}
}

func (t *table) add(out Outcome) error {
	if t.rows = append(t.rows, out); len(t.rows) < 1024 {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	_, err := t.writer.Write(t.rows)
	t.rows = t.rows[:0]
	return err
}

// end writes the rest of the file.
func (t *table) end() error { return errors.Join(t.flush(), t.writer.Close()) }
