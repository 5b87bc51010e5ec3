package store

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

// result computes the run's result from stored data and replaces the stored result. A run without
// events has no result.
func (in *ingest) result() error {
	input, evaluations, err := in.summaryInput()
	if err != nil || input == nil {
		return err
	}
	for _, query := range []string{
		"DELETE FROM result WHERE run = ?",
		"DELETE FROM value WHERE run = ?",
		"DELETE FROM noise_scale WHERE run = ?",
		"UPDATE evaluation SET trained = NULL WHERE file IN (SELECT id FROM event_file WHERE run = ?)",
		// The run's hardware and software may be known only now, which may assign it to another
		// curve.
		"UPDATE study SET arranged = 0 WHERE name = (SELECT study FROM every_run WHERE id = ?)",
	} {
		if _, err := in.tx.Exec(query, in.run); err != nil {
			return err
		}
	}
	return in.summarize(input, evaluations)
}

// summarize computes and stores the result of a run whose result is not in the database.
func (in *ingest) summarize(input *summary.Input, evaluations []evaluationKey) error {
	r := summary.Summarize(*input)
	var slowest any
	if r.Slowest != nil {
		slowest = asJSON{r.Slowest}
	}
	if err := in.rows.insert(`INSERT INTO result (run, algorithm, restart, world, steps, warmup_steps, steady_steps, samples, epochs,
			slowest, warnings, fingerprint, git_commit, noise_scale_why)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		in.run, summary.AlgorithmVersion, r.Restart, r.World, r.Steps, r.WarmupSteps, r.SteadySteps, r.Samples, r.Epochs,
		slowest, jsonList(r.Warnings), asJSON{r.Fingerprint}, r.GitCommit, r.NoiseScaleWhy); err != nil {
		return err
	}
	if err := in.values(input.Kind, r); err != nil {
		return err
	}
	if err := in.noiseScales(r.NoiseScales); err != nil {
		return err
	}
	return in.trained(r, evaluations)
}

// An evaluationKey identifies a stored evaluation.
type evaluationKey struct{ file, line int64 }

// trained stores, for each evaluation of the result, how many samples the run had trained on
// before it. Evaluations before the training clock started have no such number; those of the
// result are the last recorded ones.
func (in *ingest) trained(r summary.Outcome, evaluations []evaluationKey) error {
	if r.Steps == 0 {
		return nil // the program's own number is stored already
	}
	evaluations = evaluations[len(evaluations)-len(r.Evaluations):]
	for i, e := range r.Evaluations {
		if _, err := in.tx.Exec("UPDATE evaluation SET trained = ? WHERE file = ? AND line = ?", e.Samples, evaluations[i].file, evaluations[i].line); err != nil {
			return err
		}
	}
	return nil
}

// summaryInput returns what the ranks recorded after one restart, the one whose records give the
// result (see summary.Choose). It returns nil if no rank recorded anything. The keys identify the elements of Input.Evaluations.
func (in *ingest) summaryInput() (*summary.Input, []evaluationKey, error) {
	var input summary.Input
	if err := in.tx.QueryRow("SELECT kind, workers + beside FROM every_run WHERE id = ?", in.run).Scan(&input.Kind, &input.Workers); err != nil {
		return nil, nil, err
	}
	starts, err := in.incarnations()
	if err != nil {
		return nil, nil, err
	}
	restart, ok := summary.Choose(starts)
	if !ok {
		return nil, nil, nil
	}
	input.Restart = restart
	for _, s := range starts {
		input.Restarts = append(input.Restarts, s.Restart)
	}
	if input.Targets, err = in.targets(); err != nil {
		return nil, nil, err
	}
	said, err := in.said()
	if err != nil {
		return nil, nil, err
	}
	input.MFU, input.SampleTokens = summary.MFUOf(said), summary.SampleTokens(said)
	for key, into := range map[string]*string{"resources.device": &input.Device, "workload.batch_norm": &input.BatchNorm} {
		value, err := column1[string](in.tx.Query("SELECT value FROM run_parameter WHERE run = ? AND key = ? AND type = 'text'", in.run, key))
		if err != nil {
			return nil, nil, err
		}
		*into = strings.Join(value, "")
	}
	if err := in.tx.QueryRow("SELECT count(*) FROM bad_line b JOIN event_file f ON f.id = b.file WHERE f.run = ?", in.run).Scan(&input.BadLines); err != nil {
		return nil, nil, err
	}
	if input.Steps, err = in.stepsFor(restart); err != nil {
		return nil, nil, err
	}
	if input.EpochEnds, err = column1[int](in.tx.Query(`SELECT p.step FROM epoch p JOIN event_file f ON f.id = p.file
		WHERE f.run = ? AND f.writer = 'rank' AND f.rank = 0 AND f.restart = ? ORDER BY p.line`, in.run, restart)); err != nil {
		return nil, nil, err
	}
	if input.Ranks, err = in.ranks(restart); err != nil {
		return nil, nil, err
	}
	if input.Places, err = in.places(restart); err != nil {
		return nil, nil, err
	}
	for _, r := range input.Ranks {
		input.World = max(input.World, r.World)
	}
	if input.Notes, err = column1[string](in.tx.Query(`SELECT n.text FROM note n JOIN event_file f ON f.id = n.file
		WHERE f.run = ? AND f.restart = ? GROUP BY n.text ORDER BY min(f.rank), min(n.line)`, in.run, restart)); err != nil {
		return nil, nil, err
	}
	figures := found(in.tx.Query(selectFigures+" WHERE f.run = ? AND f.restart = ? ORDER BY f.rank, g.line", in.run, restart))
	if err := scanFigures(figures, input.Add); err != nil {
		return nil, nil, err
	}
	if err := in.stated(restart, &input); err != nil {
		return nil, nil, err
	}
	if input.Gradients, err = in.rankGradients(restart); err != nil {
		return nil, nil, err
	}
	if input.Nodes, err = in.nodes(restart); err != nil {
		return nil, nil, err
	}
	keys, err := in.evaluations(restart, &input)
	return &input, keys, err
}

func (in *ingest) incarnations() ([]summary.Incarnation, error) {
	return listOf(found(in.tx.Query(`SELECT f.restart, coalesce(max(f.rank = 0 AND s.status = ?), 0)
		FROM event_file f LEFT JOIN stop s ON s.file = f.id
		WHERE f.run = ? AND f.writer = 'rank' GROUP BY f.restart ORDER BY f.restart`, metrics.StopDone, in.run)), func(rows *sql.Rows, i *summary.Incarnation) error {
		return rows.Scan(&i.Restart, &i.Done)
	})
}

// stated adds the values that rank 0 reported during the training and to which the run's targets
// refer.
func (in *ingest) stated(restart int, input *summary.Input) error {
	asked := input.Asked()
	if len(asked) == 0 {
		return nil
	}
	return found(in.tx.Query(`SELECT g.time, g.name, g.value, g.at FROM figure g JOIN event_file f ON f.id = g.file
		WHERE f.run = ? AND f.restart = ? AND f.rank = 0 AND g.at <> '{}' AND g.name IN (SELECT value FROM json_each(?)) ORDER BY g.time, g.line`, in.run, restart, jsonList(asked))).each(func(rows *sql.Rows) error {
		var f metrics.Figure
		var seconds float64
		if err := rows.Scan(&seconds, &f.Name, &f.Value, asJSON{&f.At}); err != nil {
			return err
		}
		input.State(seconds, f)
		return nil
	})
}

// said returns the parameters of the run's point that concern MFU and tokens.
func (in *ingest) said() (map[string]any, error) {
	parameters := map[string]any{}
	for _, key := range []string{measure.MFUKey, measure.MFUPeakKey, measure.FLOPsPerTokenKey, measure.HardwareFLOPsPerTokenKey, "workload.precision", measure.SampleKey, measure.SampleTokensKey, "workload.sequence"} {
		values, err := column1[any](in.tx.Query("SELECT value FROM run_parameter WHERE run = ? AND key = ?", in.run, key))
		if err != nil {
			return nil, err
		}
		if len(values) == 1 {
			parameters[key] = values[0]
		}
	}
	return parameters, nil
}

// targets returns the targets of the run's point.
func (in *ingest) targets() ([]measure.Target, error) {
	values, err := column1[any](in.tx.Query(`SELECT t.value FROM run_parameter p, json_each(p.value) t
		WHERE p.run = ? AND p.key = '`+measure.TargetsKey+`' AND p.type = 'list' AND t.type IN ('integer', 'real', 'text') ORDER BY t.key`, in.run))
	var list []measure.Target
	for _, v := range values {
		if t, err := measure.ParseTarget(fmt.Sprint(v)); err == nil {
			list = append(list, t)
		}
	}
	return list, err
}

func (in *ingest) stepsFor(restart int) ([]summary.Step, error) {
	return listOf(found(in.tx.Query(`SELECT step, duration, mean, slowest, samples, data_wait, compute, communication
		FROM step WHERE run = ? AND restart = ? ORDER BY step`, in.run, restart)), func(rows *sql.Rows, s *summary.Step) error {
		return rows.Scan(&s.Index, &s.Duration, &s.Mean, &s.Slowest, &s.Samples, &s.DataWait, &s.Compute, &s.Communication)
	})
}

// These SQL expressions combine an event file of a rank (alias f) with the file of its supervisor
// (v). A file about the whole run (a log, or rank 0's figures) covers ranks of several
// supervisors on several hosts, and the supervisor of a whole node covers several files. The
// environment is the supervisor's record of the host, overridden by what the program stated
// (threads, library versions). It is NULL if neither stated any.
const (
	placeJoin = ` LEFT JOIN environment e ON e.id = f.environment
		LEFT JOIN event_file v ON v.run = f.run AND v.writer = 'supervisor' AND v.restart = f.restart
			AND v.rank < f.rank + f.ranks AND f.rank < v.rank + v.ranks
		LEFT JOIN environment h ON h.id = v.environment `
	placeRank        = `coalesce(max(f.rank, v.rank), f.rank)`
	placeRanks       = `coalesce(min(f.rank + f.ranks, v.rank + v.ranks) - max(f.rank, v.rank), f.ranks)`
	placeHost        = `coalesce(nullif(v.host, ''), f.host, '')`
	placeEnvironment = `CASE WHEN coalesce(h.json, e.json) IS NOT NULL THEN json_patch(coalesce(h.json, '{}'), coalesce(e.json, '{}')) END`
)

func (in *ingest) places(restart int) ([]summary.Place, error) {
	return listOf(found(in.tx.Query(`SELECT `+placeRanks+`, `+placeHost+`, `+placeEnvironment+` FROM event_file f`+placeJoin+`
		WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? ORDER BY f.rank, v.rank`, in.run, restart)), func(rows *sql.Rows, p *summary.Place) error {
		return rows.Scan(&p.Ranks, &p.Host, asJSON{&p.Environment})
	})
}

func (in *ingest) ranks(restart int) ([]summary.Rank, error) {
	return listOf(found(in.tx.Query(`SELECT f.rank, f.ranks, coalesce(f.world_size, 0), nullif(f.started, 0), t.time, coalesce(t.parameter_sha256, ''), coalesce(t.data_sha256, ''), f.steps_time,
			(SELECT coalesce(max(epoch), 0) FROM epoch p WHERE p.file = f.id), s.status, coalesce(s.parameter_sha256, '')
		FROM event_file f LEFT JOIN train t ON t.file = f.id LEFT JOIN stop s ON s.file = f.id
		WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? ORDER BY f.rank`, in.run, restart)), func(rows *sql.Rows, r *summary.Rank) error {
		var status sql.NullString
		var began, data, ended string
		if err := rows.Scan(&r.Rank, &r.Ranks, &r.World, &r.Started, &r.TrainTime, &began, &data, &r.StepsTime, &r.Epochs, &status, &ended); err != nil {
			return err
		}
		if r.TrainTime != nil {
			r.Train = &metrics.Train{ParameterSHA256: began, DataSHA256: data}
		}
		if status.Valid {
			r.Stop = &metrics.Stop{Status: status.String, ParameterSHA256: ended}
		}
		return nil
	})
}

func (in *ingest) evaluations(restart int, input *summary.Input) ([]evaluationKey, error) {
	var keys []evaluationKey
	err := found(in.tx.Query(`SELECT e.file, e.line, e.time, e.epoch, e.step, coalesce(e.trained, 0), e.accuracy, e.loss FROM evaluation e JOIN event_file f ON f.id = e.file
		WHERE f.run = ? AND f.writer = 'rank' AND f.rank = 0 AND f.restart = ? ORDER BY e.time, e.line`, in.run, restart)).each(func(rows *sql.Rows) error {
		var e summary.Evaluation
		var key evaluationKey
		if err := rows.Scan(&key.file, &key.line, &e.Time, &e.Epoch, &e.Step, &e.Trained, &e.Accuracy, &e.Loss); err != nil {
			return err
		}
		input.Evaluations = append(input.Evaluations, e)
		keys = append(keys, key)
		return nil
	})
	return keys, err
}
