package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

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
	if err != nil || len(names) == 0 { // the cluster has none, or shows none to this user
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
