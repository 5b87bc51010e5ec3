package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// CheckPartitions says which partitions of the plan the cluster does not know. Where
// there is no Slurm nobody is asked; the error is that it did not answer.
func CheckPartitions(ctx context.Context, client *slurm.Client, site *study.Site, plan *study.Plan) (study.Problems, error) {
	var asked []string
	for _, p := range plan.Points {
		if p.Partition != "" && !slices.Contains(asked, p.Partition) {
			asked = append(asked, p.Partition)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	known, err := client.Partitions(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	if len(names) == 0 { // a cluster shows none to this user, or tells of none
		return nil, nil
	}
	var problems study.Problems
	for _, name := range asked {
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
