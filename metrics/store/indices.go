package store

import "database/sql"

// indices are those of the tables that an import adds a row to for each run. To keep
// them up to date with each of a million runs costs several times as much as to make
// them of all at the end: each run goes to other places in them, on pages that have
// been written out long before.
type indices struct {
	tx      *sql.Tx
	few     int      // fewRuns
	runs    int      // that the import has stored
	before  int      // that were there, by the largest number of one
	dropped []string // the statements that make them
	done    bool     // they were dropped once: an import does not do so again
}

// fewRuns need their indices at once: making them takes as long as storing a few
// hundred runs.
const fewRuns = 5000

// another is told of each run before it is stored. As soon as an import has brought
// as many runs as were there, it drops the indices: to make them of all runs is then
// at most twice the work that it would be for those of the import alone.
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
	rows, err := x.tx.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
		AND tbl_name IN ('every_run', 'event_file', 'import') ORDER BY rowid`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name, create string
		if err := rows.Scan(&name, &create); err != nil {
			return err
		}
		names, x.dropped = append(names, name), append(x.dropped, create)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows.Close()
	if err := setCache(x.tx, sparingKiB); err != nil { // rows come at the ends of the tables
		return err
	}
	for _, name := range names {
		if _, err := x.tx.Exec("DROP INDEX " + name); err != nil {
			return err
		}
	}
	return nil
}

// create makes the indices again, where they are not there.
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
