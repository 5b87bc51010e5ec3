package extract

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WhenColumns are our names for columns that state when runs were made.
var WhenColumns = []string{"started", "order", "block"}

// blocks maps the names of blocks of runs to numbers, in the order of their first rows.
type blocks map[string]int

// when sets the run's start time, its position in the order of runs, and its block, from the
// run's first row.
func (t *table) when(c *Content, columns map[string]Column, known blocks) {
	cell := func(ours string) (text string, has bool) {
		column, mapped := columns[ours]
		if !mapped {
			return "", false
		}
		text = strings.TrimSpace(t.rows[0][t.at[column.Name]])
		return text, text != ""
	}
	if text, has := cell("started"); has {
		unix, err := parseTime(text)
		if err != nil {
			t.l.fail(t.line[0], "column %s: %w", clip(columns["started"].Name), err)
		}
		c.StartUnix = unix
	}
	if text, has := cell("block"); has {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 1<<30 {
			if n = known[text]; n == 0 {
				n = len(known) + 1
				known[text] = n
			}
			n--
		}
		c.Block, c.Position = n+1, float64(n+1)
	}
	if text, has := cell("order"); has {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) || x > 1e6 {
			t.l.fail(t.line[0], "column %s: %s is not a place in an order; want a number from 0 to 1e6", clip(columns["order"].Name), clip(text))
		}
		c.Position = x + 1
	}
}

// layouts are the accepted forms of ISO 8601. A time without a zone is taken as UTC; this is
// harmless, because only differences count.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "20060102T150405", "20060102T150405Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999 -0700"}

// parseTime parses ISO 8601, or seconds or milliseconds since 1970, and returns seconds since
// 1970.
func parseTime(text string) (unix float64, err error) {
	if decimal.MatchString(text) {
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case err == nil && x >= 1e8 && x < 1e10:
			return x, nil
		case err == nil && x >= 1e11 && x < 1e13:
			return x / 1e3, nil
		}
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, strings.Replace(text, "UTC", "Z", 1)); err == nil {
			if unix := float64(at.UnixNano()) / 1e9; unix > 0 {
				return unix, nil
			}
		}
	}
	return 0, fmt.Errorf("%s is not a time; write 2006-01-02T15:04:05 or seconds since 1970, or map the order of the runs, --map order=COLUMN", clip(text))
}
