package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/notify"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
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
			w, err := s.workspace().Load(c.Context, workspace.Request{Study: c.Args().First()})
			if err != nil {
				return err
			}
			if !w.Notify().Set() {
				return &usageError{err: fmt.Errorf("study %s has nobody to tell", w.Study.Name), hint: "Write [notify] into the study or site file, then run or submit the study again."}
			}
			collected := s.collect(c.Context, w.Folder)
			if err := s.deliver(c.Context, w, ended); err != nil {
				return err
			}
			return collected
		},
	}
}

// What ended a study's runs, or that they have not ended.
const (
	ended     = "ended"
	decided   = "decided"
	undecided = "ended undecided"
	goesOn    = ""
)

// deliver sends the messages that are due.
func (s *session) deliver(ctx context.Context, w *workspace.Work, verdict string) error {
	return notify.Deliver(ctx, w.Folder, w.Notify(), verdict != goesOn, func(e notify.Event, attempts []*launcher.Attempt) (notify.Message, error) {
		if e == notify.Failed {
			return notify.FirstFailure(w.Study.Name, attempts), nil
		}
		spent, err := s.reader().Spent(ctx, w)
		if err != nil {
			return notify.Message{}, err
		}
		news := notify.News{Study: w.Study.Name, Attempts: attempts, Verdict: verdict, Spent: spent.Text()}
		var o adviseOptions
		o.Study = w.Study.Name
		o.wish.Market = cost.OnDemand
		page, _, err := s.reader().Report(ctx, o.asked(), "")
		if err != nil || page == nil {
			news.Answer = "No answer: no run has a good result."
			if err != nil {
				news.Answer = "No answer: " + err.Error()
			}
			return news.Message(), nil
		}
		news.Answer, news.Report = page.Answer.Lead, filepath.Join(w.Folder.Path(), "report.html")
		_, err = page.Save(news.Report, s.put)
		return news.Message(), err
	})
}

// tell is deliver for commands that do other work: a message that cannot be sent is a warning.
func (s *session) tell(ctx context.Context, w *workspace.Work, verdict string) {
	if !w.Notify().Set() {
		return
	}
	if err := s.deliver(ctx, w, verdict); err != nil {
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
