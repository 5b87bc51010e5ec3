package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// describe checks a run, and returns a digest of everything that the caller states about it, from
// which a later Ingest sees whether something changed.
func describe(run metrics.Run) (string, error) {
	text, err := record(run)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// record checks a run, and returns everything that the caller states about it as JSON.
func record(run metrics.Run) ([]byte, error) {
	var missing []string
	for _, f := range []struct{ name, value string }{{"ID", run.ID}, {"study", run.Study}, {"point", run.Point},
		{"framework", run.Framework}, {"status", string(run.Status)}} {
		if f.value == "" {
			missing = append(missing, f.name)
		}
	}
	switch {
	case len(missing) > 0:
		return nil, fmt.Errorf("its record lacks %s", strings.Join(missing, ", "))
	case run.Workers < 1 || run.Repeat < 1 || run.Attempt < 1:
		return nil, fmt.Errorf("its record says workers %d, repeat %d, attempt %d; each must be 1 or more", run.Workers, run.Repeat, run.Attempt)
	case run.Workers > metrics.MaxRanks || run.AuxRanks < 0 || run.AuxRanks > metrics.MaxRanks || run.Nodes < 0 || run.Nodes > metrics.MaxRanks:
		return nil, fmt.Errorf("its record says %d workers, %d other ranks, %d nodes; want at most %d", run.Workers, run.AuxRanks, run.Nodes, metrics.MaxRanks)
	case !slices.Contains(metrics.Statuses, run.Status):
		return nil, fmt.Errorf("unknown status %q; valid: %v", run.Status, metrics.Statuses)
	}
	times := []float64{run.CreatedUnix}
	if j := run.Job; j != nil {
		times = append(times, j.SubmitUnix, j.StartUnix, j.EndUnix)
	}
	for _, t := range times {
		if err := metrics.CheckUnix(t); err != nil {
			return nil, fmt.Errorf("a time in its record: %w", err)
		}
	}
	for key, v := range run.Parameters {
		if _, _, err := parameterValue(v); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", key, err)
		}
	}
	text, err := json.Marshal(run) // encoding/json sorts map keys
	if err != nil {
		return nil, err
	}
	if len(text) > metrics.MaxLine { // queries do not read longer texts
		return nil, fmt.Errorf("its record is %d bytes long; at most %d are stored: shorten its parameters or labels", len(text), metrics.MaxLine)
	}
	return text, nil
}

// putRun stores the run's own row, its parameters and its job. facts is the digest from describe;
// changed is false if it was stored already.
func (s *Store) putRun(tx *sql.Tx, run metrics.Run, facts string) (id int64, changed bool, err error) {
	var before string
	err = tx.QueryRow("SELECT id, facts FROM every_run WHERE name = ?", run.ID).Scan(&id, &before)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, false, err
	}
	if before == facts {
		return id, false, nil
	}
	if err := disarrange(tx, run.Study); err != nil {
		return 0, false, err
	}
	if id == 0 {
		id, err = s.insertRun(tx, direct{tx}, run, facts, map[string]bool{})
		return id, true, err
	}
	if _, err := tx.Exec(`UPDATE every_run SET study = ?, point = ?, repeat = ?, attempt = ?, kind = ?, framework = ?, workers = ?, beside = ?, nodes = ?,
			status = ?, detail = ?, dir = ?, created = ?, ingested = ?, facts = ? WHERE id = ?`,
		run.Study, run.Point, run.Repeat, run.Attempt, run.Kind, run.Framework, run.Workers, run.AuxRanks, run.Nodes,
		run.Status, run.Detail, run.Dir, run.CreatedUnix, metrics.Unix(s.now()), facts, id); err != nil {
		return 0, false, err
	}
	for _, table := range []string{"run_parameter", "job"} {
		if _, err := tx.Exec("DELETE FROM "+table+" WHERE run = ?", id); err != nil {
			return 0, false, err
		}
	}
	return id, true, putDetails(tx, direct{tx}, id, run, map[string]bool{})
}

