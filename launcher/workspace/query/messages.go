package query

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/notify"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
)

// An Ending says what became of a study whose runs have ended.
type Ending struct {
	Verdict string // for the subject: "ended", "decided"
	Answer  string // "" for the answer of the report
}

// Ended is the Ending of a study that was not measured until decided.
var Ended = Ending{Verdict: "ended"}

// EndingOf returns the Ending of a study that was measured until decided.
func EndingOf(o *decide.Outcome) Ending {
	e := Ending{Verdict: "ended undecided", Answer: strings.Join(o.Answers(), "\n")}
	if o.Decided {
		e.Verdict = "decided"
	}
	return e
}

// SendMessages sends the messages about a study that are due. end is nil while the caller begins
// runs. save writes a file of the report.
func (r *Reader) SendMessages(ctx context.Context, w *workspace.Work, end *Ending, save func(path string, content []byte) error) error {
	return w.Sender.Deliver(ctx, end != nil, func(e notify.Event, attempts []*launcher.Attempt) (notify.Message, error) {
		if e == notify.Failed {
			return notify.FirstFailure(w.Study.Name, attempts), nil
		}
		spent, err := r.Spent(ctx, w)
		if err != nil {
			return notify.Message{}, err
		}
		news := notify.News{Study: w.Study.Name, Attempts: attempts, Verdict: end.Verdict, Answer: end.Answer, Spent: spent.Text()}
		o := Wish{Market: cost.OnDemand}
		o.Study = w.Study.Name
		switch page, _, err := r.Report(ctx, o, ""); {
		case err != nil:
			news.Answer = "No answer: " + err.Error()
		case page == nil:
			news.Answer = "No answer: no run has a good result."
		default:
			if news.Answer == "" {
				news.Answer = page.Answer.Lead
			}
			news.Report = filepath.Join(w.Folder.Path(), "report.html")
			if _, err := page.Save(news.Report, save); err != nil {
				return notify.Message{}, err
			}
		}
		return news.Message(), nil
	})
}
