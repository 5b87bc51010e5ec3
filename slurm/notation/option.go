package notation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// This file describes the options of sbatch: names, whether they take a value, and which ones scalebench
// decides.
//
// sbatch parses long options with getopt_long, which accepts every unambiguous prefix: job-nam means job-name.
// Which prefixes are unambiguous depends on the version, so here only full names are valid. Names that no
// version has are passed to sbatch: they may belong to a plugin of the site.

// An Option is a long option of sbatch.
type Option struct {
	Name  string
	Short byte // one-letter form; 0 without one
	Value OptionValue
	Field string // field of slurm.Script, "Submit" or "Cluster", that decides it; "" if the site may set it
}

// Options returns the options, sorted by name.
func Options() []Option { return slices.Clone(table) }

// An OptionValue tells whether an option takes a value.
type OptionValue int

// Values of OptionValue.
const (
	none OptionValue = iota
	required
	optional // depends on the version
)

// An OwnedError reports an option that scalebench decides.
type OwnedError struct {
	Given  string // as the user wrote it
	Option Option
}

func (e *OwnedError) Error() string { return e.Means() + "is decided by " + e.Option.Field }

// Means returns the beginning of a sentence that names the field that decides the option.
func (e *OwnedError) Means() string {
	if e.Given == e.Option.Name {
		return ""
	}
	return "means " + e.Option.Name + ", which "
}

var form = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// CheckOption returns an error if a site may not add a long option, given without dashes, to a batch script;
// *OwnedError if scalebench decides the option. An empty value means no value. The error's text continues after
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
		// sbatch would take the first word of the next line as its value.
		return errors.New("needs a value")
	case known && o.Value == none && value != "":
		return fmt.Errorf("is %q; the option takes no value, so leave it empty", value)
	}
	return nil
}

// find looks up a long option. known is false for a name that only a plugin of the site can have.
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
