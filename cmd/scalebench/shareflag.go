package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// shareFlag is a share, written 50% or 0.5.
type shareFlag struct{ to *float64 }

// Set implements cli.Generic.
func (f *shareFlag) Set(text string) error {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil {
		return errors.New("want a share, like 50% or 0.5")
	}
	if *f.to = x; percent {
		*f.to = x / 100
	}
	return nil
}

func (f *shareFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return ""
	}
	return number.Percent(*f.to)
}
