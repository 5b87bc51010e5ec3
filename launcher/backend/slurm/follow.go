package slurm

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/slurm"
)

// The job of Follow asks for this much.
const (
	followTime   = 15 * time.Minute
	followMemory = 1024 // MiB
)

// Follow submits a small job that waits for the end of the attempts' jobs.
func (b *Backend) Follow(ctx context.Context, p study.Planned, after []*launcher.Attempt, command []string) (string, error) {
	q := partition(b.Site, p.Partition)
	name := "follow-" + launcher.Token(6)
	s := slurm.Script{JobName: filepath.Base(b.Folder.Path()) + "-" + name, Partition: p.Partition, Account: cmp.Or(q.Account, b.Site.Account), QOS: cmp.Or(q.QOS, b.Site.QOS),
		Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, MemoryPerNodeMB: followMemory, Time: followTime, Shared: b.Shared,
		Output: filepath.Join(b.Folder.Path(), "follow.log"), Options: over(b.Site.Options, q.Options)}
	text, err := s.Plain(command)
	if err != nil {
		return "", err
	}
	script := filepath.Join(b.Folder.Path(), "follow.sh")
	if err := rundir.WriteFile(script, []byte(text), sharedfs.ModeScript); err != nil {
		return "", err
	}
	var jobs []string
	for _, a := range after {
		if a.Submission == nil {
			continue
		}
		if id := afterJob(a.Submission.JobID); !slices.Contains(jobs, id) {
			jobs = append(jobs, id)
		}
	}
	answer, err := b.sbatch(ctx, script, s.JobName, strings.Join(jobs, ":"))
	if err != nil {
		return "", err
	}
	return answer.JobID, nil
}
