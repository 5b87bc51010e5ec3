package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// headBytes is the length of the part at the beginning of a file of which a digest is stored. The
// digest distinguishes a file that grew from a new file with the same name: this part includes
// the start event, which is different for every writer.
const headBytes = 4096

// place identifies the writer of an event file by its rank and restart.
type place struct{ rank, restart int }

// A position says how far an event file was read.
type position struct {
	id       int64
	path     string
	inode    uint64
	size     int64
	modified int64 // nanoseconds since the epoch
	head     []byte
	headSize int64
	offset   int64
	line     int
}

// knownFiles returns the positions of the run's files that are in the database, by writer, rank
// and restart.
func knownFiles(tx *sql.Tx, run int64) (map[string]map[place]position, error) {
	known := map[string]map[place]position{}
	err := found(tx.Query(`SELECT writer, rank, restart, id, path, inode, size, modified, head, head_size, offset, line
		FROM event_file WHERE run = ?`, run)).each(func(rows *sql.Rows) error {
		var writer string
		var at place
		var p position
		var inode int64
		if err := rows.Scan(&writer, &at.rank, &at.restart, &p.id, &p.path, &inode, &p.size, &p.modified,
			&p.head, &p.headSize, &p.offset, &p.line); err != nil {
			return err
		}
		p.inode = uint64(inode)
		if known[writer] == nil {
			known[writer] = map[place]position{}
		}
		known[writer][at] = p
		return nil
	})
	return known, err
}

// errOpen means that a file could not be opened. Nothing of it was stored.
type errOpen struct{ error }

func (e errOpen) Unwrap() error { return e.error }

// errRead means that reading a file failed after a part was read.
type errRead struct{ error }

func (e errRead) Unwrap() error { return e.error }

// maxBadLines limits the number of bad lines that are stored per file; further ones are only
// counted. A file that contains something else may have millions.
const maxBadLines = 1000

// file reads an event file from the position at, or from its start if at is nil.
func (in *ingest) file(f metrics.EventFile, at *position) error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return errOpen{err}
	}
	if at != nil && at.path == f.Path && at.size == info.Size() && at.modified == info.ModTime().UnixNano() && at.inode == inode(info) {
		return nil
	}
	file, err := sharedfs.OpenIn(f.Folder, f.Path)
	if err != nil {
		return errOpen{err}
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return err
	}
	if at, err = in.current(f, file, info, at); err != nil {
		return err
	}
	in.report.Files++
	if at == nil {
		at = &position{}
		r, err := in.tx.Exec(`INSERT INTO event_file (run, writer, rank, restart, path, inode, size, modified, head, head_size, offset, line)
			VALUES (?, ?, ?, ?, ?, 0, 0, 0, x'', 0, 0, 0)`, in.run, f.Writer, f.Rank, f.Restart, f.Path)
		if err != nil {
			return err
		}
		if at.id, err = r.LastInsertId(); err != nil {
			return err
		}
	}
	// Read up to the size that is stored below; the next call reads what was added since.
	now := io.NewSectionReader(file, at.offset, max(0, info.Size()-at.offset))
	events := metrics.NewReader(now, f.Path, at.offset, at.line)
	w := fileWriter{in: in, file: f, id: at.id, blocks: map[int]*block{}}
	if err := w.all(events); err != nil {
		return err
	}
	headSize := min(events.Offset, headBytes)
	head, err := hashHead(file, headSize)
	if err != nil {
		return err
	}
	_, err = in.tx.Exec(`UPDATE event_file SET path = ?, inode = ?, size = ?, modified = ?, head = ?, head_size = ?, offset = ?, line = ? WHERE id = ?`,
		f.Path, int64(inode(info)), info.Size(), info.ModTime().UnixNano(), head, headSize, events.Offset, events.Line, at.id)
	return err
}

// current returns the position from which to read a file. If the stored events come from another
// file, or were not read from an event file (see derived), it deletes them and returns nil.
func (in *ingest) current(f metrics.EventFile, file *os.File, info os.FileInfo, at *position) (*position, error) {
	if at == nil {
		return nil, nil
	}
	whole := true
	if int64(at.inode) != derived {
		why, err := replaced(file, info, at)
		if err != nil || why == "" {
			return at, err
		}
		in.warn("%s %s, so it was read again from the start", f.Path, why)
		whole = f.Writer == "rank"
	}
	if whole {
		in.whole[f.Restart] = true
	}
	_, err := in.tx.Exec("DELETE FROM event_file WHERE id = ?", at.id)
	return nil, err
}

// replaced returns the reason why file is not the one that at refers to; "" if it is.
func replaced(file *os.File, info os.FileInfo, at *position) (string, error) {
	switch {
	case info.Size() < at.offset:
		return fmt.Sprintf("shrank from %d to %d bytes", at.size, info.Size()), nil
	case inode(info) != at.inode:
		return "was replaced by another file", nil
	}
	head, err := hashHead(file, at.headSize)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(head, at.head) {
		return "was rewritten", nil
	}
	return "", nil
}

func hashHead(file *os.File, n int64) ([]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, n)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
