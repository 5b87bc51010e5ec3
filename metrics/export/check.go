package export

import (
	"encoding/xml"
	"io"
)

// A Check is a test case of a JUnit report that is not a run: a compared point, or a check of a
// cluster. It passes unless it failed or was skipped.
type Check struct {
	Class, Name string
	Failure     string // why it failed; "" if it did not
	Skipped     string // why nothing can be said; "" if something can
	Output      string // what was found
}

// WriteChecks writes the checks as a JUnit report with one test suite.
func WriteChecks(w io.Writer, name string, list []Check) error {
	suite := &junitSuite{Name: name}
	for _, check := range list {
		c := junitCase{Name: check.Name, Class: check.Class, Output: check.Output}
		switch {
		case check.Failure != "":
			c.Failure = &junitCause{Message: check.Failure, Text: check.Failure}
		case check.Skipped != "":
			c.Skipped = &junitCause{Message: check.Skipped}
		}
		suite.add(c)
	}
	return encodeJUnit(w, junitSuites{Name: name, Suites: []*junitSuite{suite}})
}

// encodeJUnit writes a report and the totals of its suites.
func encodeJUnit(w io.Writer, all junitSuites) error {
	for _, suite := range all.Suites {
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
