package slurm

import (
	"context"
	"errors"
	"os/user"
	"slices"
	"strings"
	"time"
)

// Description is what a cluster says of itself.
type Description struct {
	Name       string // ClusterName
	Version    string // of Slurm, "22.05.8"
	Enforce    string // EnforcePartLimits: "NO" lets jobs that can never run wait for ever
	Partitions []Partition
	Nodes      []Node
	// Accounts are those that the user may use. Empty is not "none": the
	// cluster may keep no accounts, or not tell.
	Accounts        []Account
	AccountsUnknown string // why nothing is known of accounts; "" when asked and answered
}

// Partition is what `scontrol show partition` says. A limit that there is not
// is nil, and so is a list that allows all.
type Partition struct {
	Name    string
	Default bool
	State   string // Slurm's word: UP, DOWN, DRAIN, INACTIVE
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

// Node is what `scontrol show node` says.
type Node struct {
	Name       string
	State      string // Slurm's words, "IDLE+DRAIN"
	Reason     string // why it is down or drained; ""
	CPUs       int    // that jobs can have: hardware threads, where Slurm counts those
	Threads    int    // per core
	MemoryMB   int    // MiB that jobs can have
	GPUs       []GPUs
	Features   []string
	Partitions []string
}

// GPUs are the GPUs of one type in a node.
type GPUs struct {
	Type  string // "a100"; "" where the cluster does not tell types apart
	Count int
}

// Account is an account that the user may use.
type Account struct {
	Name      string
	Partition string // the only one where it holds; "": all
	Default   bool
}

// Usable reports whether a node takes jobs, now or after those it runs.
func (n Node) Usable() bool {
	for _, word := range strings.Split(n.State, "+") {
		switch strings.TrimRight(word, "*~#!%$@^-") {
		case "DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "NOT_RESPONDING", "INVALID_REG", "UNKNOWN":
			return false
		}
		if strings.HasSuffix(word, "*") { // does not respond
			return false
		}
	}
	return n.State != ""
}

// Node finds a node by its name; nil when the cluster does not have it.
func (d *Description) Node(name string) *Node {
	i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Nodes[i]
}

// Partition finds a partition by its name, the default one by "". It is nil
// when there is none.
func (d *Description) Partition(name string) *Partition {
	i := slices.IndexFunc(d.Partitions, func(p Partition) bool { return p.Name == name || name == "" && p.Default })
	if i < 0 {
		return nil
	}
	return &d.Partitions[i]
}

// NodesOf are the nodes of a partition.
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

// AccountsIn are the accounts that the user may use in a partition, the default
// one first. known is false where the cluster keeps no accounts or does not
// tell; then nothing follows from there being none.
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

// Describe asks the cluster about itself, in five calls of scontrol and sacctmgr,
// whatever its size. What sacctmgr does not tell is no error. Where lines could
// not be read, the rest is returned beside the error.
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

// Partitions asks the controller for its partitions alone, in one call.
func (c *Client) Partitions(ctx context.Context) ([]Partition, error) {
	out, _, err := c.run(ctx, "scontrol", "show", "partition", "--oneliner")
	if err != nil {
		return nil, unanswered(err)
	}
	return ParsePartitions(out)
}

// accounts asks sacctmgr what this user may use.
func (c *Client) accounts(ctx context.Context, cluster, storage string) ([]Account, error) {
	if !strings.HasSuffix(storage, "/slurmdbd") {
		return nil, errors.New("the cluster has no accounting storage (slurmdbd), which would know the accounts")
	}
	self, err := user.Current()
	if err != nil {
		return nil, err
	}
	asked := Client{Env: c.Env, Timeout: c.Timeout} // sacctmgr has no --clusters
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

// TestOnly asks sbatch whether it would take a script, and submits nothing. It
// returns Slurm's words, "Job 5 to start at … on nodes …"; a no is a
// *RefusedError. Slurm says yes to a partition that is down.
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
