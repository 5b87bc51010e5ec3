package main

import "github.com/scalebench/scalebench/metrics/measure"

// targetFlag is --target; its Target is nil if it was not given.
type targetFlag struct{ *measure.Target }

// Set implements cli.Generic.
func (f *targetFlag) Set(text string) error {
	t, err := measure.ParseTarget(text)
	if err == nil {
		f.Target = &t
	}
	return err
}

func (f *targetFlag) String() string {
	if f.Target == nil {
		return ""
	}
	return f.Target.String()
}
