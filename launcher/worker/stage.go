package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Staging describes what to copy to this node for a run.
type Staging struct {
	Run    rundir.Folder
	World  world.World // world of the node; the rank is the node's number
	Dir    string      // folder on the node, as the site file has it
	Python string      // archive of an environment, or ""
	Life   StagedLifetime
}

// Stage copies what the run needs to this node and records it in the node's event file. A run that needs
// nothing gets no file.
func Stage(ctx context.Context, s Staging) error {
	point, err := LoadPoint(s.Run)
	if err != nil {
		return err
	}
	f, err := framework.Find(point.Framework)
	if err != nil {
		return err
	}
	type need struct{ kind, source string }
	var needs []need
	if point.Data.Stage {
		needs = append(needs, need{StageData, point.Data.Path})
	}
	if s.Python != "" && f.Programs != nil {
		needs = append(needs, need{StagePython, s.Python})
	}
	if len(needs) == 0 {
		return nil
	}
	file, err := OpenEvents(s.Run, stageWriter, s.World)
	if err != nil {
		return err
	}
	defer file.Close()
	host, _ := os.Hostname()
	events, err := metrics.NewWriter(file, metrics.Start{Writer: stageWriter, Framework: point.Framework, Rank: s.World.Rank,
		WorldSize: s.World.Size, Restart: s.World.Restart, Host: host, PID: os.Getpid()})
	if err != nil {
		return err
	}
	area, err := OpenArea(s.Dir)
	for _, n := range needs {
		if err != nil {
			break
		}
		var item StagedItem
		if item, err = area.Put(ctx, n.kind, n.source, s.Life); err == nil {
			err = events.Write(metrics.Event{Staged: &metrics.Staged{Item: item.Kind, Source: item.Source, Path: item.Path,
				Bytes: item.Bytes, Seconds: item.Seconds, Reused: item.Reused}})
		}
	}
	stop := metrics.Stop{Status: metrics.StopDone}
	if err != nil {
		stop.Status, stop.Cause = metrics.StopFailed, fmt.Sprintf("%s: %v", host, err)
		err = errors.New(stop.Cause)
	}
	return errors.Join(err, events.Write(metrics.Event{Stop: &stop}))
}

// stageWriter is the writer's name in Stage's event files.
const stageWriter = "stage"

// staged returns what Stage recorded for this node, by item; nil if the file does not exist.
func staged(run rundir.Folder, w world.World) (map[string]metrics.Staged, error) {
	path := run.EventFile(stageWriter, w.Node, w.Restart)
	file, err := sharedfs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	items := map[string]metrics.Staged{}
	now, err := sharedfs.Present(file, 0)
	if err != nil {
		return nil, err
	}
	for r, host := metrics.NewReader(now, path, 0, 0), ""; ; {
		e, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("what was staged on this node is not known: %w", err)
		}
		switch {
		case e.Start != nil:
			host = e.Start.Host
		case e.Staged != nil:
			items[e.Staged.Item] = *e.Staged
		case e.Stop != nil && e.Stop.Status == metrics.StopDone:
			if here, _ := os.Hostname(); host != here {
				return nil, fmt.Errorf("%s describes %s, but this node is %s: the job's steps had their nodes in a different order", path, host, here)
			}
			return items, nil
		case e.Stop != nil:
			return nil, errors.New(e.Stop.Cause)
		}
	}
}

// useStaged replaces the paths of staged items by their copies on this node, and holds their locks.
func useStaged(s *framework.Rank) (hold []*StagedFolder, err error) {
	items, err := staged(s.Run, s.World)
	if err != nil {
		return nil, err
	}
	if _, ok := items[StageData]; s.Point.Data.Stage && !ok {
		return nil, errors.New("data.stage is true, and nothing was staged on this node; a batch script template of the site's own must call the block \"stage\" before \"step\"")
	}
	for kind, item := range items {
		folder, err := holdFolder(item.Path)
		if err != nil {
			return nil, err
		}
		hold = append(hold, folder)
		switch kind {
		case StageData:
			s.Point.Data.Path = item.Path
		case StagePython:
			s.Python = item.Path
		}
	}
	return hold, nil
}
