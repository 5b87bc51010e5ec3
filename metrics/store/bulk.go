package store

import (
	"database/sql"
	"fmt"
	"strings"
)

// inserter stores rows, each by an INSERT INTO … VALUES (?, …).
type inserter interface {
	insert(query string, args ...any) error
	// numbered is insert into a table whose rows have numbers, and returns the
	// row's. It goes before the other arguments.
	numbered(table, query string, args ...any) (id int64, err error)
	// flush is called before what is stored is looked at or changed.
	flush() error
}

// direct stores every row at once.
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

// bulk stores many rows with one statement: of an import of a million runs, with
// some ten rows each, most of the time goes into calls. It is the only writer of
// the tables whose rows it numbers, as long as its transaction lasts. What it
// holds is not in the database before flush.
type bulk struct {
	tx   *sql.Tx
	exec execer
	held []*rows // in the order in which their first ones came: what others refer to comes first
	of   map[string]*rows
	last map[string]int64 // row's number, by table
	n    int              // arguments held
}

// An execer is a transaction, or counts the statements for one.
type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// rows wait for one statement.
type rows struct {
	query string
	args  []any
	width int // arguments of one
}

const (
	rowsTogether = 32
	// argumentsHeld bounds what waits: a run can have a million evaluations.
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

// flush stores the rows held back so far.
func (b *bulk) flush() error {
	for _, r := range b.held {
		if err := r.store(b.exec); err != nil {
			return err
		}
	}
	b.n = 0
	return nil
}

// store uses two statements at most, however many rows there are: each must be
// prepared once.
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
