package study

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Site holds the settings that differ between clusters, so that a study file can be used
// on any cluster. The zero value (DefaultSite) suits a cluster without special needs.
type Site struct {
	File string // path as given to LoadSite; "" for DefaultSite

	Name      string `toml:"name"`
	Account   string `toml:"account"`
	QOS       string `toml:"qos"`
	Runs      string `toml:"runs"`      // folder of the run folders; "": runs next to the study file
	Interface string `toml:"interface"` // network interface of the collectives; "": chosen by the route to the first node
	CPUBind   string `toml:"cpu_bind"`  // srun --cpu-bind of every step; "": Slurm's own default
	Hint      string `toml:"hint"`      // srun --hint, "nomultithread" on many sites

	Backend string `toml:"backend"` // scheduler that runs the jobs; "": DefaultBackend

	Worker string `toml:"worker"` // path of scalebench-worker on the nodes; "": the one next to scalebench
	Python string `toml:"python"` // interpreter of the Python frameworks
	// Pythons are interpreters for single frameworks, by the framework's name. They are
	// needed if the packages of two frameworks conflict.
	Pythons map[string]string `toml:"pythons"`

	Modules     []string          `toml:"modules"`     // loaded before the step
	Setup       []string          `toml:"setup"`       // shell lines, run unchanged before the step
	Environment map[string]string `toml:"environment"` // exported to every program
	Container   Container         `toml:"container"`
	Stage       Stage             `toml:"stage"`
	Template    string            `toml:"template"` // path of a custom batch script template
	Options     map[string]string `toml:"options"`  // any other sbatch option, without dashes: constraint = "a100"

	Partitions []Partition `toml:"partitions"` // a point runs in the first partition that it fits into
	Variants   []Variant   `toml:"variant"`
	Prices     []Price     `toml:"prices"`
	Energy     Energy      `toml:"energy"`
	Notify     Notify      `toml:"notify"` // of studies without a table of their own

	lines  lines
	source []byte // the file's text
	mode   fs.FileMode
}

// Problem returns a Problem about the value at a TOML path in the site file, for checks in
// other packages.
func (s *Site) Problem(path, message string) Problem {
	return Problem{File: s.File, Line: s.lines.of(path), Path: path, Message: message}
}

// Source returns the file's text as read; nil for DefaultSite.
func (s *Site) Source() []byte { return s.source }

// Mode returns the most permissive file mode that a copy of the file may have. It is the
// file's own mode, or only the owner's part of it if the file has shell lines or variables,
// which may be secret, or if its text was not read from a file.
func (s *Site) Mode() fs.FileMode {
	if s.Private() {
		return sharedfs.ModePrivate
	}
	return s.mode&sharedfs.ModeOpen | sharedfs.ModePrivate
}

// Private reports whether the site has shell lines or variables, which may be secret.
func (s *Site) Private() bool {
	withVariables := func(v Variant) bool { return len(v.Environment) > 0 }
	return len(s.Environment) > 0 || len(s.Setup) > 0 || slices.ContainsFunc(s.Variants, withVariables)
}

// Secrets returns the values of the site's variables and the parts of its shell lines that look
// like secrets. For the secrets of a variant, call it on the result of As.
func (s *Site) Secrets() []string {
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		variables = append(variables, name+"="+s.Environment[name])
	}
	return slices.Concat(redact.Variables(variables), redact.Secrets(s.Setup))
}

// A Container says how to run programs in a container.
type Container struct {
	Runtime string   `toml:"runtime"` // "", "pyxis" or "apptainer"
	Image   string   `toml:"image"`
	Mounts  []string `toml:"mounts"` // "SRC:DST"
	Workdir string   `toml:"workdir"`
}

// A Stage describes what is copied to each node's local disk before a run's programs start,
// and to which folder. Whether the training data is copied is decided by the study
// (data.stage).
type Stage struct {
	Dir    string `toml:"dir"`    // folder on each node; $NAME is a variable of the job's environment there; "": the node's folder for temporary files
	Keep   bool   `toml:"keep"`   // keep staged files for later jobs
	Python string `toml:"python"` // archive of a Python environment that the programs use
}

