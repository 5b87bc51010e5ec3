package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/redact"
)

// alike keeps one copy of data that many runs of a study have in common, so that a million runs
// fit into memory. Do not modify what its methods return.
type alike struct {
	texts      map[string]string
	warnings   map[string][]string // by their stored JSON
	prints     map[string]fingerprint.Print
	parameters map[string]map[string]any // by all keys and values
	key        []byte                    // buffer for a key of parameters
}

// rememberedAlike limits the size of each map. If runs differ, there is nothing to share.
const rememberedAlike = 10000

func newAlike() *alike {
	return &alike{texts: map[string]string{}, warnings: map[string][]string{}, prints: map[string]fingerprint.Print{}, parameters: map[string]map[string]any{}}
}

func remember[V any](all map[string]V, key string, v V) {
	if len(all) == rememberedAlike {
		clear(all)
	}
	all[key] = v
}

// share replaces each text by an equal one that is already in memory, so that copies of it can be
// freed.
func (a *alike) share(texts ...*string) {
	for _, t := range texts {
		if before, known := a.texts[*t]; known {
			*t = before
		} else {
			remember(a.texts, *t, *t)
		}
	}
}

// warning parses the stored warnings of a run.
func (a *alike) warning(text string) (list []string, err error) {
	list, known := a.warnings[text]
	if !known {
		if err = json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		list = slices.Clip(list)
		if len(list) == 0 {
			list = nil
		}
		remember(a.warnings, text, list)
	}
	return list, nil
}

// print parses the stored fingerprint of a run.
func (a *alike) print(text string) (p fingerprint.Print, err error) {
	p, known := a.prints[text]
	if !known {
		if err = json.Unmarshal([]byte(redact.Renamed(text)), &p); err != nil {
			return nil, err
		}
		remember(a.prints, text, p)
	}
	return p, nil
}

// storedParameter is a row of the table run_parameter.
type storedParameter struct {
	key, kind string
	value     any // string, int64 or float64
}

// eachRun calls each for every run of a query that returns rows of the table run_parameter: the
// run, key, value and type, with the rows of a run together.
func eachRun[R comparable](rows queried, each func(R, []storedParameter) error) error {
	var run R
	var list []storedParameter // of the current run
	if err := rows.each(func(rows *sql.Rows) error {
		var of R
		var p storedParameter
		if err := rows.Scan(&of, &p.key, &p.value, &p.kind); err != nil {
			return err
		}
		if of != run && len(list) > 0 {
			if err := each(run, list); err != nil {
				return err
			}
			list = list[:0]
		}
		run, list = of, append(list, p)
		return nil
	}); err != nil || len(list) == 0 {
		return err
	}
	return each(run, list)
}

// of returns a run's parameters. If rows has a key twice, the last one counts.
func (a *alike) of(rows []storedParameter) (map[string]any, error) {
	key := a.key[:0]
	for _, p := range rows {
		key = append(append(append(append(key, 0), p.key...), 0), p.kind...)
		key = append(key, 0)
		switch v := p.value.(type) {
		case string:
			key = append(strconv.AppendInt(key, int64(len(v)), 10), ' ')
			key = append(key, v...)
		case int64:
			key = strconv.AppendInt(key, v, 10)
		case float64:
			key = strconv.AppendUint(key, math.Float64bits(v), 16)
		default:
			return nil, fmt.Errorf("parameter %s: stored as %T", p.key, v)
		}
	}
	a.key = key
	if all, known := a.parameters[string(key)]; known {
		return all, nil
	}
	all := make(map[string]any, len(rows))
	for _, p := range rows {
		v, err := parameter(p.value, p.kind)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.key, err)
		}
		all[p.key] = v
	}
	remember(a.parameters, string(key), all)
	return all, nil
}
