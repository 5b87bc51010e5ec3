package launcher

import (
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
)

// Stages reports whether anything is brought to the nodes for a point.
func Stages(site study.Stage, p study.Point, f framework.Framework) bool {
	return p.Data.Stage || site.Python != "" && f.Programs != nil
}

// Staging returns the arguments of scalebench-worker that copy what a job needs to a node within limit, and
// those that remove the copies; unstage is nil if there is nothing to remove. owner is a name unique to the
// job.
func Staging(site study.Stage, owner string, limit time.Duration) (stage, unstage []string) {
	unstage = []string{"unstage", "--for", owner}
	if site.Dir != "" {
		unstage = append(unstage, "--to", site.Dir)
	}
	stage = append([]string{"stage"}, unstage[1:]...)
	stage = append(stage, "--time", limit.String())
	if site.Python != "" {
		stage = append(stage, "--python", site.Python)
	}
	if site.Keep {
		return append(stage, "--keep"), nil
	}
	return stage, unstage
}