// A Partition is a partition of the cluster and its limits; 0 or "": no limit.
type Partition struct {
	Name          string            `toml:"name"`
	MinWorkers    int               `toml:"min_workers"` // only runs with at least MinWorkers and at most MaxWorkers use this partition
	MaxWorkers    int               `toml:"max_workers"`
	MaxNodes      int               `toml:"max_nodes"`
	MaxTime       Duration          `toml:"max_time"`
	CPUsPerNode   int               `toml:"cpus_per_node"`
	GPUsPerNode   int               `toml:"gpus_per_node"`
	GPUType       string            `toml:"gpu_type"` // as in --gres=gpu:TYPE:N
	MemoryPerNode Bytes             `toml:"memory_per_node"`
	Account       string            `toml:"account"` // overrides the site's account
	QOS           string            `toml:"qos"`
	Options       map[string]string `toml:"options"` // added to the site's options, and override them
}

// A Price is the cost of an hour, and the runs to which it applies.
type Price struct {
	Per       string         `toml:"per"`       // what is priced: "node", "gpu", "vcpu", or "billing", a unit of Slurm's billing
	Hour      float64        `toml:"hour"`      // in Currency
	Currency  string         `toml:"currency"`  // ISO 4217 code, "EUR", or a unit of account, "core-h"
	Partition string         `toml:"partition"` // "": every partition
	Where     map[string]any `toml:"where"`     // values that a run's keys or labels must have: string, bool, int64 or float64
	Market    string         `toml:"market"`    // "on-demand" or "spot"; "": on demand

	Granularity Duration `toml:"granularity"` // billing interval: times are rounded up to a multiple of it; 0: no rounding
	Minimum     Duration `toml:"minimum"`     // minimum billed time

	TRESBillingWeights string `toml:"tres_billing_weights"` // the partition's value in slurm.conf; with per = "billing"
	MaxTRES            bool   `toml:"max_tres"`             // PriorityFlags=MAX_TRES: bill the largest weighted amount instead of the sum

	// Machine names a machine type in a price list; the next keys give its size. It is for
	// per = "node". The price applies to runs whose label "machine" has this name.
	Machine string `toml:"machine"`
	VCPUs   int    `toml:"vcpus"`
	Memory  Bytes  `toml:"memory"`
	GPUs    int    `toml:"gpus"`

	AsOf   string `toml:"as_of"` // date of the price, "2026-01-31"; if several prices apply equally, the latest is used
	Source string `toml:"source"`
}

// Energy is the price of a kilowatt-hour and its CO₂ emissions; nil: unknown.
type Energy struct {
	PerKWh    *float64 `toml:"per_kwh"` // in Currency
	Currency  string   `toml:"currency"`
	CO2PerKWh *float64 `toml:"co2_per_kwh"` // grams
	AsOf      string   `toml:"as_of"`       // date of the two values, "2026-01-31"
	Source    string   `toml:"source"`
}

// DefaultBackend is the scheduler of a site that does not set one.
const DefaultBackend = "slurm"

// DefaultSite returns the site that is used without a site file. Its jobs use the cluster's
// default partition, without known limits.
func DefaultSite() *Site { return &Site{} }

