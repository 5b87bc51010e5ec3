package advice

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// figures are a candidate's figures in the words that the question used.
func (s *study) figures(c *Candidate) string {
	var parts []string
	sure := percent(s.o.Confidence)
	if s.o.Deadline > 0 || s.o.Budget > 0 {
		if f := c.Seconds; f != nil {
			text := span(f.Value)
			if f.High != nil {
				text += ", at most " + span(*f.High)
			}
			parts = append(parts, text)
		}
		if f := c.Cost; f != nil {
			text := money(f.Value, s.Currency)
			if f.High != nil {
				text += ", at most " + money(*f.High, s.Currency)
			}
			parts = append(parts, text)
		}
	}
	if f := c.Efficiency; f != nil && s.o.MinEfficiency > 0 {
		text := "an efficiency of " + percent(f.Value)
		if f.Low != nil {
			text += ", at least " + percent(*f.Low)
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ") + " (" + string(c.Basis)
	if f := c.main(); f != nil && f.Low != nil {
		return text + ", " + sure + " confidence)"
	}
	return text + ", without an interval)"
}

func workers(n int) string { return countOf(n, "worker", "workers") }

// span is a length of time for people.
func span(seconds float64) string {
	switch {
	case seconds < 120:
		return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
	case seconds < 100*365*86400:
		d := time.Duration(seconds * float64(time.Second))
		if seconds < 3600 {
			d = d.Round(time.Second)
			return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
		}
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
}

// money keeps cents, and more digits where an amount has none to show.
func money(x float64, currency string) string {
	if x != 0 && x < 0.1 {
		return strconv.FormatFloat(x, 'g', 2, 64) + " " + currency
	}
	return strconv.FormatFloat(x, 'f', 2, 64) + " " + currency
}

func percent(x float64) string {
	if x >= 10 {
		return strconv.FormatFloat(100*x, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 3, 64) + " %"
}

// workersAre is "1 worker is" or "2 workers are".
func workersAre(n int) string {
	if n == 1 {
		return "1 worker is"
	}
	return workers(n) + " are"
}

func count(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// list joins words: "a", "a and b", "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
