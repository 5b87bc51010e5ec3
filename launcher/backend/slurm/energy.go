package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/slurm"
)

// accountingWriter writes what accounting reports about an ended run into a separate event file.
const accountingWriter = "accounting"

// lacksEnergy reports whether a good run of a job has no record of its energy.
func lacksEnergy(s launcher.State) bool {
	if !s.Status.Good() || s.Submission == nil || s.Submission.JobID == "" {
		return false
	}
	_, err := os.Stat(s.Run.EventFile(accountingWriter, 0, s.Traces.Restart))
	return errors.Is(err, fs.ErrNotExist)
}

// RecordEnergy asks Slurm's accounting once for the energy of all good runs whose folders lack it, and records
// it. It uses the run's step instead of the job: what a job's energy includes differs (Slurm 22.05 leaves out
// the batch script), and a job may serve several runs. Folders that this user cannot write to are skipped.
func (b *Backend) RecordEnergy(ctx context.Context, states []launcher.State) (launcher.EnergyQuery, error) {
	var a launcher.EnergyQuery
	var open []launcher.State
	for _, s := range states {
		if lacksEnergy(s) {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return a, nil
	}
	plugin, err := b.Client.Energy(ctx)
	if plugin.Name != "" {
		a.Meter = "Slurm's accounting"
	}
	if err != nil || plugin.Name == "" {
		return a, err
	}
	var alone []launcher.State
	var ids []string
	for _, s := range open {
		if !s.Record.Exclusive {
			a.Shared++
			continue
		}
		alone = append(alone, s)
		ids = append(ids, s.Submission.JobID)
	}
	slices.Sort(ids)
	list, err := b.Client.Consumed(ctx, slices.Compact(ids))
	var odd *slurm.UnreadableError
	if err != nil && !errors.As(err, &odd) {
		a.Unknown = len(alone)
		return a, err
	}
	names, steps := map[string]string{}, map[[2]string]slurm.Consumption{} // by job and name
	for _, c := range list {
		if job, _, step := strings.Cut(c.ID, "."); step {
			steps[[2]string{job, c.Name}] = c
		} else {
			names[c.ID] = c.Name
		}
	}
	for _, s := range alone {
		job := s.Submission.JobID
		step := steps[[2]string{job, s.Run.Name()}]
		if step.Joules == nil || names[job] != s.Record.JobName { // the id of a lost job may be another's by now
			a.Unknown++
			continue
		}
		switch err := recordEnergy(s, step, plugin); {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		case err != nil:
			return a, err
		default:
			a.Recorded++
		}
	}
	return a, nil
}

func recordEnergy(s launcher.State, step slurm.Consumption, plugin slurm.EnergyPlugin) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	w, err := metrics.NewWriter(&text, metrics.Start{Writer: accountingWriter, Restart: s.Traces.Restart, WorldSize: 1, Host: host, PID: os.Getpid()})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("Slurm's accounting (%s), step %s, %s, whole", strings.TrimPrefix(plugin.Name, "acct_gather_energy/"), step.ID, number.Count(step.Nodes, "node"))
	if plugin.Every != "" {
		note += ", read every " + plugin.Every
	}
	for _, e := range []metrics.Event{
		{Figure: &metrics.Figure{Name: measure.SlurmJoules, Value: *step.Joules, Unit: "J", Note: note}},
		{Stop: &metrics.Stop{Status: metrics.StopDone}},
	} {
		if err := w.Write(e); err != nil {
			return err
		}
	}
	return rundir.WriteFile(s.Run.EventFile(accountingWriter, 0, s.Traces.Restart), text.Bytes(), sharedfs.ModeOpen)
}
