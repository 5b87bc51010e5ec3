package slurm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/slurm"
)

// Loads divides runs into groups that are submitted together. Runs in an array have equal requests to Slurm;
// runs in an allocation go to the same partition and, with blocks, are of one repeat. Within a load the policy's order is kept, since consecutive
// runs are compared. A script sets up one variant of the site. A single run becomes an ordinary job.
func (b *Backend) Loads(ctx context.Context, todo []launcher.Todo) ([][]launcher.Todo, error) {
	var loads [][]launcher.Todo
	open := map[string]int{} // the load that takes more with this key
	for _, t := range todo {
		key, most := "", 0
		switch {
		case t.Again != nil && t.Again.Record.Pack != nil:
			key = "again " + t.Again.Record.Pack.Name
		case t.Again != nil:
		case b.packing == study.PackArray:
			var err error
			if most, err = b.maxArray(ctx); err != nil {
				return nil, err
			}
			if key, err = b.shape(t); err != nil {
				return nil, err
			}
		case b.packing == study.PackAllocation:
			key = fmt.Sprintf("partition %s variant %s", t.Partition, t.Point.Variant)
			if b.blocks {
				key += fmt.Sprintf(" repeat %d", t.Point.Repeat)
			}
		}
		i, ok := open[key]
		if key == "" || !ok || most > 0 && len(loads[i]) >= most {
			i = len(loads)
			loads = append(loads, nil)
			open[key] = i
		}
		loads[i] = append(loads[i], t)
	}
	return loads, nil
}

// maxArray returns how many tasks an array may have. It asks Slurm once per command.
func (b *Backend) maxArray(ctx context.Context) (int, error) {
	if b.arraySize == 0 {
		var err error
		if b.arraySize, err = b.Client.MaxArraySize(ctx); err != nil {
			return 0, err
		}
	}
	return b.arraySize, nil
}

// shape returns a text that describes a run's request to Slurm. Runs with equal texts can be tasks of one
// array.
func (b *Backend) shape(t launcher.Todo) (string, error) {
	a := b.Draft(t.Planned)
	a.Record.Exclude = t.Exclude
	s, err := b.Script(t.Planned, a)
	s.JobName, s.StepName, s.Output = "", "", ""
	return fmt.Sprint("shape ", t.Point.Variant, " ", s.Directives(), s.StepOptions()), err
}

