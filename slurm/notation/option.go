package notation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// This file knows the options of sbatch: their names, whether they take a
// value, and which of them scalebench decides itself.
//
// sbatch reads a long option by getopt_long, which accepts every unambiguous
// beginning of its name: job-nam is job-name. What is unambiguous differs from
// one version to the next, so that here a name counts in full only. A name that
// no version knows is left to sbatch: plugins of the site may bring it.

// Option is a long option of sbatch.
type Option struct {
	Name  string
	Short byte // its letter; 0 for none
	Value OptionValue
	Field string // of slurm.Script, "Submit" or "Cluster", that decides it; "": the site may
}

// Options are the options, by name.
func Options() []Option { return slices.Clone(table) }

// OptionValue says whether an option takes a value.
type OptionValue int

// Whether an option takes a value.
const (
	none OptionValue = iota
	required
	optional // or none, depending on the version
)

// OwnedError is an option that scalebench decides itself.
type OwnedError struct {
	Given  string // as it was written
	Option Option
}

func (e *OwnedError) Error() string { return e.Means() + "is decided by " + e.Option.Field }

// Means begins the sentence that says who decides the option.
func (e *OwnedError) Means() string {
	if e.Given == e.Option.Name {
		return ""
	}
	return "means " + e.Option.Name + ", which "
}

var form = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// CheckOption says why a long option, without its dashes, cannot go into a batch
// script beside those that scalebench writes: *OwnedError where it decides the
// option itself. An empty value stands for none. The error's text goes on from
// the option's name.
func CheckOption(name, value string) error {
	if !form.MatchString(name) {
		return errors.New("is not a long sbatch option; write it in lower case without leading dashes, like constraint")
	}
	o, known, err := find(name)
	switch {
	case err != nil:
		return err
	case known && o.Field != "":
		return &OwnedError{name, o}
	case strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Errorf("is %q; control characters cannot be in an #SBATCH line", value)
	case known && o.Value == required && value == "":
		// sbatch would take the next line's first word for it.
		return errors.New("needs a value")
	case known && o.Value == none && value != "":
		return fmt.Errorf("is %q; the option takes no value, so leave it empty", value)
	}
	return nil
}

// find looks a long option up; known is false for one that only a plugin of the
// site can know.
func find(name string) (o Option, known bool, err error) {
	var meant []Option
	for _, o := range table {
		if o.Name == name {
			return o, true, nil
		}
		if strings.HasPrefix(o.Name, name) {
			meant = append(meant, o)
		}
	}
	switch {
	case len(meant) == 0:
		return Option{}, false, nil
	case len(meant) == 1 && meant[0].Field != "":
		return Option{}, false, &OwnedError{name, meant[0]}
	}
	var names []string
	for _, o := range meant {
		names = append(names, o.Name)
	}
	return Option{}, false, fmt.Errorf("is short for %s; write the option in full", strings.Join(names, " or "))
}
