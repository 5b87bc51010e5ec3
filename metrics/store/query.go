package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

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

// asJSON is a value that is stored as JSON: an argument of a query, or a destination of Scan. As a
// destination, v is a pointer, and NULL leaves what it points to unchanged.
type asJSON struct{ v any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	text, err := json.Marshal(j.v)
	return string(text), err
}

// Scan implements sql.Scanner.
func (j asJSON) Scan(stored any) error {
	switch text := stored.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(text), j.v)
	case []byte:
		return json.Unmarshal(text, j.v)
	}
	return fmt.Errorf("want JSON, got %T", stored)
}

// jsonList is asJSON for a list, of which nil is stored as [].
func jsonList[T any](list []T) asJSON {
	if list == nil {
		list = []T{}
	}
	return asJSON{list}
}
