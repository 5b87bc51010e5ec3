package store

import (
	"database/sql"
	"fmt"
	"strings"
)

// inserter stores rows with INSERT INTO … VALUES (?, …).
type inserter interface {
	insert(query string, args ...any) error
	// numbered inserts a row into a table whose rows are numbered. It returns the row's number,
	// which the query gets as its first argument.
	numbered(table, query string, args ...any) (id int64, err error)
	// flush inserts the buffered rows. It must be called before rows are read or changed.
	flush() error
}

// direct stores each row immediately.
type direct struct{ tx *sql.Tx }

func (d direct) insert(query string, args ...any) error {
	_, err := d.tx.Exec(query, args...)
	return err
}

func (d direct) numbered(_, query string, args ...any) (int64, error) {
	r, err := d.tx.Exec(query, append([]any{nil}, args...)...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (direct) flush() error { return nil }

// bulk inserts many rows with one statement, because an import of a million runs with about ten
// rows each spends most of its time in calls. During its transaction, bulk must be the only
// writer to the tables whose rows it numbers. Rows are not in the database before flush.
type bulk struct {
	tx   *sql.Tx
	exec execer
	held []*rows // buffered rows, in the order of their first ones, so that rows come after those to which they refer
	of   map[string]*rows
	last map[string]int64 // number of the last row, by table
	n    int              // number of buffered arguments
}

// An execer executes statements: a transaction or, in tests, a counter of statements.
type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// rows are buffered until they are inserted by one statement.
type rows struct {
	query string
	args  []any
	width int // arguments per row
}

const (
	rowsTogether = 32
	// argumentsHeld limits the number of buffered arguments, because a single run can have a
	// million evaluations.
	argumentsHeld = 32768
)

func newBulk(tx *sql.Tx) *bulk {
	return &bulk{tx: tx, exec: tx, of: map[string]*rows{}, last: map[string]int64{}}
}

func (b *bulk) insert(query string, args ...any) error {
	r := b.of[query]
	if r == nil {
		r = &rows{query: query, width: len(args)}
		b.of[query] = r
		b.held = append(b.held, r)
	}
	r.args = append(r.args, args...)
	if b.n += len(args); b.n < argumentsHeld {
		return nil
	}
	return b.flush()
}

func (b *bulk) numbered(table, query string, args ...any) (id int64, err error) {
	id, known := b.last[table]
	if !known {
		if err := b.tx.QueryRow("SELECT coalesce(max(id), 0) FROM " + table).Scan(&id); err != nil {
			return 0, err
		}
	}
	id++
	b.last[table] = id
	return id, b.insert(query, append([]any{id}, args...)...)
}

// flush inserts the buffered rows.
func (b *bulk) flush() error {
	for _, r := range b.held {
		if err := r.store(b.exec); err != nil {
			return err
		}
	}
	b.n = 0
	return nil
}

// store inserts the rows. For any number of rows, it uses at most two different statements,
// because SQLite has to prepare each of them.
func (r *rows) store(tx execer) error {
	head, one, found := strings.Cut(r.query, "VALUES ")
	if !found {
		return fmt.Errorf("%s: not an insert of values", r.query)
	}
	one, tail, _ := strings.Cut(one, ")")
	one += ")"
	many := head + "VALUES " + one + strings.Repeat(", "+one, rowsTogether-1) + tail
	args := r.args
	for len(args) >= rowsTogether*r.width {
		if _, err := tx.Exec(many, args[:rowsTogether*r.width]...); err != nil {
			return err
		}
		args = args[rowsTogether*r.width:]
	}
	for ; len(args) > 0; args = args[r.width:] {
		if _, err := tx.Exec(r.query, args[:r.width]...); err != nil {
			return err
		}
	}
	clear(r.args)
	r.args = r.args[:0]
	return nil
}
