package export

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

var junitFormat = Format{
	Name:   "junit",
	About:  "JUnit XML: a test suite for each point, a test case for each run (GitLab, Jenkins, GitHub actions)",
	Suffix: ".xml",
	file:   writeJUnit,
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitTotals
	Suites []*junitSuite `xml:"testsuite"`
}

type junitTotals struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitTotals
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name       string          `xml:"name,attr"`
	Class      string          `xml:"classname,attr"`
	Seconds    string          `xml:"time,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Skipped    *junitCause     `xml:"skipped"`
	Error      *junitCause     `xml:"error"`
	Failure    *junitCause     `xml:"failure"`
	Output     string          `xml:"system-out,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCause struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(ctx context.Context, s *Source, w io.Writer) error {
	all := junitSuites{Name: s.Name}
	suites, done := map[string]*junitSuite{}, map[string]int{} // by point; the last attempt that is done, by repeat
	for _, r := range s.Runs {
		if r.Status.Good() {
			done[repeatOf(&r)] = max(done[repeatOf(&r)], r.Attempt)
		}
	}
	err := s.each(ctx, func(r *store.RunFacts) error {
		suite := suites[r.Point]
		if suite == nil {
			suite = &junitSuite{Name: r.Point, Timestamp: r.Created.Format("2006-01-02T15:04:05")}
			suites[r.Point] = suite
			all.Suites = append(all.Suites, suite)
		}
		suite.add(caseOf(r, done[repeatOf(&r.RunRow)]))
		return nil
	})
	if err != nil {
		return err
	}
	return encodeJUnit(w, all)
}

// repeatOf identifies a repeat of a point, which may have several attempts.
func repeatOf(r *store.RunRow) string { return r.Point + " " + strconv.Itoa(r.Repeat) }

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

// caseOf returns the test case of a run. done is the last attempt at its repeat that is done; 0
// for none. An attempt that a later one made up for fails no build.
func caseOf(r *store.RunFacts, done int) junitCase {
	c := junitCase{Name: r.Run, Class: r.Study + "." + r.Framework}
	if elapsed := elapsed(r); elapsed > 0 {
		c.Seconds = strconv.FormatFloat(elapsed.Seconds(), 'f', 3, 64)
	}
	for _, v := range r.Results {
		if v.Value != nil && v.At == nil {
			c.Properties = append(c.Properties, junitProperty{titled(v.Measure, v.Unit), strconv.FormatFloat(*v.Value, 'g', -1, 64)})
		}
	}
	first, _, _ := strings.Cut(r.Detail, "\n")
	cause := &junitCause{Type: string(r.Status), Message: string(r.Status), Text: r.Detail}
	if first != "" {
		cause.Message += ": " + first
	}
	switch {
	case r.Status.Good():
	case done > r.Attempt:
		cause.Message = fmt.Sprintf("attempt %d of this repeat is done; this one: %s", done, cause.Message)
		c.Skipped = cause
	case !r.Status.Terminal(), r.Status == metrics.Cancelled:
		c.Skipped = cause
	case r.Status == metrics.NodeFailed, r.Status == metrics.Preempted, r.Status == metrics.Lost:
		c.Error = cause // of the machine, not of the program
	default:
		c.Failure = cause
	}
	return c
}

// elapsed returns how long a run took: as its scheduler says, else as its supervisor measured; 0
// if unknown.
func elapsed(r *store.RunFacts) time.Duration {
	if !r.Started.IsZero() && !r.Ended.IsZero() {
		return r.Ended.Sub(r.Started)
	}
	for _, v := range r.Results {
		if v.Measure == metrics.FigureRunSeconds && v.Value != nil {
			return time.Duration(*v.Value * float64(time.Second))
		}
	}
	return 0
}
