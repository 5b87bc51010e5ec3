package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// MadeWith is a successful run that is used in results, with the user's files that it used.
type MadeWith struct {
	Point  string
	Repeat int
	Files  map[string]string // first digits of the SHA-256 of each file, by its name
}

// MadeWith returns the successful runs of a study that used files of the user.
func (s *Store) MadeWith(ctx context.Context, study string) ([]MadeWith, error) {
	var list []MadeWith
	err := found(s.read.QueryContext(ctx, `SELECT r.point, r.repeat, f.key, f.value
		FROM run r JOIN result x ON x.run = r.id JOIN json_each(x.fingerprint) f
		WHERE r.study = ?1 AND r.status = 'done' AND substr(f.key, 1, length(?2)) = ?2 AND NOT EXISTS (SELECT 1 FROM run l
			WHERE l.study = r.study AND l.point = r.point AND l.repeat = r.repeat AND l.status = 'done' AND l.attempt > r.attempt)
		ORDER BY r.id`, study, fingerprint.FilePrefix)).each(func(rows *sql.Rows) error {
		m, key, value := MadeWith{}, "", ""
		if err := rows.Scan(&m.Point, &m.Repeat, &key, &value); err != nil {
			return err
		}
		if n := len(list); n == 0 || list[n-1].Point != m.Point || list[n-1].Repeat != m.Repeat {
			m.Files = map[string]string{}
			list = append(list, m)
		}
		list[len(list)-1].Files[strings.TrimPrefix(key, fingerprint.FilePrefix)] = value
		return nil
	})
	return list, err
}
