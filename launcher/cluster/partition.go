package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/slurm"
)

// checkPartition compares a partition with the cluster's description. open reports whether jobs can be sent
// there at all.
func checkPartition(u use, d *slurm.Description, account string) (list []Finding, open bool) {
	if u.known == nil {
		var names []string
		for _, p := range d.Partitions {
			names = append(names, p.Name)
		}
		found := "the cluster has no such partition; it has: " + strings.Join(names, ", ")
		if u.partition.Name == "" {
			found = "the cluster has no default partition; it has: " + strings.Join(names, ", ")
		}
		return []Finding{{"partition", u.subject(), Fail, found, "correct [[partitions]] in the site file (scalebench site init writes one)"}}, false
	}
	nodes := d.NodesOf(u.known)
	usable, reason := usableOf(nodes)
	if reason != "" {
		reason = "; " + reason
	}
	f := Finding{"partition", u.subject(), OK, fmt.Sprintf("%s, %d of %s can take jobs%s", u.known.State, usable, number.Count(len(nodes), "node"), reason), ""}
	open = true
	switch {
	case u.known.State != "UP":
		f.Verdict, f.Advice, open = Fail, "take it out of the site file, or wait until the administrators open it", false
	case usable == 0:
		f.Verdict, f.Advice, open = Fail, "no job can start there now; ask the administrators, or use another partition", false
	case usable < u.shape.Point.Nodes:
		f.Verdict, f.Advice = Warn, fmt.Sprintf("the largest point takes %s; it waits until they are back", number.Count(u.shape.Point.Nodes, "node"))
	}
	list = append(list, f)
	return append(append(list, checkLimits(u, nodes)...), checkAccount(u, d, account)...), open
}

// checkLimits compares the site file's figures and the largest point with the partition's limits. Slurm may
// accept jobs that exceed them and let them wait forever.
func checkLimits(u use, nodes []slurm.Node) []Finding {
	var wrong, unequal []string
	p, point := u.partition, u.shape.Point
	over := func(what string, asked, limit any, is bool) {
		if is {
			wrong = append(wrong, fmt.Sprintf("%s is %v, the cluster's limit %v", what, asked, limit))
		}
	}
	if limit := u.known.MaxTime; limit != nil {
		over("max_time", p.MaxTime, study.Duration(*limit), time.Duration(p.MaxTime) > *limit)
		over("resources.time of the largest point", point.Resources.Time, study.Duration(*limit), time.Duration(point.Resources.Time) > *limit)
	}
	most := len(nodes)
	if limit := u.known.MaxNodes; limit != nil {
		most = min(most, *limit)
	}
	over("max_nodes", p.MaxNodes, most, p.MaxNodes > most)
	over("the largest point's number of nodes", point.Nodes, most, point.Nodes > most)
	enough := func(what string, want int, has func(slurm.Node) int) {
		fewer := 0
		for _, n := range nodes {
			if has(n) < want {
				fewer++
			}
		}
		switch {
		case fewer == len(nodes) && fewer > 0:
			wrong = append(wrong, fmt.Sprintf("%s is %d, more than any node has", what, want))
		case fewer > 0:
			unequal = append(unequal, fmt.Sprintf("%s is %d, and %d of %d nodes have fewer", what, want, fewer, len(nodes)))
		}
	}
	enough("cpus_per_node", p.CPUsPerNode, func(n slurm.Node) int { return n.CPUs })
	enough("memory_per_node in MiB", int(p.MemoryPerNode>>20), func(n slurm.Node) int { return n.MemoryMB })
	enough("gpus_per_node", p.GPUsPerNode, func(n slurm.Node) int {
		count := 0
		for _, g := range n.GPUs {
			if p.GPUType == "" || g.Type == p.GPUType {
				count += g.Count
			}
		}
		return count
	})
	enough("the largest point's CPUs a node", point.WorkersPerNode*point.Resources.CPUsPerWorker, func(n slurm.Node) int { return n.CPUs })
	const advice = "correct the figures in the site file, or the study's; scalebench site init shows the cluster's"
	switch {
	case len(wrong) > 0:
		return []Finding{{"limits", u.subject(), Fail, strings.Join(append(wrong, unequal...), "; "), advice}}
	case len(unequal) > 0:
		return []Finding{{"limits", u.subject(), Warn, strings.Join(unequal, "; "), "points go to the other nodes only; choose them by options = { constraint = … }, or lower the figure"}}
	}
	return []Finding{{"limits", u.subject(), OK, "site file and largest point are within the partition's", ""}}
}

// checkAccount looks for the account among those that the user may use.
func checkAccount(u use, d *slurm.Description, account string) []Finding {
	if u.partition.Account != "" {
		account = u.partition.Account
	}
	names, known := d.AccountsIn(u.known)
	if !known {
		why := d.AccountsUnknown
		if why == "" {
			why = "the cluster lists none of your accounts"
		}
		return []Finding{{"account", u.subject(), NotTested, oneLine(why), ""}}
	}
	mine := "yours there: " + strings.Join(names, ", ")
	if len(names) == 0 {
		return []Finding{{"account", u.subject(), Fail, "none of your accounts may use the partition", "use another partition, or ask for access"}}
	}
	if account == "" {
		return []Finding{{"account", u.subject(), OK, "the cluster's default; " + mine, ""}}
	}
	for _, name := range names {
		if strings.EqualFold(name, account) { // slurmdbd stores names in lower case
			return []Finding{{"account", u.subject(), OK, account, ""}}
		}
	}
	return []Finding{{"account", u.subject(), Fail, fmt.Sprintf("%q is not one of your accounts there: %s", account, strings.Join(names, ", ")), "correct account in the site file"}}
}

// CheckPartitions reports partitions in the plan that the cluster does not have. It calls known only if the
// plan names partitions, and returns its error.
func CheckPartitions(ctx context.Context, known func(context.Context, *study.Site) ([]string, error), site *study.Site, plan *study.Plan) (study.Problems, error) {
	var used []string
	for _, p := range plan.Points {
		if p.Partition != "" && !slices.Contains(used, p.Partition) {
			used = append(used, p.Partition)
		}
	}
	if len(used) == 0 {
		return nil, nil
	}
	names, err := known(ctx, site)
	if err != nil || len(names) == 0 { // the scheduler reports no partitions to this user
		return nil, err
	}
	var problems study.Problems
	for _, name := range used {
		if slices.Contains(names, name) {
			continue
		}
		path := "partitions"
		if i := slices.IndexFunc(site.Partitions, func(p study.Partition) bool { return p.Name == name }); i >= 0 {
			path = fmt.Sprintf("partitions[%d].name", i)
		}
		problems = append(problems, site.Problem(path, fmt.Sprintf("the cluster has no partition %q; it has %s", name, strings.Join(names, ", "))))
	}
	return problems, nil
}
