package study

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/scalebench/scalebench/slurm/notation"
)

// A Variant is a [[variant]] of the site file: another way to run the same points on this
// cluster. A study can compare variants (sweep.variant). A key that the variant does not
// set has the site's value. The name of a variant is part of a point's identity. Its
// content is part of the runs' fingerprint, like the site's settings.
type Variant struct {
	Name string `toml:"name"`

	// Where the variant's points run. Device and CPUsPerWorker replace the values of the
	// study, since one study cannot set them for both a CPU and a GPU partition.
	Partition     string `toml:"partition"`  // the only partition in which its points run
	Constraint    string `toml:"constraint"` // sbatch --constraint
	Device        string `toml:"device"`     // overrides resources.device
	CPUsPerWorker int    `toml:"cpus_per_worker"`

	// The software with which the variant's points run.
	Python      string            `toml:"python"`      // interpreter for all frameworks
	Container   *Container        `toml:"container"`   // runtime = "none" means no container
	Modules     []string          `toml:"modules"`     // replaces the site's modules; []: no modules, nil: the site's modules
	Environment map[string]string `toml:"environment"` // added to the site's variables, and override them
}

// As returns the site with the changes that a variant makes. If variant is "", it returns
// the site unchanged.
func (s *Site) As(variant string) *Site {
	v := s.variant(variant)
	if v == nil {
		return s
	}
	one := *s
	if v.Python != "" {
		one.Python, one.Pythons, one.Stage.Python = v.Python, nil, ""
	}
	if v.Container != nil {
		one.Container = *v.Container
	}
	if v.Modules != nil {
		one.Modules = v.Modules
	}
	one.Environment = map[string]string{}
	maps.Copy(one.Environment, s.Environment)
	maps.Copy(one.Environment, v.Environment)
	if v.Partition != "" {
		one.Partitions = []Partition{{Name: v.Partition}}
		if len(s.Partitions) > 0 {
			one.Partitions = slices.DeleteFunc(slices.Clone(s.Partitions), func(p Partition) bool { return p.Name != v.Partition })
		}
	}
	if v.Constraint != "" {
		constrain := func(options map[string]string) map[string]string {
			options = maps.Clone(options)
			if options == nil {
				options = map[string]string{}
			}
			options["constraint"] = v.Constraint
			return options
		}
		one.Options = constrain(s.Options)
		one.Partitions = slices.Clone(one.Partitions)
		for i := range one.Partitions {
			one.Partitions[i].Options = constrain(one.Partitions[i].Options)
		}
	}
	return &one
}

// variant returns the variant with this name; nil if no variant has it.
func (s *Site) variant(name string) *Variant {
	if i := slices.IndexFunc(s.Variants, func(v Variant) bool { return v.Name == name }); i >= 0 && name != "" {
		return &s.Variants[i]
	}
	return nil
}

// Unfit returns why a variant cannot be used by `run` on this machine or within an
// existing allocation; "" if it can.
func (s *Site) Unfit(variant string, allocation bool) string {
	if s == nil || s.variant(variant) == nil {
		return ""
	}
	v := s.variant(variant)
	switch {
	case v.Constraint != "":
		return "only Slurm can meet its constraint, in a separate job"
	case allocation:
		return ""
	case len(v.Modules) > 0:
		return "its modules are loaded by batch scripts only"
	case v.Container != nil && v.Container.Image != "":
		return "its container is started by batch scripts only"
	case v.Partition != "" && v.Python == "" && len(v.Environment) == 0 && v.Device == "" && v.CPUsPerWorker == 0:
		return fmt.Sprintf("it changes only the partition, %s", v.Partition)
	}
	return ""
}