// LoadSite reads and checks a site file. Its error is a Problems value with all mistakes in
// it, or says that the file cannot be read.
func LoadSite(path string) (*Site, error) {
	source, mode, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the site file: %w", err)
	}
	s, err := ParseSite(path, source)
	if s != nil {
		s.mode = mode
	}
	return s, err
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// ParseSite is like LoadSite, for the content of a file instead of its path.
func ParseSite(path string, source []byte) (*Site, error) {
	d, err := newDecoder(path, source)
	if err != nil {
		return nil, err
	}
	s := DefaultSite()
	s.File, s.source, s.lines = path, source, d.lines
	d.into("", d.top, s)

	for key, value := range map[string]string{"name": s.Name, "backend": s.Backend, "account": s.Account, "qos": s.QOS, "interface": s.Interface,
		"cpu_bind": s.CPUBind, "hint": s.Hint, "worker": s.Worker, "python": s.Python, "runs": s.Runs, "template": s.Template, "stage.dir": s.Stage.Dir, "stage.python": s.Stage.Python} {
		d.rule(key, oneLine(value))
	}
	s.Worker, s.Template = d.path("worker", s.Worker), d.path("template", s.Template)
	s.Stage.Python, s.Runs = d.path("stage.python", s.Stage.Python), d.path("runs", s.Runs)
	s.Python = d.interpreter("python", s.Python)
	d.stage(s)
	d.environment("environment", s.Environment)
	for name, python := range s.Pythons {
		if wrong := oneLine(python); wrong != "" || python == "" {
			d.rule(join("pythons", name), cmp.Or(wrong, "missing; name the framework's interpreter"))
		}
		s.Pythons[name] = d.interpreter(join("pythons", name), python)
	}
	d.options("options", s.Options)
	d.container("container", s.Container)
	for i, p := range s.Partitions {
		d.partition(fmt.Sprintf("partitions[%d]", i), p)
	}
	d.variants(s)
	for i, p := range s.Prices {
		at := fmt.Sprintf("prices[%d]", i)
		s.Prices[i].Where = d.price(at, p)
	}
	d.energy(s.Energy)
	s.Notify = d.notify(s.Notify)
	return s, d.problems.orNil()
}

func (d *decoder) energy(e Energy) {
	for key, v := range map[string]*float64{"energy.per_kwh": e.PerKWh, "energy.co2_per_kwh": e.CO2PerKWh} {
		if v != nil {
			d.rule(key, atLeast(0)(*v))
		}
	}
	if (e.PerKWh != nil) != (e.Currency != "") {
		d.conflict("energy.per_kwh", "needs energy.currency, and that needs it; set both or neither", "energy.currency")
	}
}

// SecretWarnings returns a warning for each value of the site file that looks like a secret.
func (s *Site) SecretWarnings() Problems {
	var list Problems
	doubt := func(path, message string) {
		list = append(list, Problem{File: s.File, Path: path, Message: message + " looks like a secret. It is written to batch scripts (mode 0700) and to the copy of this file in the run folder (mode 0600). Let a line of setup read it from a file that only you can read"})
	}
	variables := func(at string, environment map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(environment)) {
			if value := environment[name]; value != "" && (redact.Named(name, value) || redact.Text(value) != value) {
				doubt(at, name)
			}
		}
	}
	variables("environment", s.Environment)
	for i, v := range s.Variants {
		variables(fmt.Sprintf("variant[%d].environment", i), v.Environment)
	}
	for i, line := range s.Setup {
		if redact.Text(line) != line {
			doubt(fmt.Sprintf("setup[%d]", i), "part of it")
		}
	}
	return list
}

// interpreter returns the path or name of a Python interpreter. Paths are made absolute; a
// name without a slash is kept, and is looked up in PATH on the host where it runs.
func (d *decoder) interpreter(key, python string) string {
	if !strings.Contains(python, "/") {
		return python
	}
	return d.path(key, python)
}

// Interpreter returns the Python interpreter for a framework: its entry in Pythons, or else
// Python.
func (s *Site) Interpreter(framework string) string {
	return cmp.Or(s.Pythons[framework], s.Python)
}

// nameless is the message for a price that gives a machine's size without naming the
// machine.
const nameless = "is the size of a machine, but its name is missing; add machine = \"NAME\", as the price list calls it"

