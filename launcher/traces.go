package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Traces are the files' contents that show how far the latest start of an attempt has got. It is
// read from the ends of the event files, so that it is cheap even for long runs.
type Traces struct {
	Begun   bool // a batch script or local launcher has claimed the incarnation
	Restart int  // the incarnation, 0-based
	// StartUnix is when its first program started, in seconds since the epoch; 0 if unknown.
	StartUnix float64
	Exit      *Exit
	Done      int    // ranks whose program ended with a stop event "done"
	Stopped   int    // ranks whose program ended with any stop event
	Cause     string // of the earliest reported failure; "" if there was none
	Log       string // log of the program that reported it; "" if there is none
	// Slurm and Script are Slurm's own words in the job's log, and the batch
	// script's; read of a run that has ended badly alone.
	Slurm, Script string
	// Silent are the hosts on which a supervisor recorded neither a signal nor an end: it still
	// runs, or ended without a last word.
	Silent []string

	Phase    string   // activity that rank 0 reports, for programs without steps
	Epoch    int      // last epoch that rank 0 has finished
	Step     int      // steps that rank 0 has done
	Accuracy *float64 // of the last evaluation, a fraction; nil before the first
	// Throughput is samples/s over the last 64 KB of events, rank 0's rate times the
	// number of ranks: for watching only, results are computed from all ranks.
	Throughput float64
}

// ReadTraces reads the folder of an attempt.
func ReadTraces(run rundir.Folder) (Traces, error) {
	var t Traces
	restarts, err := run.Restarts()
	if err != nil || len(restarts) == 0 {
		return t, err
	}
	t.Begun, t.Restart = true, restarts[len(restarts)-1]
	if t.Exit, err = readExit(run, t.Restart); err != nil {
		return t, err
	}
	files, err := run.EventFiles()
	if err != nil {
		return t, err
	}
	var first failure
	for _, f := range files {
		if f.Restart != t.Restart {
			continue
		}
		events, err := ends(f)
		if err != nil {
			return t, err
		}
		if own := t.add(f, events); own.before(first) {
			first = own
		}
		if f.Writer == "rank" && f.Rank == 0 {
			t.follow(events)
		}
	}
	if first.cause != "" {
		t.Cause, t.Log = hidden(run)(first.cause), logOf(run, first.rank)
	}
	return t, nil
}

// readExit reads how an incarnation's batch script or launcher ended; nil if it has not.
func readExit(run rundir.Folder, restart int) (*Exit, error) {
	var exit Exit
	if ok, err := readJSON(run, run.Exit(restart), &exit); err != nil || !ok {
		return nil, err
	}
	for _, at := range []float64{exit.StartUnix, exit.EndUnix} {
		if err := metrics.CheckUnix(at); err != nil {
			return nil, fmt.Errorf("%s: %w", run.Exit(restart), err)
		}
	}
	return &exit, nil
}

// A failure is an error that one process of a run reported; the zero value means none.
type failure struct {
	cause     string
	rank      int
	at        float64 // seconds since the epoch
	elsewhere bool    // the process only saw that another one had ended
}

// before reports whether f is more likely than g to be what ended the run: a failure of a
// process itself, then the earlier one. A killed process is often reported after the ranks
// that lost the connection to it.
func (f failure) before(g failure) bool {
	switch {
	case f.cause == "" || g.cause == "":
		return f.cause != ""
	case f.elsewhere != g.elsewhere:
		return g.elsewhere
	}
	return f.at < g.at
}

// add counts what one process of the run reported, and returns its first failure.
func (t *Traces) add(file metrics.EventFile, events []metrics.Event) (first failure) {
	start, covers, alive := 0.0, 1, ""
	for _, e := range events {
		switch {
		case e.Start != nil:
			start, covers = e.Start.Unix, e.Start.Covers()
			if t.StartUnix == 0 || start < t.StartUnix {
				t.StartUnix = start
			}
			if file.Writer == "supervisor" {
				alive = e.Start.Host
			}
		case e.Stop != nil && file.Writer == "rank":
			t.Stopped += covers
			if e.Stop.Status == metrics.StopDone {
				t.Done += covers
			}
		}
		if e.Stop != nil || e.Note != nil { // supervisors record signals when they receive them
			alive = ""
		}
		cause := causeOf(e)
		if own := (failure{cause, file.Rank, start + e.Time, worker.IsElsewhere(cause)}); own.before(first) {
			first = own
		}
	}
	if alive != "" && !slices.Contains(t.Silent, alive) {
		t.Silent = append(t.Silent, alive)
	}
	return first
}

