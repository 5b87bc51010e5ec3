// Package notation parses and writes formats of Slurm's commands: the options of sbatch (option.go) and lists
// of host names (nodelist.go).
package notation

import (
	"fmt"
	"strconv"
	"strings"
)

// This file reads and writes Slurm's short form of host names, "node[1-3,07],gpu9" (see hostlist expressions in
// scontrol(1)).
//
// A short string can expand to more hosts than fit in memory, so the number is bounded and checked before
// anything is allocated.

// maxHosts is the maximum number of hosts of one expression; Slurm has the same limit for a range.
const maxHosts = 1 << 16

// maxLength is the maximum length of an expression in bytes: maxHosts long names, written out in full.
const maxLength = maxHosts * 64

// maxDigits is the maximum number of digits in a range: any such number fits an int64.
const maxDigits = 18

// ExpandHosts lists the hosts of an expression in Slurm's order: the last bracket of a name varies fastest, and
// a host named twice is listed twice. Numbers are padded with zeros to the width of the range's start:
// "[08-10]" gives 08, 09, 10. An empty expression, "(null)" and "None assigned" have no hosts.
func ExpandHosts(expression string) ([]string, error) {
	s := strings.TrimSpace(expression)
	if s == "" || s == "(null)" || s == "None assigned" {
		return nil, nil
	}
	if len(s) > maxLength {
		return nil, fmt.Errorf("node list of %d bytes: longer than the %d that are read", len(s), maxLength)
	}
	terms, err := split(s)
	if err != nil {
		return nil, fmt.Errorf("node list %s: %w", short(expression), err)
	}
	var hosts []string
	for _, t := range terms {
		parts, count, err := parse(t)
		if err != nil {
			return nil, fmt.Errorf("node list %s: %w", short(expression), err)
		}
		if count > maxHosts-len(hosts) {
			return nil, fmt.Errorf("node list %s: names more than %d hosts", short(expression), maxHosts)
		}
		hosts = appendProduct(hosts, "", parts)
	}
	return hosts, nil
}

// short quotes an expression for an error message.
func short(s string) string {
	if len(s) > 80 {
		return strconv.Quote(s[:80]) + "…"
	}
	return strconv.Quote(s)
}

// split splits an expression at the commas outside brackets.
func split(s string) ([]string, error) {
	var terms []string
	start, open := 0, false
	for i, c := range []byte(s) {
		switch {
		case c == '[' && open:
			return nil, fmt.Errorf("a second '[' at byte %d before the first is closed", i+1)
		case c == '[':
			open = true
		case c == ']' && !open:
			return nil, fmt.Errorf("a ']' without '[' at byte %d", i+1)
		case c == ']':
			open = false
		case c == ',' && !open:
			terms = append(terms, s[start:i])
			start = i + 1
		case c <= ' ' || c == 0x7f:
			return nil, fmt.Errorf("a space or control character at byte %d", i+1)
		}
	}
	if open {
		return nil, fmt.Errorf("a '[' that is never closed")
	}
	return append(terms, s[start:]), nil
}

// A part is a literal piece of a name (ranges is nil) or a bracket.
type part struct {
	text   string
	ranges []span
}

// A span is one range of a bracket, both ends included, padded to width digits.
type span struct {
	low, high int64
	width     int
}

// parse splits one name into parts and returns the number of its hosts, at most maxHosts+1.
func parse(term string) (parts []part, count int, err error) {
	if term == "" {
		return nil, 0, fmt.Errorf("an empty name between two commas")
	}
	count = 1
	for rest := term; rest != ""; {
		before, after, found := strings.Cut(rest, "[")
		if before != "" {
			parts = append(parts, part{text: before})
		}
		if !found {
			break
		}
		inside, tail, _ := strings.Cut(after, "]")
		p := part{ranges: []span{}}
		var sum int64
		for field := range strings.SplitSeq(inside, ",") {
			r, err := parseSpan(field)
			if err != nil {
				return nil, 0, err
			}
			p.ranges = append(p.ranges, r)
			sum = min(sum+min(r.high-r.low, maxHosts)+1, maxHosts+1)
		}
		parts = append(parts, p)
		count = min(count*int(sum), maxHosts+1)
		rest = tail
	}
	return parts, count, nil
}

func parseSpan(field string) (span, error) {
	low, high, found := strings.Cut(field, "-")
	if !found {
		high = low
	}
	a, err1 := number(low)
	b, err2 := number(high)
	switch {
	case err1 != nil || err2 != nil:
		return span{}, fmt.Errorf("%q in brackets is neither a number nor a range like 1-3", field)
	case b < a:
		return span{}, fmt.Errorf("the range %s ends before it starts", field)
	}
	return span{a, b, len(low)}, nil
}

func number(digits string) (int64, error) {
	if len(digits) > maxDigits {
		return 0, strconv.ErrRange
	}
	n, err := strconv.ParseUint(digits, 10, 63) // ParseInt accepts signs
	return int64(n), err
}

// appendProduct appends prefix followed by every combination of the parts.
func appendProduct(hosts []string, prefix string, parts []part) []string {
	if len(parts) == 0 {
		return append(hosts, prefix)
	}
	p := parts[0]
	if p.ranges == nil {
		return appendProduct(hosts, prefix+p.text, parts[1:])
	}
	for _, r := range p.ranges {
		for n := r.low; n <= r.high; n++ {
			hosts = appendProduct(hosts, fmt.Sprintf("%s%0*d", prefix, r.width, n), parts[1:])
		}
	}
	return hosts
}
