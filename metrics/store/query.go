package store

import "database/sql"

// queried is the result of a query, or the query's error.
type queried struct {
	rows *sql.Rows
	err  error
}

// found makes one value of the two that the methods of database/sql return:
// found(tx.Query(…)).each(…).
func found(rows *sql.Rows, err error) queried { return queried{rows, err} }

// each calls f for every row, and closes the rows.
func (q queried) each(f func(*sql.Rows) error) error {
	if q.err != nil {
		return explain(q.err)
	}
	defer q.rows.Close()
	for q.rows.Next() {
		if err := f(q.rows); err != nil {
			return explain(err)
		}
	}
	return explain(q.rows.Err())
}

// listOf returns the rows as values; scan stores a row in a zero value.
func listOf[T any](q queried, scan func(*sql.Rows, *T) error) (list []T, err error) {
	err = q.each(func(rows *sql.Rows) error {
		var v T
		if err := scan(rows, &v); err != nil {
			return err
		}
		list = append(list, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// column1 collects the results of a query that has one column.
func column1[T any](rows *sql.Rows, err error) ([]T, error) {
	return listOf(found(rows, err), func(rows *sql.Rows, v *T) error { return rows.Scan(v) })
}
