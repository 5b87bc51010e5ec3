package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/slurm"
)

// This file writes a site file from a cluster's description. The file works, but people are
// expected to edit it: comments next to keys point out what may be wrong, and partitions that
// cannot be used are commented out with the reason.

// An Interface is a network interface of the host that writes the file.
type Interface struct {
	Name, Address string
}

// An Origin holds what the file contains besides the scheduler's description.
type Origin struct {
	Date       time.Time
	Interfaces []Interface
}

// A Describer is a backend whose scheduler describes its cluster.
type Describer interface {
	// Describe writes a site file. omitted reports parts of the scheduler's output that could not be parsed and
	// are not in the file.
	Describe(ctx context.Context, w io.Writer, o Origin) (omitted, err error)
}

// WriteSiteFile writes the site file of a cluster, with the default partition first. The result is valid for
// study.ParseSite for any description.
func WriteSiteFile(w io.Writer, d *slurm.Description, o Origin) error {
	var b builder
	b.comment("As reported by the cluster on %s (Slurm %s). Name this file in the study", o.Date.Format(time.DateOnly), d.Version)
	b.comment("(study.site) or give it with --site; `scalebench doctor --site FILE` tries it out.")
	b.comment("A QOS or an association may narrow these limits further.")
	b.line("")
	b.key("", "name", d.Name, "")
	b.accounts(d)
	b.comment(`qos = "normal"               # sbatch --qos`)
	if len(o.Interfaces) > 0 {
		b.line("")
		b.comment("Network interfaces of the host that wrote this; compute nodes may have others.")
		b.comment("Without this key, collectives use the interface that the node's own name resolves to.")
		for _, i := range o.Interfaces {
			b.comment("interface = %s  # %s", quoteTOML(i.Name), i.Address)
		}
	}
	b.line("")
	b.comment(`worker = "bin/scalebench-worker" # on a file system that the nodes see (next to scalebench)`)
	b.comment(`python = "venv/bin/python"       # interpreter of the Python frameworks`)
	b.comment(`pythons = { keras-horovod = "tf/bin/python" } # for some frameworks only`)
	b.comment(`modules = ["CUDA/12.4"]          # module load, before the step`)
	b.comment(`setup = ["source setup.sh"]      # shell lines, run unchanged before the step`)
	b.line("")
	b.comment("A point runs in the first partition that it fits into.")
	partitions := slices.Clone(d.Partitions)
	slices.SortStableFunc(partitions, func(p, q slurm.Partition) int { return rank(p) - rank(q) })
	for _, p := range partitions {
		b.line("")
		b.partition(d, p)
	}
	_, err := io.WriteString(w, b.text.String())
	return err
}

func rank(p slurm.Partition) int {
	if p.Default {
		return 0
	}
	return 1
}

// A builder writes lines of TOML.
type builder struct{ text strings.Builder }

func (b *builder) line(text string) { b.text.WriteString(text + "\n") }

// comment writes a one-line comment, replacing line breaks and control characters.
func (b *builder) comment(format string, a ...any) {
	b.line("# " + clean.Line(fmt.Sprintf(format, a...)))
}

// key writes a key after prefix, which is "# " for keys that are only shown.
func (b *builder) key(prefix, name string, value any, remark string) {
	text := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		text = quoteTOML(s)
	}
	line := prefix + name + " = " + text
	if remark != "" {
		line += "  # " + clean.Line(remark)
	}
	b.line(line)
}

