package launcher

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/scalebench/scalebench/slurm"
)

// Ending is what was done to end an attempt. Whether it has ended is seen by
// Survey, as ever.
type Ending struct {
	State
	Asked bool   // somebody was asked to end it
	What  string // who, or why nobody was
}

// Cancel ends attempts that have not ended, as a survey has just found them: of
// jobs it asks Slurm, in one call for all; of a local attempt the command that
// drives it, if that is on this host. The error is that Slurm did not do it.
func Cancel(ctx context.Context, client *slurm.Client, states []State) ([]Ending, error) {
	var list []Ending
	var jobs []string
	ended := map[int]error{} // driving commands, by pid
	for _, s := range states {
		e := Ending{State: s}
		switch {
		case s.Status.Terminal():
			continue
		case s.Record.Backend == "":
			e.What = "its folder cannot be read; nothing is known of its job"
		case s.Record.Backend == Local:
			err, done := ended[s.Record.PID]
			if !done {
				err = endDriver(s.Record)
				ended[s.Record.PID] = err
			}
			if e.Asked = err == nil; e.Asked {
				e.What = fmt.Sprintf("asked the command that drives it to end (process %d)", s.Record.PID)
			} else {
				e.What = err.Error()
			}
		case s.Job == nil || s.Job.State == "":
			// Its id alone may be another job's by now.
			e.What = "the scheduler knows no such job"
			if s.Submission == nil {
				e.What = "never reached the scheduler"
			}
		default:
			jobs = append(jobs, s.Job.ID)
			e.Asked, e.What = true, "asked Slurm to end job "+s.Job.ID
		}
		list = append(list, e)
	}
	if len(jobs) == 0 {
		return list, nil
	}
	err := client.Cancel(ctx, jobs...)
	if err != nil {
		for i, e := range list {
			if e.Asked && e.Record.Backend == Slurm {
				list[i].Asked, list[i].What = false, "Slurm did not end it"
			}
		}
	}
	return list, err
}

// endDriver sends SIGTERM to the command that drives a local attempt. The
// process is held by its handle before it is recognised, so that a pid that
// goes to another program meanwhile is not signalled.
func endDriver(r Record) error {
	if !here(r) {
		if host, err := os.Hostname(); err == nil && host == r.Host {
			return fmt.Errorf("driven by process %d of another host or container with this one's name, %s, or from before it booted; end it there", r.PID, r.Host)
		}
		return fmt.Errorf("driven by process %d on %s; end it there", r.PID, r.Host)
	}
	process, err := os.FindProcess(r.PID)
	if err != nil {
		return fmt.Errorf("the command that drove it (process %d) is gone", r.PID)
	}
	defer process.Release()
	if alive, known := drives(r); !known || !alive {
		return fmt.Errorf("the command that drove it (process %d) is gone", r.PID)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the command that drives it (process %d) cannot be ended: %w", r.PID, err)
	}
	return nil
}
