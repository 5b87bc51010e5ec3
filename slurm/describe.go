package slurm

import (
	"context"
	"errors"
	"os/user"
	"slices"
	"strings"
	"time"
)

// A Description is a cluster's configuration as it reports it.
type Description struct {
	Name       string // ClusterName
	Version    string // of Slurm, "22.05.8"
	Enforce    string // EnforcePartLimits; with "NO", jobs that can never run wait forever
	Partitions []Partition
	Nodes      []Node
	// Accounts lists the accounts that the user may use. If it is empty, the cluster may have no accounts or
	// not report them.
	Accounts        []Account
	AccountsUnknown string // why accounts are unknown; "" if the query succeeded
}

// A Partition is the output of `scontrol show partition`. nil means no limit, or a list that allows all.
type Partition struct {
	Name    string
	Default bool
	State   string // in Slurm's terms: UP, DOWN, DRAIN, INACTIVE
	Nodes   []string

	MaxTime         *time.Duration
	MaxNodes        *int
	MaxCPUsPerNode  *int
	MaxMemPerNodeMB *int // MiB
	RootOnly        bool
	AllowAccounts   []string
	DenyAccounts    []string
	AllowGroups     []string
	AllowQOS        []string
}

// A Node is the output of `scontrol show node`.
type Node struct {
	Name       string
	State      string // in Slurm's terms, "IDLE+DRAIN"
	Reason     string // why it is down or drained; "" if it is not
	CPUs       int    // available to jobs: hardware threads, if Slurm counts those
	Threads    int    // per core
	MemoryMB   int    // MiB available to jobs
	GPUs       []GPUs
	Features   []string
	Partitions []string
}

// GPUs are the GPUs of one type in a node.
type GPUs struct {
	Type  string // "a100"; "" if the cluster does not distinguish types
	Count int
}

// An Account is an account that the user may use.
type Account struct {
	Name      string
	Partition string // the only one in which it is valid; "" means all
	Default   bool
}

// Usable reports whether a node accepts jobs, now or after those that it runs.
func (n Node) Usable() bool {
	for word := range strings.SplitSeq(n.State, "+") {
		switch strings.TrimRight(word, "*~#!%$@^-") {
		case "DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "NOT_RESPONDING", "INVALID_REG", "UNKNOWN":
			return false
		}
		if strings.HasSuffix(word, "*") { // not responding
			return false
		}
	}
	return n.State != ""
}

// Node returns the node with the given name, or nil.
func (d *Description) Node(name string) *Node {
	i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Nodes[i]
}

// Partition returns the partition with the given name, or the default partition for "". It returns nil if the
// partition does not exist.
func (d *Description) Partition(name string) *Partition {
	i := slices.IndexFunc(d.Partitions, func(p Partition) bool { return p.Name == name || name == "" && p.Default })
	if i < 0 {
		return nil
	}
	return &d.Partitions[i]
}

// NodesOf returns the nodes of a partition.
func (d *Description) NodesOf(p *Partition) []Node {
	in := map[string]bool{}
	for _, name := range p.Nodes {
		in[name] = true
	}
	var list []Node
	for _, n := range d.Nodes {
		if in[n.Name] {
			list = append(list, n)
		}
	}
	return list
}

// AccountsIn returns the accounts that the user may use in a partition, the default one first. known is false
// if the cluster has no accounts or does not report them; names is then meaningless.
func (d *Description) AccountsIn(p *Partition) (names []string, known bool) {
	for _, a := range d.Accounts {
		allowed := (a.Partition == "" || a.Partition == p.Name) &&
			(p.AllowAccounts == nil || slices.Contains(p.AllowAccounts, a.Name)) && !slices.Contains(p.DenyAccounts, a.Name)
		switch {
		case !allowed || slices.Contains(names, a.Name):
		case a.Default:
			names = slices.Insert(names, 0, a.Name)
		default:
			names = append(names, a.Name)
		}
	}
	return names, len(d.Accounts) > 0
}

// Describe reads the cluster's configuration with five calls of scontrol and sacctmgr, regardless of its size.
// A failing sacctmgr is not an error. If some lines cannot be parsed, Describe returns the rest together with
// an error.
func (c *Client) Describe(ctx context.Context) (*Description, error) {
	var problems []error
	config, _, err := c.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return nil, unanswered(err)
	}
	settings := parseConfig(config)
	d := &Description{Name: settings["ClusterName"], Version: settings["SLURM_VERSION"], Enforce: settings["EnforcePartLimits"]}
	partitions, _, err := c.run(ctx, "scontrol", "show", "partition", "--oneliner")
	if err != nil {
		return nil, unanswered(err)
	}
	d.Partitions, err = ParsePartitions(partitions)
	problems = append(problems, err)
	nodes, _, err := c.run(ctx, "scontrol", "show", "node", "--oneliner")
	if err != nil {
		return nil, unanswered(err)
	}
	d.Nodes, err = ParseNodes(nodes)
	problems = append(problems, err)
	if d.Accounts, err = c.accounts(ctx, d.Name, settings["AccountingStorageType"]); err != nil {
		d.AccountsUnknown = err.Error()
	}
	return d, errors.Join(problems...)
}

// Partitions reads only the partitions, in one call.
func (c *Client) Partitions(ctx context.Context) ([]Partition, error) {
	out, _, err := c.run(ctx, "scontrol", "show", "partition", "--oneliner")
	if err != nil {
		return nil, unanswered(err)
	}
	return ParsePartitions(out)
}

// accounts asks sacctmgr for the accounts that this user may use.
func (c *Client) accounts(ctx context.Context, cluster, storage string) ([]Account, error) {
	if !strings.HasSuffix(storage, "/slurmdbd") {
		return nil, errors.New("the cluster has no accounting storage (slurmdbd), so its accounts are unknown")
	}
	self, err := user.Current()
	if err != nil {
		return nil, err
	}
	asked := Client{Env: c.Env, Timeout: c.Timeout} // sacctmgr does not accept --clusters
	out, _, err := asked.run(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations",
		"user="+self.Username, "cluster="+cluster, "format=Account,Partition")
	if err != nil {
		return nil, err
	}
	standard, _, err := asked.run(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "user",
		self.Username, "format=DefaultAccount")
	if err != nil {
		return nil, err
	}
	return ParseAccounts(out, standard)
}

// TestOnly asks sbatch whether it would accept a script, without submitting it. It returns Slurm's message,
// "Job 5 to start at … on nodes …"; a refusal is a *RefusedError. Slurm accepts jobs for a partition that is
// down.
func (c *Client) TestOnly(ctx context.Context, script string) (string, error) {
	_, said, err := c.run(ctx, "sbatch", "--test-only", script)
	var (
		refused *RefusedError
		gone    *UnreachableError
	)
	switch {
	case errors.As(err, &refused):
		refused.Script = script
	case errors.As(err, &gone):
		gone.MaybeQueued = false
	}
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(said)), "sbatch: "), nil
}
