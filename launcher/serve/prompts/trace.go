package prompts

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A trace holds the lengths of requests in the order of their times, and which beginnings they share.
type trace struct {
	seed  uint64
	times []float64 // seconds from the first
	calls []call
}

// A call is a request of a trace.
type call struct {
	at            float64 // seconds
	input, output int     // tokens
	blocks        []uint64
}

// blockTokens is the number of tokens in a block of Mooncake's traces. Requests share the blocks at their
// beginning that have equal hash_ids.
const blockTokens = 512

func (t *trace) turns() float64 { return 1 }

func (t *trace) session(n uint64, scale scale) []Turn {
	c := t.calls[n%uint64(len(t.calls))]
	var b strings.Builder
	left := max(scale.words(float64(c.input)-scale.overhead), 1)
	for _, id := range c.blocks {
		size := min(left, scale.words(blockTokens))
		write(&b, random(t.seed, 1<<62|id), size)
		left -= size
	}
	if left > 0 { // without blocks, requests share nothing
		write(&b, random(t.seed, n), left)
	}
	return []Turn{{Text: b.String(), Output: c.output}}
}

// readTrace reads Mooncake's JSON lines (timestamp in ms, input_length, output_length,
// hash_ids) or Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens).
func readTrace(path string, seed uint64) (*trace, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	read := azure
	if bytes.TrimSpace(content)[0] == '{' {
		read = mooncake
	}
	t := &trace{seed: seed}
	if t.calls, err = read(content); err != nil {
		return nil, fmt.Errorf("%s%w", filepath.Base(path), err)
	}
	if len(t.calls) == 0 {
		return nil, fmt.Errorf("%s has no request", filepath.Base(path))
	}
	slices.SortStableFunc(t.calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	for _, c := range t.calls {
		t.times = append(t.times, c.at-t.calls[0].at)
	}
	return t, nil
}

func (c call) check() error {
	if c.input < 1 || c.output < 1 || c.input > 1<<20 || c.output > 1<<20 {
		return fmt.Errorf("%d input and %d output tokens; want 1 to %d of each", c.input, c.output, 1<<20)
	}
	return nil
}

func mooncake(content []byte) (calls []call, err error) {
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var m struct {
			Timestamp *float64
			Input     int      `json:"input_length"`
			Output    int      `json:"output_length"`
			Blocks    []uint64 `json:"hash_ids"`
		}
		if err = json.Unmarshal(text, &m); err == nil && m.Timestamp == nil {
			err = errors.New(`no "timestamp"`)
		}
		if err == nil {
			c := call{*m.Timestamp / 1000, m.Input, m.Output, m.Blocks}
			calls, err = append(calls, c), c.check()
		}
		if err != nil {
			return nil, fmt.Errorf(":%d: %w", line, err)
		}
	}
	return calls, nil
}

func azure(content []byte) (calls []call, err error) {
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	var columns [3]int
	for i, name := range []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"} {
		if columns[i] = slices.Index(rows[0], name); columns[i] < 0 {
			return nil, fmt.Errorf(":1: no column %s; a trace is Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens) or Mooncake's JSON lines", name)
		}
	}
	for i, row := range rows[1:] {
		at, err := azureTime(row[columns[0]])
		c := call{at: at}
		if err == nil {
			c.input, err = strconv.Atoi(row[columns[1]])
		}
		if err == nil {
			c.output, err = strconv.Atoi(row[columns[2]])
		}
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf(":%d: %w", i+2, err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// azureTime parses a time in seconds: a date with or without a time zone, or a number.
func azureTime(text string) (float64, error) {
	for _, form := range []string{"2006-01-02 15:04:05.9999999", "2006-01-02 15:04:05.999999-07:00", time.RFC3339Nano} {
		if at, err := time.Parse(form, text); err == nil {
			return float64(at.UnixNano()) / 1e9, nil
		}
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(x) < 1e12 {
		return x, nil
	}
	return 0, fmt.Errorf("%q is not a time", text)
}