// price checks a price and returns its labels with flat names, so that {workload.batch =
// 64} and {"workload.batch" = 64} are equal.
func (d *decoder) price(at string, p Price) map[string]any {
	d.rule(at+".per", among("node", "gpu", "vcpu", "billing")(p.Per))
	d.rule(at+".hour", atLeast(0)(p.Hour))
	if p.Currency == "" {
		d.rule(at+".currency", "missing; name it, like \"EUR\"")
	}
	d.rule(at+".market", among("", "on-demand", "spot")(p.Market))
	if (p.Per == "billing") != (p.TRESBillingWeights != "") {
		d.conflict(at+".tres_billing_weights", "belongs to per = \"billing\", and to no other; set both or neither", at+".per")
	}
	if p.MaxTRES && p.Per != "billing" {
		d.conflict(at+".max_tres", "belongs to tres_billing_weights; this price is per "+p.Per, at+".per")
	}
	d.rule(at+".machine", oneLine(p.Machine))
	switch {
	case p.Machine == "" && p.VCPUs != 0:
		d.rule(at+".vcpus", nameless)
	case p.Machine == "" && p.Memory != 0:
		d.rule(at+".memory", nameless)
	case p.Machine == "" && p.GPUs != 0:
		d.rule(at+".gpus", nameless)
	case p.Machine != "" && p.Per != "node":
		d.conflict(at+".machine", fmt.Sprintf("%q is priced per %s; a machine has a price of its own, per = \"node\"", p.Machine, p.Per), at+".per")
	case p.Machine != "" && (p.VCPUs == 0 || p.Memory == 0):
		d.rule(at+".machine", "also needs vcpus and memory, such as vcpus = 4, memory = \"16G\"")
	}
	for key, n := range map[string]int{"vcpus": p.VCPUs, "gpus": p.GPUs} {
		if n < 0 || n > 1<<20 {
			d.rule(at+"."+key, fmt.Sprintf("want 0 to %d, got %d", 1<<20, n))
		}
	}
	if p.Where == nil {
		return nil
	}
	labels := map[string]any{}
	var flatten func(prefix string, t map[string]any)
	flatten = func(prefix string, t map[string]any) {
		for key, v := range t {
			path := join(prefix, key)
			switch v := v.(type) {
			case map[string]any:
				flatten(path, v)
			case string, bool, int64, float64:
				labels[path] = v
			default:
				d.problem(at+".where", fmt.Sprintf("%s is a list or a date; want a string, a number, true or false", path))
			}
		}
	}
	flatten("", p.Where)
	return labels
}

// stage checks the [stage] table against the rest of the site file.
func (d *decoder) stage(s *Site) {
	switch {
	case s.Stage.Python != "" && s.Python != "":
		d.rule("stage.python", "python names another interpreter; set one of the two")
	case s.Stage.Python != "" && len(s.Pythons) > 0:
		d.rule("stage.python", "pythons names other interpreters; set one of the two")
	case s.Stage.Python != "" && s.Container.Image != "":
		d.rule("stage.python", "the programs run in a container, which has its own Python; set one of the two")
	}
	// Variables in the folder's name have their values on the node, so they are not
	// expanded here.
	if dir := s.Stage.Dir; dir != "" && dir[0] != '/' && dir[0] != '$' {
		d.rule("stage.dir", fmt.Sprintf("%q is not an absolute path; write one, which may begin with a variable of the job's, like \"$TMPDIR\"", dir))
	}
}

func (d *decoder) partition(at string, p Partition) {
	if p.Name == "" {
		d.rule(at+".name", "missing; name the partition as sinfo does")
	}
	d.rule(at+".name", oneLine(p.Name))
	counts := map[string]int{"min_workers": p.MinWorkers, "max_workers": p.MaxWorkers, "max_nodes": p.MaxNodes,
		"cpus_per_node": p.CPUsPerNode, "gpus_per_node": p.GPUsPerNode}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if counts[key] < 0 {
			d.rule(at+"."+key, fmt.Sprintf("want 0 (no such limit) or more, got %d", counts[key]))
		}
	}
	if p.MaxWorkers > 0 && p.MinWorkers > p.MaxWorkers {
		d.conflict(at+".min_workers", fmt.Sprintf("%d is more than max_workers, %d", p.MinWorkers, p.MaxWorkers), at+".max_workers")
	}
	d.options(at+".options", p.Options)
}