// accounts lists the accounts that the user may use. The cluster's default needs no key.
func (b *builder) accounts(d *slurm.Description) {
	if len(d.Accounts) == 0 {
		why := d.AccountsUnknown
		if why == "" {
			why = "it lists none of yours"
		}
		b.comment("The cluster does not say which accounts you may use: %s", why)
		b.comment(`account = "project123"       # sbatch --account`)
		return
	}
	var names []string
	standard := ""
	for _, a := range d.Accounts {
		if a.Default {
			standard = a.Name
		}
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	b.comment("Accounts that you may use: %s", strings.Join(names, ", "))
	if standard == "" {
		b.comment("account = %s", quoteTOML(names[0]))
		return
	}
	b.comment("account = %s  # the default, also without this line", quoteTOML(standard))
}

// partition writes a [[partitions]] table, commented out if jobs cannot run there.
func (b *builder) partition(d *slurm.Description, p slurm.Partition) {
	nodes := d.NodesOf(&p)
	f := figuresOf(&p, nodes)
	prefix := ""
	if p.Default {
		b.comment("The cluster's default partition.")
	}
	account, why := obstacle(d, &p, f)
	if strings.ContainsAny(p.Name+account, "\n\r\x00") {
		why = "its name, or its account's, is not a single line"
	}
	if why != "" {
		prefix = "# "
		b.comment("Not used: %s", why)
	}
	for _, doubt := range f.doubts {
		b.comment("%s", doubt)
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"groups", p.AllowGroups}, {"QOS", p.AllowQOS}} {
		if list.names != nil {
			b.comment("Open to these %s only: %s", list.what, strings.Join(list.names, ", "))
		}
	}
	b.line(prefix + "[[partitions]]")
	b.key(prefix, "name", p.Name, "")
	if account != "" {
		b.key(prefix, "account", account, "the default account may not use this partition")
	}
	if f.maxNodes > 0 {
		b.key(prefix, "max_nodes", f.maxNodes, f.nodesRemark)
	}
	if p.MaxTime != nil {
		b.key(prefix, "max_time", study.Duration(*p.MaxTime).String(), "")
	}
	if f.cpus > 0 {
		b.key(prefix, "cpus_per_node", f.cpus, f.cpusRemark)
	}
	if f.gpus > 0 {
		b.key(prefix, "gpus_per_node", f.gpus, "")
	}
	if f.gpus > 0 && f.gpuType != "" {
		b.key(prefix, "gpu_type", f.gpuType, "")
	}
	if len(f.kinds) > 0 {
		b.comment("Its nodes have GPUs of unlike kinds, which do not add up. Choose one kind:")
		for _, kind := range f.kinds {
			b.comment("gpus_per_node = %d", kind.Count)
			if kind.Type != "" {
				b.comment("gpu_type = %s", quoteTOML(kind.Type))
			}
		}
	}
	if f.memoryMB > 0 {
		b.key(prefix, "memory_per_node", study.Bytes(int64(f.memoryMB)<<20).String(), "")
	}
}

// obstacle returns why this user's jobs cannot run in a partition, or "" if they can. account is the account to
// use there if the default does not work.
func obstacle(d *slurm.Description, p *slurm.Partition, f figures) (account, why string) {
	names, known := d.AccountsIn(p)
	switch {
	case p.State != "UP":
		return "", "the partition is " + p.State
	case p.RootOnly:
		return "", "only root may submit to it"
	case f.nodes == 0:
		return "", "it has no nodes"
	case f.usable == 0:
		return "", fmt.Sprintf("its %s cannot take jobs%s", number.Count(f.nodes, "node"), f.reason)
	case p.MaxNodes != nil && *p.MaxNodes == 0:
		return "", "its MaxNodes is 0"
	case known && len(names) == 0 && p.AllowAccounts != nil:
		return "", "none of your accounts may use it; allowed: " + strings.Join(p.AllowAccounts, ", ")
	case known && len(names) == 0:
		return "", "none of your accounts may use it"
	}
	if known && !slices.ContainsFunc(d.Accounts, func(a slurm.Account) bool { return a.Default && a.Name == names[0] }) &&
		slices.ContainsFunc(d.Accounts, func(a slurm.Account) bool { return a.Default }) {
		return names[0], ""
	}
	return "", ""
}

// quoteTOML writes a basic TOML string. Every JSON string is one, except that DEL must be escaped.
func quoteTOML(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}
