//go:build !training

package export

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/store"
)

func init() { Formats = append([]Format{parquetFormat}, Formats...) }

var parquetFormat = Format{
	Name:   "parquet",
	About:  "a folder of Parquet tables: runs, values, and steps by rank (pandas, Polars, DuckDB, Spark, R)",
	Suffix: "-parquet",
	folder: writeParquet,
}

// A parquetRun is a row of runs.parquet.
type parquetRun struct {
	Run        string     `parquet:"run"`
	Study      string     `parquet:"study,dict"`
	Series     *string    `parquet:"series,optional,dict"`
	Point      string     `parquet:"point,dict"`
	Repeat     int64      `parquet:"repeat"`
	Attempt    int64      `parquet:"attempt"`
	Kind       string     `parquet:"kind,dict"`
	Framework  string     `parquet:"framework,dict"`
	Workers    int64      `parquet:"workers"`
	Nodes      *int64     `parquet:"nodes,optional"`
	Status     string     `parquet:"status,dict"`
	Counts     bool       `parquet:"counts"`
	Detail     *string    `parquet:"detail,optional"`
	Job        *string    `parquet:"job,optional"`
	JobState   *string    `parquet:"job_state,optional"`
	Cluster    *string    `parquet:"cluster,optional,dict"`
	Partition  *string    `parquet:"partition,optional,dict"`
	Created    time.Time  `parquet:"created,timestamp(microsecond)"`
	Started    *time.Time `parquet:"started,optional,timestamp(microsecond)"`
	Ended      *time.Time `parquet:"ended,optional,timestamp(microsecond)"`
	Dir        string     `parquet:"dir"`
	Restart    int64      `parquet:"restart"`
	Steps      *int64     `parquet:"steps,optional"`
	Epochs     *int64     `parquet:"epochs,optional"`
	GitCommit  *string    `parquet:"git_commit,optional,dict"`
	Warnings   []string   `parquet:"warnings,list"`
	Tags       *string    `parquet:"tags,optional"`
	Note       *string    `parquet:"note,optional"`
	Parameters string     `parquet:"parameters,json"`
}

// A parquetValue is a row of values.parquet: one measure of one run, or of a place within it.
type parquetValue struct {
	Run     string   `parquet:"run,dict"`
	Measure string   `parquet:"measure,dict"`
	Unit    *string  `parquet:"unit,optional,dict"`
	Better  *string  `parquet:"better,optional,dict"`
	Value   *float64 `parquet:"value,optional"`
	Reached *bool    `parquet:"reached,optional"`
	Why     *string  `parquet:"why,optional,dict"`
	At      *string  `parquet:"at,optional,json"`
}

// A parquetStep is a row of steps.parquet.
type parquetStep struct {
	Run           string   `parquet:"run,dict"`
	Restart       int64    `parquet:"restart"`
	Rank          int64    `parquet:"rank"`
	Ranks         int64    `parquet:"ranks"`
	Step          int64    `parquet:"step,delta"`
	Duration      float64  `parquet:"duration"`
	Samples       int64    `parquet:"samples"`
	DataWait      *float64 `parquet:"data_wait,optional"`
	Compute       *float64 `parquet:"compute,optional"`
	Communication *float64 `parquet:"communication,optional"`
}

// Units of the columns that have one; the unit of a value is in its own column.
const (
	runUnits  = `{"created":"UTC","started":"UTC","ended":"UTC"}`
	stepUnits = `{"duration":"s","samples":"samples","data_wait":"s","compute":"s","communication":"s"}`
)

func writeParquet(ctx context.Context, s *Source, dir string) error {
	return tabulate(dir, s.Program, "runs", runUnits, func(runs func(parquetRun) error) error {
		return tabulate(dir, s.Program, "values", `{"value":"unit"}`, func(values func(parquetValue) error) error {
			return tabulate(dir, s.Program, "steps", stepUnits, func(steps func(parquetStep) error) error {
				return s.each(ctx, func(r *store.RunFacts) error {
					row, err := parquetRunOf(r)
					if err == nil {
						err = runs(row)
					}
					for _, v := range r.Results {
						if err == nil {
							err = values(parquetValueOf(r.Run, v))
						}
					}
					if err != nil || !r.Stepped {
						return err
					}
					return s.DB.EachStep(ctx, r.Run, func(step store.RankStep) error { return steps(parquetStepOf(r.Run, step)) })
				})
			})
		})
	})
}

// tabulate writes a Parquet file of the rows that fill adds. units is a JSON object in the file's
// metadata: the units of its columns.
func tabulate[Row any](dir, program, name, units string, fill func(add func(Row) error) error) error {
	return create(dir, name+".parquet", func(w io.Writer) error {
		const rowGroup, flushed = 1 << 17, 1024 // rows; a row group is in memory until it is written
		out := parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup),
			parquet.KeyValueMetadata("scalebench.units", units), parquet.KeyValueMetadata("scalebench.program", program))
		rows := make([]Row, 0, flushed)
		flush := func() error {
			_, err := out.Write(rows)
			rows = rows[:0]
			return err
		}
		err := fill(func(row Row) error {
			if rows = append(rows, row); len(rows) < flushed {
				return nil
			}
			return flush()
		})
		if err != nil {
			return err
		}
		return errors.Join(flush(), out.Close())
	})
}

func parquetRunOf(r *store.RunFacts) (parquetRun, error) {
	parameters, err := json.Marshal(r.Parameters)
	row := parquetRun{Run: text(r.Run), Study: text(r.Study), Series: filled(r.Series), Point: text(r.Point), Repeat: int64(r.Repeat), Attempt: int64(r.Attempt),
		Kind: text(r.Kind), Framework: text(r.Framework), Workers: int64(r.Workers), Status: string(r.Status), Counts: r.Counts, Detail: filled(r.Detail),
		Job: filled(r.Job), JobState: filled(r.JobState), Cluster: filled(r.Cluster), Partition: filled(r.Partition), Created: r.Created,
		Started: moment(r.Started), Ended: moment(r.Ended), Dir: text(r.Dir), Restart: int64(r.Restart), Steps: counted(r.Steps), Epochs: counted(r.Epochs),
		GitCommit: filled(r.GitCommit), Tags: filled(r.Tags), Note: filled(r.Note), Parameters: string(parameters)}
	if r.Nodes > 0 {
		row.Nodes = counted(&r.Nodes)
	}
	if row.Steps != nil && *row.Steps == 0 { // steps were not counted
		if row.Steps = nil; row.Epochs != nil && *row.Epochs == 0 {
			row.Epochs = nil
		}
	}
	for _, w := range r.Warnings {
		row.Warnings = append(row.Warnings, text(w))
	}
	return row, err
}

func parquetValueOf(run string, v store.Result) parquetValue {
	row := parquetValue{Run: text(run), Measure: text(v.Measure), Unit: filled(v.Unit), Better: filled(v.Better), Value: v.Value, Reached: v.Reached, Why: filled(v.Why)}
	if v.At != nil {
		row.At = filled(measure.Key(v.At))
	}
	return row
}

func parquetStepOf(run string, s store.RankStep) parquetStep {
	return parquetStep{Run: text(run), Restart: int64(s.Restart), Rank: int64(s.Rank), Ranks: int64(s.Ranks), Step: int64(s.Step), Duration: s.Duration,
		Samples: s.Samples, DataWait: s.DataWait, Compute: s.Compute, Communication: s.Communication}
}

// filled returns a text that is missing if it is empty.
func filled(s string) *string {
	if s == "" {
		return nil
	}
	s = text(s)
	return &s
}

func counted(n *int) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
