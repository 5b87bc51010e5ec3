package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// live replaces the view runs when runs were not collected yet. It has only the columns that are
// known without events.
const live = `
DROP VIEW runs;
CREATE VIEW runs AS
SELECT r.name AS run, r.study, r.point, r.repeat, r.attempt, r.kind, r.framework, r.workers, r.nodes,
       r.status, r.detail, r.created, r.dir,
       j.cluster, j.id AS job, j.partition, j.state AS job_state, j.reason AS job_reason,
       j.exit_code, j.submitted, j.started, j.ended, r.id
FROM run r LEFT JOIN job j ON j.run = r.id;`

// Choose reports for each run whether a condition (see Filter.Where) is true. The runs need not
// be in a database. They have no results yet, so a condition with a column or measure that only
// collected runs have is a *WhereError, like any other invalid condition.
func Choose(ctx context.Context, runs []metrics.Run, where string) ([]bool, error) {
	db := sql.OpenDB(connector{":memory:", &sqlite3.SQLiteDriver{}})
	defer db.Close()
	db.SetMaxOpenConns(1) // with more, each connection would have its own in-memory database
	s := &Store{now: time.Now, limit: Options{}.withDefaults().WhereLimit, write: db, read: db}
	if err := s.tryMakeSchema(ctx); err != nil {
		return nil, err
	}
	ids := map[int64]int{}
	only := map[string]bool{} // columns that only collected runs have
	err := s.withTx(ctx, func(tx *sql.Tx) error {
		collected, err := runColumns(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(live); err != nil {
			return err
		}
		known, err := runColumns(ctx, tx)
		if err != nil {
			return err
		}
		for name := range collected {
			only[name] = !known[name]
		}
		keys := map[string]bool{}
		for i, run := range runs {
			if run.Parameters, err = asked(tx, run.Parameters, where, keys); err != nil {
				return err
			}
			id, err := s.insertRun(tx, direct{tx}, run, "", keys)
			if err != nil {
				return &RunError{run.ID, err}
			}
			ids[id] = i
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := restrictPool(ctx, db); err != nil {
		return nil, err
	}
	chosen := make([]bool, len(runs))
	err = s.filtered(ctx, Filter{Where: where}, func(ctx context.Context, tx *sql.Tx, where string, args []any) error {
		list, err := column1[int64](tx.QueryContext(ctx, "SELECT id FROM runs WHERE "+where, args...))
		for _, id := range list {
			chosen[ids[id]] = true
		}
		return err
	})
	if w := (*WhereError)(nil); errors.As(err, &w) {
		if name := figureIn(where, only); name != "" {
			w.Err = fmt.Errorf("only collected runs have %s; `scalebench runs --where CONDITION` selects by it", name)
		}
	}
	if err != nil {
		return nil, err
	}
	return chosen, nil
}

// asked returns the parameters to which a condition refers. It stores the keys of the others, so
// that errors can list them.
func asked(tx *sql.Tx, parameters map[string]any, where string, keys map[string]bool) (map[string]any, error) {
	named := map[string]any{}
	for key, v := range parameters {
		if strings.Contains(where, lastPart(key)) {
			named[key] = v
			continue
		}
		if keys[key] {
			continue
		}
		keys[key] = true
		if _, err := tx.Exec("INSERT INTO parameter_key (key) VALUES (?) ON CONFLICT DO NOTHING", key); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// restrictPool applies restrict to the single connection of a pool, after the pool was set up.
func restrictPool(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(driver any) error { return restrict(driver.(*sqlite3.SQLiteConn)) })
}

// figureIn returns the first name in a condition that only collected runs have, a column or a
// measure; "": none.
func figureIn(where string, columns map[string]bool) string {
	for rest := where; rest != ""; {
		kind, token := scanToken(rest)
		rest = rest[len(token):]
		name := strings.Trim(token, `"`)
		if _, err := measure.Find(name); (kind == "name" || kind == "quoted") && (columns[name] || err == nil) {
			return name
		}
	}
	return ""
}
