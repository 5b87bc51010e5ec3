package study

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
)

// Site is what differs between clusters, so that one study runs on any of
// them. Its zero value, after DefaultSite, is a cluster about which nothing
// needs to be said.
type Site struct {
	File string // as given to LoadSite; "" for DefaultSite

	Name      string `toml:"name"`
	Account   string `toml:"account"`
	QOS       string `toml:"qos"`
	Interface string `toml:"interface"` // network interface of the collectives; "": the route to the first node decides
	CPUBind   string `toml:"cpu_bind"`  // srun --cpu-bind of every step; "": Slurm's own default
	Hint      string `toml:"hint"`      // srun --hint, "nomultithread" on many sites

	Worker string `toml:"worker"` // path of scalebench-worker on the nodes; "": the one beside scalebench
	Python string `toml:"python"` // interpreter of the Python frameworks

	Modules     []string          `toml:"modules"`     // loaded before the step
	Setup       []string          `toml:"setup"`       // shell lines, run as they stand before the step
	Environment map[string]string `toml:"environment"` // exported to every program
	Container   Container         `toml:"container"`
	Template    string            `toml:"template"` // a batch script template of the site's own
	Options     map[string]string `toml:"options"`  // any other sbatch option, without the dashes: constraint = "a100"

	Partitions []Partition `toml:"partitions"` // the first that a point fits into gets it
	Prices     []Price     `toml:"prices"`
}

// Container is how programs are put into a container.
type Container struct {
	Runtime string   `toml:"runtime"` // "", "pyxis" or "apptainer"
	Image   string   `toml:"image"`
	Mounts  []string `toml:"mounts"` // "SRC:DST"
	Workdir string   `toml:"workdir"`
}

// Partition is one of the cluster's partitions and its limits; 0 or "" means
// that it has no such limit.
type Partition struct {
	Name          string            `toml:"name"`
	MinWorkers    int               `toml:"min_workers"` // smallest and largest point that is sent here
	MaxWorkers    int               `toml:"max_workers"`
	MaxNodes      int               `toml:"max_nodes"`
	MaxTime       Duration          `toml:"max_time"`
	CPUsPerNode   int               `toml:"cpus_per_node"`
	GPUsPerNode   int               `toml:"gpus_per_node"`
	GPUType       string            `toml:"gpu_type"` // as in --gres=gpu:TYPE:N
	MemoryPerNode Bytes             `toml:"memory_per_node"`
	Account       string            `toml:"account"` // in place of the site's
	QOS           string            `toml:"qos"`
	Options       map[string]string `toml:"options"` // over the site's
}

// Price is what an hour costs.
type Price struct {
	Per       string  `toml:"per"`       // "node", "gpu" or "vcpu"
	Hour      float64 `toml:"hour"`      // in Currency
	Currency  string  `toml:"currency"`  // ISO 4217, "EUR"
	Partition string  `toml:"partition"` // "": every partition
	AsOf      string  `toml:"as_of"`     // date of the price
	Source    string  `toml:"source"`
}

// DefaultSite is the site without a site file: one unnamed partition without
// known limits, the cluster's default.
func DefaultSite() *Site { return &Site{} }

// LoadSite reads a site file. The error is Problems, or that the file cannot
// be read.
func LoadSite(path string) (*Site, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the site file: %w", err)
	}
	return ParseSite(path, source)
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	optionName   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// ParseSite is LoadSite of a file's content.
func ParseSite(path string, source []byte) (*Site, error) {
	d, err := newDecoder(path, source)
	if err != nil {
		return nil, err
	}
	s := DefaultSite()
	s.File = path
	d.into("", d.top, s)

	for key, value := range map[string]string{"name": s.Name, "account": s.Account, "qos": s.QOS, "interface": s.Interface,
		"cpu_bind": s.CPUBind, "hint": s.Hint, "worker": s.Worker, "python": s.Python, "template": s.Template} {
		if wrong := oneLine(value); wrong != "" {
			d.problem(key, wrong)
		}
	}
	s.Worker, s.Template = d.path("worker", s.Worker), d.path("template", s.Template)
	for name := range s.Environment {
		if !variableName.MatchString(name) {
			d.problem("environment", fmt.Sprintf("%q cannot name an environment variable", name))
		}
	}
	d.options("options", s.Options)
	if wrong := among("", "pyxis", "apptainer")(s.Container.Runtime); wrong != "" {
		d.problem("container.runtime", wrong)
	} else if (s.Container.Runtime == "") != (s.Container.Image == "") {
		d.problem("container", "runtime and image belong together; set both or neither")
	}
	for i, p := range s.Partitions {
		d.partition(fmt.Sprintf("partitions[%d]", i), p)
	}
	for i, p := range s.Prices {
		at := fmt.Sprintf("prices[%d]", i)
		if wrong := among("node", "gpu", "vcpu")(p.Per); wrong != "" {
			d.problem(at+".per", wrong)
		}
		if wrong := atLeast(0)(p.Hour); wrong != "" {
			d.problem(at+".hour", wrong)
		}
		if p.Currency == "" {
			d.problem(at+".currency", "missing; name it, like \"EUR\"")
		}
	}
	return s, d.problems.orNil()
}

func (d *decoder) partition(at string, p Partition) {
	if p.Name == "" {
		d.problem(at+".name", "missing; name the partition as sinfo does")
	}
	if wrong := oneLine(p.Name); wrong != "" {
		d.problem(at+".name", wrong)
	}
	counts := map[string]int{"min_workers": p.MinWorkers, "max_workers": p.MaxWorkers, "max_nodes": p.MaxNodes,
		"cpus_per_node": p.CPUsPerNode, "gpus_per_node": p.GPUsPerNode}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if counts[key] < 0 {
			d.problem(at+"."+key, fmt.Sprintf("want 0 (no such limit) or more, got %d", counts[key]))
		}
	}
	if p.MaxWorkers > 0 && p.MinWorkers > p.MaxWorkers {
		d.problem(at+".min_workers", fmt.Sprintf("%d is more than max_workers, %d", p.MinWorkers, p.MaxWorkers))
	}
	d.options(at+".options", p.Options)
}

func (d *decoder) options(at string, options map[string]string) {
	for name, value := range options {
		if !optionName.MatchString(name) {
			d.problem(at, fmt.Sprintf("%q is no long option of sbatch; write it without the dashes, like constraint = \"a100\"", name))
		}
		if wrong := oneLine(value); wrong != "" {
			d.problem(at+"."+name, wrong)
		}
	}
}
