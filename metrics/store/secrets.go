package store

import (
	"maps"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// withoutSecrets is the run as it is stored: a database is copied and mailed.
// hide is redact.Text, or finds the same.
func withoutSecrets(run metrics.Run, hide func(string) string) metrics.Run {
	if len(run.Secrets) > 0 {
		run.Detail = redact.Known(run.Secrets)(run.Detail)
	} else {
		run.Detail = hide(run.Detail)
	}
	run.Parameters = maps.Clone(run.Parameters)
	for key, v := range run.Parameters {
		run.Parameters[key] = hideValue(key, v, hide)
	}
	return run
}

// hideValue hides the secrets in a parameter; of one whose key says that it is
// a secret, all of it.
func hideValue(key string, v any, hide func(string) string) any {
	switch v := v.(type) {
	case string:
		if name := key[strings.LastIndexByte(key, '.')+1:]; redact.Name(name) {
			return redact.Key(nil).Hide(v)
		}
		return hide(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = hideValue(key, v[i], hide)
		}
		return list
	}
	return v
}

// hideIn hides the secrets in what a program has written into an event. What
// is prose, hide looks through; what names something is left whole unless it
// looks like a secret itself, which name knows: redact.Text, or what finds the same.
func hideIn(e *metrics.Event, hide, name func(string) string) {
	each := func(hide func(string) string, texts ...*string) {
		for _, text := range texts {
			*text = hide(*text)
		}
	}
	switch {
	case e.Environment != nil:
		variables := map[string]string{}
		for key, value := range e.Environment.Variables {
			if !redact.Name(key) {
				variables[key] = hide(value)
			}
		}
		if len(variables) > 0 || len(e.Environment.Variables) > 0 {
			e.Environment.Variables = variables
		}
		for program, version := range e.Environment.Versions {
			e.Environment.Versions[program] = name(version)
		}
	case e.Staged != nil:
		each(name, &e.Staged.Source, &e.Staged.Path)
	case e.Figure != nil:
		each(name, &e.Figure.Name, &e.Figure.File, &e.Figure.PlusMinusIs)
		each(hide, &e.Figure.Note)
		for key, v := range e.Figure.At {
			if text, ok := v.(string); ok {
				e.Figure.At[key] = name(text)
			}
		}
	case e.Note != nil:
		each(hide, &e.Note.Text)
	case e.Telemetry != nil:
		for i := range e.Telemetry.Columns {
			c := &e.Telemetry.Columns[i]
			each(name, &c.Name, &c.Of, &c.Source, &c.Unit)
		}
		for key, why := range e.Telemetry.Missing {
			e.Telemetry.Missing[key] = name(why)
		}
	case e.Phase != nil:
		each(hide, &e.Phase.Text)
	case e.Error != nil:
		each(hide, &e.Error.Where, &e.Error.Message)
	case e.Stop != nil:
		each(hide, &e.Stop.Cause)
	}
}
