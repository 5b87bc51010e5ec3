package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

func notifyCommand(s *session) *cli.Command {
	var apart bool
	return &cli.Command{
		Name:      "notify",
		Usage:     "send the messages about a study that are due",
		ArgsUsage: "STUDY",
		Description: "Sends what [notify] asks for, each message once: the first failure, and the end of the\n" +
			"study's runs. `run` and `submit --wait` do so by themselves; after `submit`, a job does\n" +
			"so by this command when the study's jobs have ended.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "apart", Destination: &apart, DisableDefaultText: true,
			Usage: "read the runs into a temporary database, as on compute nodes, which must not open yours"}},
		Action: func(c *cli.Context) error {
			if apart {
				dir, err := os.MkdirTemp("", "scalebench-notify")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				s.deferInterrupts()
				s.db = filepath.Join(dir, "scalebench.db")
			}
			return runNotify(c.Context, s, c.Args().First(), apart)
		},
	}
}

func runNotify(ctx context.Context, s *session, study string, apart bool) error {
	w, err := s.workspace().Load(ctx, workspace.Request{Study: study})
	if err != nil {
		return err
	}
	if !w.Sender.To.Set() {
		return &usageError{err: fmt.Errorf("study %s has nobody to tell", w.Study.Name), hint: "Write [notify] into the study or site file, then run or submit the study again."}
	}
	patience := time.Duration(0)
	if apart {
		patience = sharedfs.LeasePatience // this job runs once, so it waits until it knows whether the other command has died
	}
	var end *query.Ending
	if attends, err := s.attend(ctx, w, patience); err != nil {
		return err
	} else if attends {
		defer w.Sender.Leave()
		end = &query.Ended
	}
	collected := s.collect(ctx, w.Folder)
	if end != nil {
		decided, err := s.lookAgain(ctx, w)
		if err != nil {
			return errors.Join(err, collected)
		}
		end = decided
	}
	return errors.Join(s.reader().SendMessages(ctx, w, end, s.put), collected)
}

// lookAgain checks what a study has decided, for the question of its last look. A study that was not
// measured until decided has just ended.
func (s *session) lookAgain(ctx context.Context, w *workspace.Work) (*query.Ending, error) {
	record, err := decide.Read(w.Folder)
	if err != nil || record.Most == 0 {
		return &query.Ended, err
	}
	var o untilOptions
	set := flag.NewFlagSet("", flag.ContinueOnError)
	for _, f := range append(o.questionFlags(""), siteFlag(&o.wish.wish.Site)) {
		if err := f.Apply(set); err != nil {
			return nil, err
		}
	}
	if err := s.askAgain(cli.NewContext(nil, set, nil), record.Question); err != nil {
		return nil, err
	}
	outcome, err := s.look(ctx, o, w.Study.Name, record)
	if err != nil { // such as no good run
		outcome = &decide.Outcome{}
	}
	end := query.EndingOf(outcome)
	return &end, nil
}

// attend leaves the message of the end to this command. It returns false if another command waits for
// the end, after patience.
func (s *session) attend(ctx context.Context, w *workspace.Work, patience time.Duration) (bool, error) {
	err := w.Sender.Attend(ctx, patience)
	if held := (*sharedfs.LeaseHeldError)(nil); errors.As(err, &held) {
		s.note("%s waits for the end of the runs and will send that message", held.Holder)
		return false, nil
	}
	return err == nil, err
}

// tell sends the messages that are due, for commands that do other work: a message that cannot be
// sent is a warning. end is nil while the command begins runs.
func (s *session) tell(ctx context.Context, w *workspace.Work, end *query.Ending) {
	if !w.Sender.To.Set() {
		return
	}
	var err error
	if end != nil {
		_, err = s.attend(ctx, w, 0)
	}
	if err == nil {
		err = s.reader().SendMessages(ctx, w, end, s.put)
	}
	if err != nil {
		s.warn("no message was sent: %v; `scalebench notify %s` sends it", err, w.Study.Name)
	}
}

// tellLater lets a job send the messages when attempts have ended. It also works after an interrupt.
func (s *session) tellLater(ctx context.Context, w *workspace.Work, attempts []*launcher.Attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	switch job, err := w.NotifyAfter(ctx, attempts); {
	case err != nil:
		s.warn("no job will send messages: %v; `scalebench notify %s` sends those that are due", err, w.Study.Name)
	case job != "":
		s.note("job %s sends a message when these have ended", job)
	}
}
