package study

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bytes is an amount of memory in bytes, written "16G" or "512M" (powers of 1024, as in
// Slurm).
type Bytes int64

var bytesForm = regexp.MustCompile(`^(\d+)([KMGT]?)(?:i?B)?$`)

// UnmarshalText parses "16G".
func (b *Bytes) UnmarshalText(text []byte) error {
	m := bytesForm.FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("%q is not an amount of memory; write a whole number with K, M, G or T, like \"16G\"", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
	if err != nil || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is more memory than can be counted", text)
	}
	*b = Bytes(n << shift)
	return nil
}

// MarshalText writes the amount in the largest unit in which it is a whole number.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bytes) String() string {
	n, unit := int64(b), ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.FormatInt(n, 10) + unit
}

// MaxDuration is the longest valid Duration. It leaves room for adding the time of a run,
// since a time.Duration can hold up to 106751 days.
const MaxDuration = Duration(100_000 * 24 * time.Hour)

// Duration is a length of time, written as in Slurm ("30" minutes, "1:30:00", "2-12:00:00")
// or with units ("90m", "1h30m").
type Duration time.Duration

var slurmTime = regexp.MustCompile(`^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$`)

// UnmarshalText parses Slurm's form or the form with units.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if m := slurmTime.FindStringSubmatch(s); m != nil {
		// sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds,
		// days-hours, days-hours:minutes, days-hours:minutes:seconds.
		var n [4]int64 // days, and the three fields separated by colons
		for i, field := range m[1:] {
			if field == "" {
				continue
			}
			v, err := strconv.ParseInt(field, 10, 32)
			if err != nil {
				return tooLong(s)
			}
			n[i] = v
		}
		fields := strings.Count(s, ":") + 1
		var seconds int64
		switch {
		case strings.Contains(s, "-"):
			seconds = n[0]*86400 + n[1]*3600 + n[2]*60 + n[3]
		case fields == 1:
			seconds = n[1] * 60
		case fields == 2:
			seconds = n[1]*60 + n[2]
		default:
			seconds = n[1]*3600 + n[2]*60 + n[3]
		}
		if seconds > int64(MaxDuration.Seconds()) {
			return tooLong(s)
		}
		*d = Duration(time.Duration(seconds) * time.Second)
		return nil
	}
	v, err := time.ParseDuration(s)
	if v > time.Duration(MaxDuration) || err != nil && goTime.MatchString(s) { // it would overflow
		return tooLong(s)
	}
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a length of time; write it like \"1h30m\" or as Slurm does, \"1:30:00\" or \"2-12:00:00\"", s)
	}
	*d = Duration(v)
	return nil
}

// goTime matches the form with units, even if the number is too large.
var goTime = regexp.MustCompile(`^(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$`)

func tooLong(s string) error {
	return fmt.Errorf("%q is too long; at most 100000 days are valid", s)
}

// MarshalText writes the duration in the form with units.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	s := time.Duration(d).String() // "1h0m0s"
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Seconds returns the duration in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }
