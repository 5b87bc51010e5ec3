package launcher

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// stages reports whether anything is brought to the nodes for a point.
func stages(site study.Stage, p study.Point, f framework.Framework) bool {
	return p.Data.Stage || site.Python != "" && f.Programs != nil
}

// staging are the arguments of scalebench-worker that bring to a node what a
// job needs for so long, and that remove it; nil for nothing to remove. owner
// is a name that no other job has.
func staging(site study.Stage, owner string, limit time.Duration) (stage, unstage []string) {
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

// stage adds the staging to a script that is whole but for it.
func (b *SlurmBackend) stage(s *slurm.Script, site study.Stage, owner string) error {
	stage, unstage := staging(site, owner, s.Time)
	s.Stage = append([]string{b.Worker}, stage...)
	if unstage != nil {
		s.Unstage = append([]string{b.Worker}, unstage...)
	}
	if s.Container.Image != "" {
		dir := site.Dir
		if dir == "" || strings.Contains(dir, "$") {
			return errors.New("data.stage: the programs run in a container, into which the folder on the nodes is mounted; the site file must name it without variables (stage.dir = \"/local\")")
		}
		s.Container.Mounts = append([]string{fmt.Sprintf("%s:%s", dir, dir)}, s.Container.Mounts...)
	}
	return nil
}
