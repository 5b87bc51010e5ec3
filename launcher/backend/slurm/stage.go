package slurm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// stage adds staging to a script that is otherwise complete.
func (b *Backend) stage(s *slurm.Script, site study.Stage, owner string) error {
	stage, unstage := launcher.Staging(site, owner, s.Time)
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
