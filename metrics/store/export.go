package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/scalebench/scalebench/metrics"
)

// RunFacts holds what exports to other programs say about a run.
type RunFacts struct {
	RunRow // with its parameters

	Kind           string
	Cluster        string // "" without a scheduler
	Partition      string
	GitCommit      string // of the study's folder; "" if not recorded
	Counts         bool   // results use the run
	Started, Ended time.Time
	Restart        int  // from which the results are
	Stepped        bool // steps of its ranks are stored
	Evaluated      bool // evaluations are stored
	Results        []Result
}

// A Result is the value of one measure in a run, or the reason why it is missing.
type Result struct {
	Measure, Unit, Better string
	Value                 *float64       // nil: missing, or a target that was missed
	Reached               *bool          // false: the run missed the target; nil: the measure is not the time to a target
	Why                   string         // why the value is missing
	At                    map[string]any // the place within the run; nil: the whole run
}

// factsAtOnce is the number of runs whose facts are in memory at a time.
const factsAtOnce = 1000

// EachFacts calls each with the facts of the listed runs, in their order.
func (s *Store) EachFacts(ctx context.Context, rows []RunRow, each func(*RunFacts) error) error {
	for list := range slices.Chunk(rows, factsAtOnce) {
		list = slices.Clone(list) // so that no parameters stay in memory
		if err := s.Describe(ctx, list); err != nil {
			return err
		}
		facts := make([]RunFacts, len(list))
		for i, row := range list {
			facts[i].RunRow = row
		}
		if err := inTx(ctx, s.read, func(tx *sql.Tx) error { return factsOf(ctx, tx, facts) }); err != nil {
			return explain(err)
		}
		for i := range facts {
			if err := each(&facts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func factsOf(ctx context.Context, tx *sql.Tx, facts []RunFacts) error {
	names, of := make([]string, len(facts)), make(map[string]*RunFacts, len(facts))
	for i := range facts {
		names[i] = facts[i].Run
		of[names[i]] = &facts[i]
	}
	list := jsonList(names)
	if err := found(tx.QueryContext(ctx, `SELECT run, kind, coalesce(cluster, ''), coalesce(partition, ''), coalesce(git_commit, ''), started, ended, coalesce(restart, 0),
			EXISTS (SELECT 1 FROM counted c WHERE c.id = runs.id),
			EXISTS (SELECT 1 FROM event_file f JOIN block b ON b.file = f.id WHERE f.run = runs.id AND f.writer = 'rank'),
			EXISTS (SELECT 1 FROM event_file f JOIN evaluation e ON e.file = f.id WHERE f.run = runs.id AND f.writer = 'rank')
		FROM runs WHERE run IN (SELECT value FROM json_each(?))`, list)).each(func(rows *sql.Rows) error {
		var run string
		var f RunFacts
		var started, ended sql.NullFloat64
		if err := rows.Scan(&run, &f.Kind, &f.Cluster, &f.Partition, &f.GitCommit, &started, &ended, &f.Restart, &f.Counts, &f.Stepped, &f.Evaluated); err != nil {
			return err
		}
		f.RunRow = of[run].RunRow
		if started.Valid {
			f.Started = metrics.Time(started.Float64).UTC()
		}
		if ended.Valid {
			f.Ended = metrics.Time(ended.Float64).UTC()
		}
		*of[run] = f
		return nil
	}); err != nil {
		return err
	}
	return found(tx.QueryContext(ctx, `SELECT run, measure, coalesce(unit, ''), coalesce(better, ''), value, reached, coalesce(why, ''), at
		FROM "values" WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, at, measure`, list)).each(func(rows *sql.Rows) error {
		var run string
		var r Result
		if err := rows.Scan(&run, &r.Measure, &r.Unit, &r.Better, &r.Value, &r.Reached, &r.Why, asJSON{&r.At}); err != nil {
			return err
		}
		of[run].Results = append(of[run].Results, r)
		return nil
	})
}

// A RankStep is one step of one rank, or of the Ranks ranks from Rank on that one process
// reports. Times are in seconds; nil means not measured.
type RankStep struct {
	Restart, Rank, Ranks, Step       int
	Duration                         float64
	Samples                          int64
	DataWait, Compute, Communication *float64
}

// EachStep calls each for every step of a run, sorted by restart, rank and step.
func (s *Store) EachStep(ctx context.Context, run string, each func(RankStep) error) error {
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		one, step := new(block), RankStep{}
		return found(tx.QueryContext(ctx, `SELECT f.restart, f.rank, f.ranks, b.block, `+blockColumns+`
			FROM run r JOIN event_file f ON f.run = r.id JOIN block b ON b.file = f.id
			WHERE r.name = ? AND f.writer = 'rank' ORDER BY f.restart, f.rank, b.block`, run)).each(func(rows *sql.Rows) error {
			if err := one.scan(rows, &step.Restart, &step.Rank, &step.Ranks, &one.number); err != nil {
				return err
			}
			return one.each(step, each)
		})
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	return nil
}

// EachCommonStep calls each for every step that all ranks of a run reported after a restart. Its
// duration and Rank are those of the slowest rank, its samples those of all ranks, and the parts
// are means over the ranks.
func (s *Store) EachCommonStep(ctx context.Context, run string, restart int, each func(RankStep) error) error {
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		return found(tx.QueryContext(ctx, `SELECT slowest, step, duration, samples, data_wait, compute, communication
			FROM steps WHERE run = ? AND restart = ? ORDER BY step`, run, restart)).each(func(rows *sql.Rows) error {
			one := RankStep{Restart: restart, Ranks: 1}
			if err := rows.Scan(&one.Rank, &one.Step, &one.Duration, &one.Samples, &one.DataWait, &one.Compute, &one.Communication); err != nil {
				return err
			}
			return each(one)
		})
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", run, err)
	}
	return nil
}

// each calls f for every recorded step of the block. step says whose they are.
func (b *block) each(step RankStep, f func(RankStep) error) error {
	seconds := func(c, i int) *float64 {
		if b.columns[c] == nil || b.columns[c][i] == absent {
			return nil
		}
		v := float64(b.columns[c][i]) * b.tick
		return &v
	}
	for i := range blockSteps {
		if !b.has(i) {
			continue
		}
		step.Step, step.Duration, step.Samples = b.number*blockSteps+i, *seconds(duration, i), b.columns[samples][i]
		step.DataWait, step.Compute, step.Communication = seconds(dataWait, i), seconds(compute, i), seconds(communication, i)
		if err := f(step); err != nil {
			return err
		}
	}
	return nil
}

// A Timeline says when one process of a run started training, and when its epochs and
// evaluations ended.
type Timeline struct {
	metrics.Start
	Events []metrics.Event // Train, Epoch and Evaluation, by time
}

// Timelines returns the timelines of a run's ranks, sorted by restart and rank.
func (s *Store) Timelines(ctx context.Context, run string) (list []Timeline, err error) {
	err = inTx(ctx, s.read, func(tx *sql.Tx) error {
		var ids []int64
		if err := found(tx.QueryContext(ctx, `SELECT f.id, f.restart, f.rank, f.ranks, coalesce(f.started, 0), coalesce(f.host, '')
			FROM run r JOIN event_file f ON f.run = r.id WHERE r.name = ? AND f.writer = 'rank' ORDER BY f.restart, f.rank`, run)).each(func(rows *sql.Rows) error {
			var id int64
			var t Timeline
			if err := rows.Scan(&id, &t.Restart, &t.Rank, &t.Ranks, &t.Unix, &t.Host); err != nil {
				return err
			}
			ids, list = append(ids, id), append(list, t)
			return nil
		}); err != nil {
			return err
		}
		for i, id := range ids {
			if list[i].Events, err = milestones(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return list, nil
}

// milestones reads the Train, Epoch and Evaluation events of one event file.
func milestones(ctx context.Context, tx *sql.Tx, file int64) (list []metrics.Event, err error) {
	err = found(tx.QueryContext(ctx, `SELECT 0 AS kind, time, 0 AS line, 0 AS epoch, 0 AS step, 0.0 AS accuracy, NULL AS loss, 0.0 AS seconds, 0.0 AS rate FROM train WHERE file = ?1
		UNION ALL SELECT 1, time, line, epoch, step, 0, loss, seconds, learning_rate FROM epoch WHERE file = ?1
		UNION ALL SELECT 2, time, line, epoch, step, accuracy, loss, seconds, 0 FROM evaluation WHERE file = ?1
		ORDER BY time, line`, file)).each(func(rows *sql.Rows) error {
		var kind, line, epoch, step int
		var e metrics.Event
		var accuracy, seconds, rate float64
		var loss *float64
		if err := rows.Scan(&kind, &e.Time, &line, &epoch, &step, &accuracy, &loss, &seconds, &rate); err != nil {
			return err
		}
		switch kind {
		case 0:
			e.Train = &metrics.Train{}
		case 1:
			e.Epoch = &metrics.Epoch{Epoch: epoch, Step: step, Loss: loss, Seconds: seconds, LearningRate: rate}
		default:
			e.Evaluation = &metrics.Evaluation{Epoch: epoch, Step: step, Accuracy: accuracy, Loss: loss, Seconds: seconds}
		}
		list = append(list, e)
		return nil
	})
	return list, err
}
