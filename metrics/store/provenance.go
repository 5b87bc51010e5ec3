package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/scalebench/scalebench/metrics"
)

// Provenance is the origin of results: what the runs used and read. Each different item is listed
// once.
type Provenance struct {
	Hosts        []Counted[string]
	Environments []Counted[metrics.Environment]
	// SHA-256 digests of the initial parameters and of the data of the runs that recorded them.
	InitialParameters, Data []Counted[string]
}

// Counted is a fact and the number of runs that have it.
type Counted[T any] struct {
	Value T
	Runs  int
}

// Provenance returns the origin of results that were computed from these runs. Environments leave
// out facts that differ between the ranks of a job: a process's CPUs, variables and address, the
// name of its host, and the serial numbers of its GPUs.
func (s *Store) Provenance(ctx context.Context, runs []string) (*Provenance, error) {
	p := &Provenance{}
	err := inTx(ctx, s.read, func(tx *sql.Tx) (err error) {
		ids, err := column1[int64](tx.QueryContext(ctx, "SELECT id FROM run WHERE name IN (SELECT value FROM json_each(?))", jsonList(runs)))
		if err != nil {
			return err
		}
		counted := `WITH counted AS (SELECT value AS id FROM json_each(?)) `
		ranks := `FROM counted c JOIN result x ON x.run = c.id
			JOIN event_file f ON f.run = c.id AND f.writer = 'rank' AND f.restart = x.restart `
		texts := func(into *[]Counted[string], query string) (err error) {
			*into, err = countedTexts(ctx, tx, counted+query, jsonList(ids))
			return err
		}
		for _, q := range []struct {
			into  *[]Counted[string]
			query string
		}{
			{&p.Hosts, `SELECT ` + placeHost + `, count(DISTINCT c.id) ` + ranks + placeJoin + `WHERE ` + placeHost + ` <> '' GROUP BY 1 ORDER BY 1`},
			{&p.InitialParameters, `SELECT t.parameter_sha256, count(DISTINCT c.id) ` + ranks +
				`JOIN train t ON t.file = f.id WHERE t.parameter_sha256 <> '' GROUP BY 1 ORDER BY 2 DESC, 1`},
			{&p.Data, `SELECT t.data_sha256, count(DISTINCT c.id) ` + ranks +
				`JOIN train t ON t.file = f.id WHERE t.data_sha256 <> '' GROUP BY 1 ORDER BY 2 DESC, 1`},
		} {
			if err := texts(q.into, q.query); err != nil {
				return err
			}
		}
		var environments []Counted[string]
		if err := texts(&environments, `SELECT json_remove(merged, '$.hostname', '$.cpu_set', '$.variables', '$.interface.address'), count(DISTINCT id)
			FROM (SELECT c.id, `+placeEnvironment+` AS merged `+ranks+placeJoin+`) WHERE merged IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1`); err != nil {
			return err
		}
		p.Environments, err = withoutSerials(environments)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("where the figures come from: %w", err)
	}
	return p, nil
}

// countedTexts returns the rows of a query for texts and counts.
func countedTexts(ctx context.Context, tx *sql.Tx, query string, args ...any) (list []Counted[string], err error) {
	return listOf(found(tx.QueryContext(ctx, query, args...)), func(rows *sql.Rows, c *Counted[string]) error {
		return rows.Scan(&c.Value, &c.Runs)
	})
}

// withoutSerials merges environments that differ only in the serial numbers of GPUs. A run may
// use several of the merged environments, so the merged number of runs is a lower bound.
func withoutSerials(texts []Counted[string]) (list []Counted[metrics.Environment], err error) {
	seen := map[string]int{}
	for _, text := range texts {
		var e metrics.Environment
		if err := json.Unmarshal([]byte(text.Value), &e); err != nil {
			return nil, err
		}
		for i := range e.GPUs {
			e.GPUs[i].UUID = ""
		}
		key, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		if i, again := seen[string(key)]; again {
			list[i].Runs = max(list[i].Runs, text.Runs)
			continue
		}
		seen[string(key)] = len(list)
		list = append(list, Counted[metrics.Environment]{e, text.Runs})
	}
	return list, nil
}
