package store

import "database/sql"

// indices manages the indices of tables to which an import adds a row per run. Updating the
// indices for each of a million runs takes several times as long as dropping them and creating
// them at the end, because each run touches different pages, which have left memory.
type indices struct {
	tx      *sql.Tx
	few     int      // fewRuns, or less in tests
	runs    int      // number of runs that the import has stored
	before  int      // number of runs before the import, estimated from the largest ID
	dropped []string // statements that create the indices that were dropped
	done    bool     // indices were dropped; an import does that only once
}

// fewRuns is the number of runs up to which dropping the indices does not pay, because creating
// them takes as long as storing a few hundred runs.
const fewRuns = 5000

// another must be called before each run is stored. When the import has stored as many runs as
// existed before, it drops the indices. Creating them for all runs then takes at most twice as
// long as for the imported runs alone.
func (x *indices) another() error {
	if x.runs++; x.runs == 1 {
		if err := x.tx.QueryRow("SELECT coalesce(max(id), 0) FROM every_run").Scan(&x.before); err != nil {
			return err
		}
	}
	if x.done || x.runs < max(x.few, x.before) {
		return nil
	}
	x.done = true
	return x.drop()
}

func (x *indices) drop() error {
	var names []string
	if err := found(x.tx.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
		AND tbl_name IN ('every_run', 'event_file', 'import') ORDER BY rowid`)).each(func(rows *sql.Rows) error {
		var name, create string
		if err := rows.Scan(&name, &create); err != nil {
			return err
		}
		names, x.dropped = append(names, name), append(x.dropped, create)
		return nil
	}); err != nil {
		return err
	}
	if err := setCache(x.tx, sparingKiB); err != nil { // new rows are appended at the ends of the tables
		return err
	}
	for _, name := range names {
		if _, err := x.tx.Exec("DROP INDEX " + name); err != nil {
			return err
		}
	}
	return nil
}

// create creates the indices that were dropped.
func (x *indices) create() error {
	if x.dropped == nil {
		return nil
	}
	for _, create := range x.dropped {
		if _, err := x.tx.Exec(create); err != nil {
			return err
		}
	}
	x.dropped = nil
	return setCache(x.tx, cacheKiB)
}