// beginPack writes the attempts of a load down, then their pack, and submits
// it. An attempt that another command was first to begin is left to it.
func (b *Backend) beginPack(ctx context.Context, load []launcher.Todo) ([]*launcher.Attempt, error) {
	attempts, err := b.members(load)
	if err != nil {
		return nil, err
	}
	member := attempts[0].Record.Pack
	pack := b.Folder.Pack(member.Name)
	if load[0].Again != nil { // written by an earlier command, or by whom?
		if err := trust.Tree(pack.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, a := range attempts {
			if err := trust.Tree(a.Run.Path()); err != nil {
				return nil, err
			}
		}
	}
	if _, err := os.Stat(pack.Script()); errors.Is(err, fs.ErrNotExist) {
		err := pack.Create(func(at rundir.Pack) error {
			script, list, err := b.packed(*member, attempts)
			if err != nil {
				return err
			}
			var text bytes.Buffer
			if err := b.render(&text, script); err != nil {
				return err
			}
			return errors.Join(rundir.WriteFile(at.File(slurm.ListName), list, sharedfs.ModeOpen), rundir.WriteFile(at.Script(), text.Bytes(), sharedfs.ModeScript))
		})
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	answer, err := b.sbatch(ctx, pack.Script(), attempts[0].Record.JobName, load[0].After)
	if err != nil {
		return attempts, err
	}
	for _, a := range attempts {
		a.Submission = a.Record.Pack.Submission(*answer)
	}
	return attempts, rundir.WriteJSON(pack.Job(), answer, sharedfs.ModeOpen)
}

// members returns the attempts of a load's pack: new ones, or all that an earlier command recorded for it, even
// if the plan has changed since.
func (b *Backend) members(load []launcher.Todo) ([]*launcher.Attempt, error) {
	var attempts []*launcher.Attempt
	if again := load[0].Again; again != nil {
		all, err := launcher.Attempts(b.Folder)
		for _, a := range all {
			if a.Record.Pack != nil && a.Record.Pack.Name == again.Record.Pack.Name && a.Verdict == nil {
				attempts = append(attempts, a)
			}
		}
		if len(attempts) == 0 { // unreadable records explain why
			return nil, errors.Join(fmt.Errorf("the attempts of %s are gone", again.Record.Pack.Name), err)
		}
		return attempts, nil
	}
	name := b.packing + "-" + launcher.Token(4)
	exclusive := slices.ContainsFunc(load, func(t launcher.Todo) bool { return t.Exclusive })
	for _, t := range load {
		t.Exclusive = exclusive // one job: its nodes are exclusive for all of its runs or for none
		r := b.record(t, name)
		r.Pack = &launcher.Member{Name: name, Packing: b.packing, Index: len(attempts)}
		a, err := b.Create(t, r, nil)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, a)
	}
	if len(attempts) == 0 {
		return nil, fs.ErrExist
	}
	return attempts, nil
}

// packed returns the script of a pack and its list. An array requests what the largest run needs. An allocation
// also requests enough time for all runs one after the other, up to the partition's limit; runs that do not fit
// stay outstanding.
func (b *Backend) packed(m launcher.Member, attempts []*launcher.Attempt) (slurm.Script, []byte, error) {
	var whole slurm.Script
	var exclude []string
	for _, a := range attempts {
		exclude = append(exclude, a.Record.Exclude...)
	}
	slices.Sort(exclude)
	exclude = slices.Compact(exclude)

	last := slices.MaxFunc(attempts, func(a, b *launcher.Attempt) int { return a.Record.Pack.Index - b.Record.Pack.Index })
	steps := make([]slurm.Step, last.Record.Pack.Index+1)
	cpus, total := 0, warning // so that the last run gets no warning within its time
	for _, a := range attempts {
		one := *a
		one.Record.Exclude = exclude
		p := study.Planned{Point: a.Point, Partition: a.Record.Partition, Exclusive: a.Record.Exclusive}
		s, err := b.Script(p, &one)
		if err != nil {
			return whole, nil, err
		}
		step := slurm.Step{RunDir: s.RunDir, Nodes: s.Nodes, TasksPerNode: s.TasksPerNode, CPUsPerTask: s.CPUsPerTask,
			GPUsPerNode: s.GPUsPerNode, GPUType: s.GPUType, CPUBind: s.CPUBind, MPI: s.MPI, Name: s.StepName}
		if m.Packing == study.PackAllocation {
			step.Time = s.Time
		}
		steps[a.Record.Pack.Index] = step
		cpus, total = max(cpus, s.TasksPerNode*s.CPUsPerTask), min(total+s.Time, time.Duration(study.MaxDuration))
		if whole.JobName == "" {
			whole = s
			continue
		}
		whole.Nodes, whole.TasksPerNode = max(whole.Nodes, s.Nodes), max(whole.TasksPerNode, s.TasksPerNode)
		whole.GPUsPerNode, whole.MemoryPerNodeMB = max(whole.GPUsPerNode, s.GPUsPerNode), max(whole.MemoryPerNodeMB, s.MemoryPerNodeMB)
		whole.GPUType = cmp.Or(whole.GPUType, s.GPUType)
		whole.Exclusive = whole.Exclusive || s.Exclusive
		if whole.Stage == nil { // the step determines what each run needs
			whole.Stage, whole.Container = s.Stage, s.Container
		}
	}
	pack := b.Folder.Pack(m.Name)
	whole.Pack = &slurm.Pack{Dir: pack.Path(), Runs: len(steps), Array: m.Packing == study.PackArray}
	if whole.Pack.Array {
		whole.Pack.Limit = b.limits.InFlight
	} else {
		whole.CPUsPerTask = (cpus + whole.TasksPerNode - 1) / whole.TasksPerNode
		whole.Time = total
		if most := time.Duration(partition(b.SiteOf(attempts[0].Point), attempts[0].Record.Partition).MaxTime); most > 0 {
			whole.Time = min(total, most)
		}
	}
	if whole.Stage != nil { // staged files live as long as the pack may take
		stage, unstage := launcher.Staging(b.SiteOf(attempts[0].Point).Stage, whole.JobName, whole.Time)
		whole.Stage = append([]string{b.Worker}, stage...)
		if unstage != nil {
			whole.Unstage = append([]string{b.Worker}, unstage...)
		}
	}
	whole.RunDir, whole.Output = "", pack.JobLog()
	whole.Command = append([]string{b.Worker}, launcher.Supervise("", attempts[0].Record)...)
	list, err := slurm.List(steps)
	return whole, list, err
}

// usualArraySize is Slurm's default of MaxArraySize.
const usualArraySize = 1001

// Drafts hands the batch scripts of a plan, and the lists of packs, to write, one at a
// time: the scripts of 10,000 points take 100 MB.
func (b *Backend) Drafts(plan *study.Plan, write func(name string, text []byte) error) error {
	b.arraySize = usualArraySize // works without a cluster to query
	var todo []launcher.Todo
	for _, p := range plan.Points {
		todo = append(todo, launcher.Todo{Planned: p, Number: 1})
	}
	loads, err := b.Loads(context.Background(), todo)
	if err != nil {
		return err
	}
	for i, load := range loads {
		var attempts []*launcher.Attempt
		for j, t := range load {
			a := b.Draft(t.Planned)
			if len(load) > 1 {
				a.Record.Pack = &launcher.Member{Name: fmt.Sprintf("%s-draft%d", b.packing, i+1), Packing: b.packing, Index: j}
				a.Record.JobName = b.packName(a.Record.Pack.Name)
			}
			attempts = append(attempts, a)
		}
		var text bytes.Buffer
		name := attempts[0].Run.Name()
		var err error
		if m := attempts[0].Record.Pack; m != nil {
			name = m.Name
			var script slurm.Script
			var list []byte
			if script, list, err = b.packed(*m, attempts); err == nil {
				err = b.render(&text, script)
			}
			if err == nil {
				if err := write(name+".list", list); err != nil {
					return err
				}
			}
		} else {
			err = b.Render(&text, load[0].Planned, attempts[0])
		}
		if err != nil {
			return fmt.Errorf("the batch script of %s: %w", name, err)
		}
		if err := write(name+".sh", text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// packName returns a pack's job name, which is unique.
func (b *Backend) packName(name string) string {
	return filepath.Base(b.Folder.Path()) + "/" + name
}

// afterJob returns the id that a dependency names: of the whole job array.
func afterJob(id string) string {
	array, _, _ := strings.Cut(id, "_")
	return array
}