// insertRun is like putRun for a new run; keys are the entries of the table parameter_key that
// are known to exist.
func (s *Store) insertRun(tx *sql.Tx, rows inserter, run metrics.Run, facts string, keys map[string]bool) (id int64, err error) {
	id, err = rows.numbered("every_run", `INSERT INTO every_run (id, name, study, point, repeat, attempt, kind, framework, workers, beside, nodes, series,
			status, detail, dir, created, ingested, facts)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?)`,
		run.ID, run.Study, run.Point, run.Repeat, run.Attempt, run.Kind, run.Framework, run.Workers, run.AuxRanks, run.Nodes,
		run.Status, run.Detail, run.Dir, run.CreatedUnix, metrics.Unix(s.now()), facts)
	if err != nil {
		return 0, err
	}
	return id, putDetails(tx, rows, id, run, keys)
}

// putDetails stores the parameters and the job of a run of which neither is stored yet.
func putDetails(tx *sql.Tx, rows inserter, id int64, run metrics.Run, keys map[string]bool) error {
	for _, key := range slices.Sorted(maps.Keys(run.Parameters)) {
		value, kind, err := parameterValue(run.Parameters[key])
		if err != nil {
			return err
		}
		if err := rows.insert("INSERT INTO run_parameter (run, key, value, type) VALUES (?, ?, ?, ?)", id, key, value, kind); err != nil {
			return err
		}
		if keys[key] {
			continue
		}
		if _, err := tx.Exec("INSERT INTO parameter_key (key) VALUES (?) ON CONFLICT DO NOTHING", key); err != nil {
			return err
		}
		keys[key] = true
	}
	return putJob(rows, id, run.Job)
}

func putJob(rows inserter, run int64, j *metrics.Job) error {
	if j == nil {
		return nil
	}
	known := func(unix float64) sql.NullFloat64 { return sql.NullFloat64{Float64: unix, Valid: unix != 0} }
	return rows.insert(`INSERT INTO job (run, cluster, id, name, partition, state, reason, exit_code, nodes, submitted, started, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		run, j.Cluster, j.ID, j.Name, j.Partition, j.State, j.Reason, j.ExitCode, jsonList(j.Nodes), known(j.SubmitUnix), known(j.StartUnix), known(j.EndUnix))
}

// parameterValue returns the form in which a parameter is stored: a value and the name of its
// type.
func parameterValue(v any) (value any, kind string, err error) {
	switch v := v.(type) {
	case string:
		return v, "text", nil
	case int:
		return int64(v), "integer", nil
	case int64:
		return v, "integer", nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, "", fmt.Errorf("%g is not a number that can be stored", v)
		}
		return v, "real", nil
	case bool:
		if v {
			return int64(1), "boolean", nil
		}
		return int64(0), "boolean", nil
	case []any:
		text, err := encodeList(v)
		return text, "list", err
	}
	return nil, "", fmt.Errorf("a value of Go type %T; want string, int64, float64, bool or []any of these", v)
}

// encodeList returns a list as a JSON array in which a float64 differs from an int64: it always
// has a decimal point or an exponent.
func encodeList(list []any) (string, error) {
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		value, kind, err := parameterValue(v)
		if err != nil {
			return "", err
		}
		switch kind {
		case "list":
			b.WriteString(value.(string))
		case "boolean":
			b.WriteString(strconv.FormatBool(value == int64(1)))
		default:
			text, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			b.Write(text)
			if kind == "real" && !bytes.ContainsAny(text, ".eE") {
				b.WriteString(".0")
			}
		}
	}
	b.WriteByte(']')
	return b.String(), nil
}

// parameter reverses parameterValue. It converts digests of secrets that earlier versions stored
// to the present form.
func parameter(value any, kind string) (any, error) {
	if text, is := value.(string); is {
		value = redact.Renamed(text)
	}
	switch kind {
	case "boolean":
		return value == int64(1), nil
	case "list":
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("stored list of type %T", value)
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var list []any
		if err := d.Decode(&list); err != nil {
			return nil, err
		}
		return list, numbers(list)
	}
	return value, nil
}

// numbers converts each json.Number in a list, in place, to int64 or float64.
func numbers(list []any) error {
	for i, v := range list {
		var err error
		switch v := v.(type) {
		case []any:
			err = numbers(v)
		case json.Number:
			if strings.ContainsAny(v.String(), ".eE") {
				list[i], err = v.Float64()
			} else {
				list[i], err = v.Int64()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
