package store

import (
	"context"
	"database/sql"
	"hash/maphash"
)

// A Source is the file from which a run was imported.
type Source struct {
	Path   string // absolute
	SHA256 string // SHA-256 of the whole file, in hexadecimal
	Part   string // name of the run within the file; "" if the file is one run
	Format string // name of the extractor, or "csv"
	Bytes  int64
	// Rows is a digest of the table row at which the run begins. Origin is the SHA-256 of the
	// table when it was first imported, by which the rows of a table that has grown since are
	// recognised. Both are "" for a log.
	Rows, Origin string
	// Replace says that the run replaces one that was imported earlier from the same part.
	Replace bool
}

// Tables returns the tables from which runs were imported, the smallest first, with path, SHA256,
// size and origin.
func (s *Store) Tables(ctx context.Context) (list []Source, err error) {
	return listOf(found(s.read.QueryContext(ctx, "SELECT DISTINCT path, sha256, bytes, origin FROM source WHERE origin <> '' ORDER BY bytes, sha256, path")), func(rows *sql.Rows, t *Source) error {
		return rows.Scan(&t.Path, &t.SHA256, &t.Bytes, &t.Origin)
	})
}

// partSeed is the seed of the hashes in importing.parts.
var partSeed = maphash.MakeSeed()

// mayBeStored reports whether the run may be in the database already. For runs of a new file, it
// answers without asking the database, which would take as long as storing them.
func (all *importing) mayBeStored(from Source) (bool, error) {
	file, part := from, maphash.String(partSeed, from.Part)
	file.Part, file.Rows = "", ""
	if all.parts == nil || file != all.file {
		if err := all.tx.QueryRow("SELECT EXISTS (SELECT 1 FROM source WHERE sha256 = ?1 OR ?2 <> '' AND origin = ?2)",
			file.SHA256, file.Origin).Scan(&all.stored); err != nil {
			return false, err
		}
		all.file, all.source, all.parts = file, 0, map[uint64]struct{}{}
	}
	if _, again := all.parts[part]; again { // the same file occurs twice
		all.stored = true
	}
	if all.stored {
		if err := all.settle(); err != nil {
			return false, err
		}
	}
	all.parts[part] = struct{}{}
	return all.stored, nil
}

// putSource returns the ID of a file's row, which it creates if necessary.
func putSource(tx *sql.Tx, from Source) (id int64, err error) {
	err = tx.QueryRow(`INSERT INTO source (path, sha256, format, bytes, origin) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET bytes = excluded.bytes RETURNING id`, from.Path, from.SHA256, from.Format, from.Bytes, from.Origin).Scan(&id)
	return id, err
}