// causeOf returns the failure that an event reports, or "".
func causeOf(e metrics.Event) string {
	switch {
	case e.Error != nil && e.Error.Where != "train": // every run trains
		return e.Error.Where + ": " + e.Error.Message
	case e.Error != nil:
		return e.Error.Message
	case e.Stop != nil && e.Stop.Status != metrics.StopDone:
		return e.Stop.Cause
	}
	return ""
}

// logOf returns the log of a rank's program: its own, or the log of its node's first rank if one program
// starts them all; "": none.
func logOf(run rundir.Folder, rank int) string {
	if _, err := os.Stat(run.RankLog(rank)); err == nil {
		return run.RankLog(rank)
	}
	best := -1
	for _, r := range run.RankLogs() { // an event file's name may contain any rank number
		if r <= rank {
			best = max(best, r)
		}
	}
	if best < 0 {
		return ""
	}
	return run.RankLog(best)
}

// readJobLog reads why the job ended from its log.
func (t *Traces) readJobLog(run rundir.Folder) {
	f, err := run.Open(run.JobLog())
	if err != nil {
		return // it does not exist if the job never started
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	from := max(0, info.Size()-worker.DiagnosedTail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil || len(text) == 0 {
		return
	}
	hide := hidden(run)
	t.Slurm, t.Script = hide(worker.DiagnoseSlurm(string(text))), hide(worker.DiagnoseScript(string(text)))
}

// hidden returns a function that replaces secrets in a text from a run's program: text that looks like a secret
// and, if this user may read them, the secrets of its command and site.
func hidden(run rundir.Folder) func(string) string { return redact.Known(secrets(run)) }

// secrets returns the secrets that a run was given; nil if another user owns them.
func secrets(run rundir.Folder) []string {
	var c study.Command
	if _, err := readJSON(run, run.Command(), &c); err != nil {
		c = study.Command{}
	}
	var site []string
	if _, err := readJSON(run, run.Secrets(), &site); err != nil {
		site = nil
	}
	var own study.Own
	if _, err := readJSON(run, run.Parameters(), &own); err != nil {
		own = nil
	}
	return slices.Concat(c.Secrets(), own.Secrets(), site)
}

// follow takes the progress from the events of rank 0.
func (t *Traces) follow(events []metrics.Event) {
	writers := 0.0 // writers that rank 0's rate represents
	var samples, seconds float64
	for _, e := range events {
		switch {
		case e.Start != nil:
			writers = float64(e.Start.WorldSize) / float64(e.Start.Covers())
		case e.Phase != nil:
			t.Phase = e.Phase.Text
		case e.Epoch != nil:
			t.Epoch = e.Epoch.Epoch
		case e.Evaluation != nil:
			t.Accuracy = &e.Evaluation.Accuracy
		case e.Steps != nil:
			s := e.Steps
			t.Step = s.First + len(s.Duration)
			for i := range s.Duration { // use float64, so that sums over many steps cannot overflow
				seconds += float64(s.Duration[i]) * s.Tick
				samples += float64(s.Samples[i])
			}
			if rate := samples * writers / seconds; seconds > 0 && rate <= metrics.MaxRate {
				t.Throughput = rate
			}
		}
	}
}

// tail is the number of bytes read from the end of an event file: more than the events between two
// evaluations take.
const tail = 64 << 10

// ends returns the first event of a file and the events in its last 64 KB. It skips invalid lines, which
// collect reports.
func ends(file metrics.EventFile) (events []metrics.Event, err error) {
	err = sharedfs.RetryStale(func() error { events, err = endsOnce(file); return err })
	return events, err
}

func endsOnce(file metrics.EventFile) ([]metrics.Event, error) {
	f, err := sharedfs.OpenIn(file.Folder, file.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	first, err := metrics.NewReader(f, file.Path, 0, 0).Next()
	var events []metrics.Event
	if err == nil {
		events = append(events, first)
	} else if err != io.EOF && !isLineError(err) {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tail)
	now := io.NewSectionReader(f, from, info.Size()-from)
	// The first line read is either the first event again or, most likely, a
	// part of one.
	r := metrics.NewReader(now, file.Path, 0, 0)
	for skipped := false; ; skipped = true {
		e, err := r.Next()
		switch {
		case err == io.EOF:
			return events, nil
		case err != nil && !isLineError(err):
			return nil, err
		case err == nil && skipped:
			events = append(events, e)
		}
	}
}

func isLineError(err error) bool {
	var line *metrics.LineError
	return errors.As(err, &line)
}
