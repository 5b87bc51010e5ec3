package workspace

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/store"
)

// importedFormats lists all formats that import reads.
func importedFormats() []string { return append([]string{"csv"}, extract.Names()...) }

// importSeeds returns valid logs and tables by format.
func importSeeds(t testing.TB) map[string][][]byte {
	t.Helper()
	seeds := map[string][][]byte{"csv": {
		[]byte("gpus,img_s,seconds,top1,ep\n1,100,60,0.5,1\n1,102,120,0.6,2\n2,195,32,0.71,1\n"),
		[]byte("gpus;img_s;seconds;top1;ep\n4;1e3;;NA;\n4;1e3;;NA;\n"),
	}}
	logs := filepath.Join("..", "..", "metrics", "extract", "testdata")
	err := filepath.WalkDir(logs, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == "fuzz" {
				return filepath.SkipDir
			}
			return err
		}
		for _, format := range extract.Names() {
			if in, _ := filepath.Rel(logs, path); strings.HasPrefix(in, format) {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				seeds[format] = append(seeds[format], data)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seeds["nccl-tests-json"] = append(seeds["nccl-tests-json"], []byte(`{"devices": [{}, {}], "results": [{"size": 8, "out_of_place": {"time": 10.5, "alg_bw": 1.5, "bus_bw": 1.5, "nwrong": 0}}]}`))
	return seeds
}

// For any file, import stores all of its runs or none. Stored values are numbers, no time is negative, and
// importing the file again changes nothing.
func FuzzImport(f *testing.F) {
	formats := importedFormats()
	seeds := importSeeds(f)
	for i, format := range formats {
		if len(seeds[format]) == 0 {
			f.Errorf("no seed of %s", format)
		}
		for _, data := range seeds[format] {
			f.Add(uint8(i), false, data)
			f.Add(uint8(i), true, data)
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, epochs bool, data []byte) {
		dir := t.TempDir()
		file, path := filepath.Join(dir, "log"), filepath.Join(dir, "db")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o := ImportOptions{LogInfo: LogInfo{From: formats[int(format)%len(formats)]}, say: func(string) {}, hide: redact.Key(nil).Value}
		sets := map[string]any{"study": "s", "workload.targets": []any{0.5}}
		if o.From == "csv" {
			o.Maps = []string{"workers=gpus", "throughput=img_s", "accuracy=top1"}
			if epochs {
				o.Maps = []string{"workers=gpus", "epoch=ep", "elapsed=seconds:ms", "accuracy=top1:%", "loss=img_s"}
			}
		} else if epochs {
			o.Workers, o.Batch = 4, 32
		} else {
			sets["workers"] = int64(2)
		}
		if e, err := extract.Find(o.From); err == nil && e.Kind == "serve" && epochs {
			o.At = []string{"threads=4", "batch=1"}
		}
		db, err := store.Open(path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		count := func() (read int, changed int, err error) {
			runs := func(yield func(store.Imported, error) bool) {
				for r, err := range o.each([]string{file}, sets) {
					if !yield(r.Imported, err) {
						return
					}
				}
			}
			err = db.Import(t.Context(), runs, func(r store.Report) {
				if read++; r.Changed {
					changed++
				}
			})
			return read, changed, err
		}
		read, changed, err := count()
		want := read
		if err != nil {
			var usage *Error
			if want = 0; !errors.As(err, &usage) && !errors.Is(err, store.ErrAbsurd) {
				t.Errorf("the file is not what is blamed: %v", err)
			}
		} else if read == 0 || changed != read {
			t.Errorf("of %d runs %d are stored", read, changed)
		}
		if err := db.Arrange(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkStored(t, path, want)
		if want == 0 {
			return
		}
		if _, _, err := db.Observations(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		if again, changed, err := count(); err != nil || again != read || changed != 0 {
			t.Errorf("once more: of %d runs %d were stored, %v; want none of %d", again, changed, err, read)
		}
	})
}

// times are the columns that are never below 0.
var times = []string{"time", "seconds", "created", "ingested", "started", "steps", "epochs", "epoch", "step", "samples", "world", "workers"}

// checkStored checks the invariants of a database: the number of runs, a source and a result for each, and only
// finite numbers.
func checkStored(t *testing.T, path string, runs int) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := func(query string, args ...any) (text string) {
		if err := db.QueryRow(query, args...).Scan(&text); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return text
	}
	if got, want := one("SELECT (SELECT count(*) FROM runs) || ' ' || (SELECT count(*) FROM imports) || ' ' || (SELECT count(*) FROM result)"), fmt.Sprintf("%d %[1]d %[1]d", runs); got != want {
		t.Errorf("runs, imports and results: %s; want %s", got, want)
	}
	columns, err := db.Query("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'")
	if err != nil {
		t.Fatal(err)
	}
	var checks []string
	for columns.Next() {
		var table, column string
		if err := columns.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		wrong := fmt.Sprintf(`typeof("%s") = 'real' AND NOT abs("%[1]s") <= 1.8e308`, column)
		if slices.Contains(times, column) {
			wrong += fmt.Sprintf(` OR "%s" < 0`, column)
		}
		checks = append(checks, fmt.Sprintf(`SELECT '%s.%s ' || "%[2]s" AS what FROM "%[1]s" WHERE %[3]s`, table, column, wrong))
	}
	if err := columns.Err(); err != nil {
		t.Fatal(err)
	}
	checks = append(checks, `SELECT measure || ' ' || value FROM "values" WHERE unit = 's' AND value < 0`, `SELECT measure FROM "values" WHERE (value IS NULL) = (why IS NULL AND reached IS NOT 0)`)
	for _, check := range checks {
		var what sql.NullString
		if err := db.QueryRow(check).Scan(&what); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%s: %s, %v", check, what.String, err)
		}
	}
}