// variants adds problems about the [[variant]] tables.
func (d *decoder) variants(s *Site) {
	for i := range s.Variants {
		at, v := fmt.Sprintf("variant[%d]", i), &s.Variants[i]
		if !namePattern.MatchString(v.Name) {
			d.rule(at+".name", fmt.Sprintf("%q cannot name a variant; use up to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit", v.Name))
		}
		d.distinct(s.Variants[:i], v, at)
		var names []string
		for _, p := range s.Partitions {
			names = append(names, p.Name)
		}
		if v.Partition != "" && len(names) > 0 && !slices.Contains(names, v.Partition) {
			d.conflict(at+".partition", oneOf(v.Partition, quoted(names)), "partitions")
		}
		for key, value := range map[string]string{"partition": v.Partition, "constraint": v.Constraint, "python": v.Python} {
			d.rule(join(at, key), oneLine(value))
		}
		if v.Constraint != "" {
			if err := notation.CheckOption("constraint", v.Constraint); err != nil {
				d.rule(at+".constraint", err.Error())
			}
		}
		if v.Device != "" {
			d.rule(at+".device", among("cpu", "gpu")(v.Device))
		}
		d.rule(at+".cpus_per_worker", within(0, 4096)(v.CPUsPerWorker))
		v.Python = d.interpreter(at+".python", v.Python)
		d.environment(at+".environment", v.Environment)
		if v.Container != nil {
			d.container(at+".container", *v.Container, "none")
			if v.Container.Image != "" && cmp.Or(v.Python, s.Stage.Python) == s.Stage.Python && s.Stage.Python != "" {
				d.rule(at+".container", "the programs run in a container, which has its own Python, and stage.python brings another; set one of the two")
			}
		}
	}
}

// distinct adds a problem if a variant has the name or the content of an earlier variant.
func (d *decoder) distinct(before []Variant, v *Variant, at string) {
	for j, earlier := range before {
		same := earlier
		same.Name = v.Name
		switch {
		case earlier.Name == v.Name:
			d.rule(at+".name", fmt.Sprintf("%q is also the name of variant[%d]", v.Name, j))
		case reflect.DeepEqual(same, *v):
			d.conflict(at, fmt.Sprintf("%q is the same as variant[%d], %q: both would run the same", v.Name, j, earlier.Name), fmt.Sprintf("variant[%d]", j))
		}
	}
}

// environment adds problems about the environment variables of a site or variant.
func (d *decoder) environment(at string, variables map[string]string) {
	for name, value := range variables {
		if !variableName.MatchString(name) {
			d.problem(join(at, name), fmt.Sprintf("%q cannot name an environment variable", name))
		}
		if err := given(value); err != nil {
			d.problem(join(at, name), err.Error())
		}
	}
}

// container adds problems about a [container] table. more are valid runtimes in addition
// to the usual ones.
func (d *decoder) container(at string, c Container, more ...string) {
	d.rule(at+".runtime", among(append([]string{"", "pyxis", "apptainer"}, more...)...)(c.Runtime))
	none := c.Runtime == "" || c.Runtime == "none"
	if none != (c.Image == "") {
		d.conflict(at, "runtime and image belong together; set both or neither", at+".runtime", at+".image")
	}
}

// variants checks that the site has the variants that the study sweeps, and that a
// variant does not set something that the study sweeps.
func (x *expansion) variants() {
	for _, a := range x.study.axes {
		if a.path != "variant" {
			continue
		}
		for i, value := range a.values {
			at, name := fmt.Sprintf("sweep.%s[%d]", a.key, i), value.String()
			v := x.site.variant(name)
			if v == nil {
				x.problem(at, x.noVariant(name))
				continue
			}
			names := func(p Partition) bool { return p.Name == v.Partition }
			if v.Partition != "" && len(x.site.Partitions) > 0 && !slices.ContainsFunc(x.site.Partitions, names) {
				x.problem(at, fmt.Sprintf("%q needs partition %s, but this allocation is in %s; leave the variant out", name, v.Partition, x.site.Partitions[0].Name))
			}
			for _, decided := range []struct {
				path string
				is   bool
			}{{"resources.device", v.Device != ""}, {"resources.cpus_per_worker", v.CPUsPerWorker != 0}} {
				if decided.is && slices.ContainsFunc(x.study.axes, func(b axis) bool { return b.path == decided.path }) {
					x.problem(decided.path, fmt.Sprintf("is swept, and variant %q of %s decides it; keep one", name, x.site.File))
				}
			}
		}
	}
}

// noVariant returns the message that the site has no variant with this name.
func (x *expansion) noVariant(name string) string {
	if len(x.site.Variants) == 0 {
		where := "no site file; name one that has it (study.site or --site)"
		if x.site.File != "" {
			where = fmt.Sprintf("%s has no [[variant]]; add one", x.site.File)
		}
		return fmt.Sprintf("%q is not known: %s", name, where)
	}
	names := make([]string, len(x.site.Variants))
	for i, v := range x.site.Variants {
		names[i] = v.Name
	}
	return oneOf(name, names) + ", the [[variant]] tables of " + x.site.File
}
