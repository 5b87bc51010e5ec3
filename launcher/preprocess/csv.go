package preprocess

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// blockRows is the number of rows that pass each stage together. A single row takes about a
// microsecond, which is too short to be timed.
const blockRows = 1024

// csvBlock is a block of rows, stored by column. The first line of a file has the names of the
// columns. If the first value of a column is a number, the whole column contains numbers, and an
// empty cell is 0. Other columns contain categories. Each category is replaced by a number, in the
// order in which the thread first meets the categories.
type csvBlock struct {
	numbers []bool
	cells   [][]string
	values  [][]float32
	lookup  []map[string]float32
	rows    int
}

// fromCSV reads blocks of rows and calls do once for each block. A row is a sample, so fromCSV
// itself counts the rows.
func fromCSV(t *thread, f reading, _ int64, do func([]byte) error) error {
	t.enter(Unpack)
	lines := csv.NewReader(t.buffer(f))
	lines.ReuseRecord = true
	head, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	b := &t.table
	if len(b.cells) != len(head) {
		*b = csvBlock{cells: make([][]string, len(head)), values: make([][]float32, len(head)), lookup: make([]map[string]float32, len(head))}
	}
	b.numbers = nil
	for {
		t.enter(Unpack)
		if err := b.read(lines); err != nil || b.rows == 0 {
			return err
		}
		if b.numbers == nil {
			for _, cells := range b.cells {
				_, err := strconv.ParseFloat(cells[0], 32)
				b.numbers = append(b.numbers, err == nil)
			}
		}
		t.result.Samples += int64(b.rows) - 1 // do counts one sample
		if err := do(nil); err != nil {
			return err
		}
	}
}

// read reads the next rows, at most blockRows; none at the end of the file.
func (b *csvBlock) read(lines *csv.Reader) error {
	for c := range b.cells {
		b.cells[c] = b.cells[c][:0]
	}
	for b.rows = 0; b.rows < blockRows; b.rows++ {
		row, err := lines.Read() // a row with more or fewer cells than the first is an error
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for c, cell := range row {
			b.cells[c] = append(b.cells[c], cell)
		}
	}
	return nil
}

// prepareCSV converts a block of rows to float32. Numbers are scaled to mean 0 and deviation 1
// within the block; categories become their numbers.
func prepareCSV(t *thread, _ []byte) error {
	b := &t.table
	t.enter(Cast)
	if err := b.cast(); err != nil {
		return err
	}
	t.enter(LookUp)
	b.lookUp()
	t.enter(Normalise)
	for c, values := range b.values {
		if b.numbers[c] {
			standardise(values)
		}
	}
	t.enter(Pack)
	t.floats = t.floats[:0]
	for row := range b.rows {
		for _, values := range b.values {
			t.floats = append(t.floats, values[row])
		}
	}
	t.pack()
	return nil
}

// standardise scales values to a mean of 0 and, unless all are equal, a standard deviation of 1.
func standardise(values []float32) {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += float64(v)
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	deviation := math.Sqrt(squares / float64(len(values)))
	if deviation == 0 {
		deviation = 1
	}
	for i, v := range values {
		values[i] = float32((float64(v) - mean) / deviation)
	}
}

// generateCSV writes rows like those of Criteo's click logs: a label, 13 counts, some of which are
// missing, and 26 categories, a few of which are frequent.
func generateCSV(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	random := rand.New(rand.NewPCG(seed, 0))
	frequent := rand.NewZipf(random, 1.2, 1, 1<<20)
	head := "label"
	for i := range 13 {
		head += fmt.Sprintf(",count%d", i+1)
	}
	for i := range 26 {
		head += fmt.Sprintf(",category%d", i+1)
	}
	written := map[io.Writer]bool{}
	return inFiles(n, 100_000, "part-%05d.csv", create, func(w io.Writer, i int) error {
		out := bufio.NewWriter(w)
		if !written[w] {
			written[w] = true
			fmt.Fprintln(out, head)
		}
		fmt.Fprint(out, random.IntN(2))
		for c := range 13 {
			if c > 0 && random.IntN(10) == 0 {
				fmt.Fprint(out, ",")
				continue
			}
			fmt.Fprintf(out, ",%d", int(random.ExpFloat64()*100))
		}
		for range 26 {
			fmt.Fprintf(out, ",c%07x", frequent.Uint64()) // the letter c keeps it from being a number
		}
		fmt.Fprintln(out)
		return out.Flush()
	})
}

// cast parses the columns of numbers. An empty cell is 0.
func (b *csvBlock) cast() error {
	for c, cells := range b.cells {
		b.values[c] = b.values[c][:0]
		if !b.numbers[c] {
			continue
		}
		for _, cell := range cells {
			v := 0.0
			if cell != "" {
				var err error
				if v, err = strconv.ParseFloat(cell, 32); err != nil {
					return fmt.Errorf("column %d: %q is no number, as the first row's cell is", c+1, cell)
				}
			}
			b.values[c] = append(b.values[c], float32(v))
		}
	}
	return nil
}

// lookUp numbers the categories of the other columns.
func (b *csvBlock) lookUp() {
	for c, cells := range b.cells {
		if b.numbers[c] {
			continue
		}
		if b.lookup[c] == nil {
			b.lookup[c] = map[string]float32{}
		}
		for _, cell := range cells {
			v, ok := b.lookup[c][cell]
			if !ok {
				v = float32(len(b.lookup[c]))
				b.lookup[c][strings.Clone(cell)] = v // clone, since the memory of the row is reused
			}
			b.values[c] = append(b.values[c], v)
		}
	}
}
