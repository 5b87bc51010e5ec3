package store

import (
	"maps"
	"sync"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// digests replaces secrets by digests in records that contain them in plain text: imported files
// and records of earlier versions. The key of the digests is in a file next to the database. It
// is read, or created, when the first secret is found.
type digests struct {
	once sync.Once
	path string // path of the database
	make bool   // create a key if there is none, which requires a writable database
	key  redact.Key
	err  error
}

// hide implements redact.Hider.
func (d *digests) hide(secret string) string {
	if hidden := redact.Key(nil).Hide(secret); hidden != redact.Withheld || secret == redact.Withheld {
		return hidden
	}
	d.once.Do(func() {
		if d.make {
			d.key, d.err = redact.ReadKey(redact.KeyFile(d.path))
			return
		}
		var err error
		if d.key, err = redact.LoadKey(redact.KeyFile(d.path)); d.path == "" || err != nil {
			d.key = redact.NewKey() // used only by this command; different secrets still have different digests
		}
	})
	return d.key.Hide(secret)
}

// withoutSecrets returns the run in the form in which it is stored, without secrets, because
// databases are copied and mailed. Secrets that distinguish runs are replaced by digests, secrets
// in prose by a word. prose hides those in a text, value those in the value of a parameter.
func withoutSecrets(run metrics.Run, prose func(text string) string, value func(name string, v any) any) metrics.Run {
	run.Detail = prose(run.Detail)
	run.Parameters = maps.Clone(run.Parameters)
	for key, v := range run.Parameters {
		run.Parameters[key] = value(key, v)
	}
	return run
}

// hideIn hides the secrets in an event that a program wrote. The function hide is used for prose,
// name for names that distinguish figures and runs.
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
			if !redact.Named(key, value) {
				variables[key] = name(value)
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
