package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// An Event is something that a message is about.
type Event string

// The events.
const (
	Failed Event = "failed" // the first failure since the last message that the study ended
	Ended  Event = "ended"  // no attempt is under way, and some are newer than the last such message
)

// A record is the content of notified.json in a study's folder.
type record struct {
	Ended       int     `json:"ended"`         // attempts at the last message that the study ended
	EndedFailed int     `json:"ended_failed"`  // failed attempts then
	Newest      float64 `json:"newest_unix"`   // when the newest of them was created
	Warned      bool    `json:"failure_since"` // a failure has been reported since then
}

// counts describe the attempts at a study's runs. An attempt whose folder cannot be read has ended as far as anybody
// can tell.
type counts struct {
	attempts, failed, underway int
	newest, newestFailed       float64 // when the newest attempts were created; 0 if there are none
}

func count(attempts []*launcher.Attempt) (c counts) {
	for _, a := range attempts {
		c.attempts++
		c.newest = max(c.newest, a.Record.CreatedUnix)
		switch {
		case a.Unreadable != nil:
		case a.Verdict == nil:
			c.underway++
		case failed(a):
			c.failed++
			c.newestFailed = max(c.newestFailed, a.Record.CreatedUnix)
		}
	}
	return c
}

// due returns the events of which no message was sent. New attempts are recognised by their number and by their time:
// `forget` removes some of the old ones, and clocks of hosts differ.
func (r record) due(c counts) (list []Event) {
	if !r.Warned && (c.failed > r.EndedFailed || c.newestFailed > r.Newest) {
		list = append(list, Failed)
	}
	if c.underway == 0 && (c.attempts > r.Ended || c.newest > r.Newest) {
		list = append(list, Ended)
	}
	return list
}

// sent returns the record after a message.
func (r record) sent(e Event, c counts) record {
	if e == Ended {
		return record{Ended: c.attempts, EndedFailed: c.failed, Newest: c.newest}
	}
	r.Warned = true
	return r
}

const (
	maxRecord = 1 << 16
	// leasePatience is how long to wait for another command that sends messages of the same study.
	leasePatience = 2 * time.Minute
)

// A Sender sends the messages of a study. Several commands may do so: those that wait for the runs, and the job that
// follows the jobs of a `submit`. Under a lease, a record of what was sent lets each message be sent once. The message
// that the study ended is left to a command that waits for the end, because only that command knows whether it begins
// further runs, such as retries.
type Sender struct {
	Folder rundir.Study
	To     study.Notify

	attends *sharedfs.Lease
}

// Attend leaves the message of the end to this command until Leave. If another command still attends after patience,
// Attend returns a *sharedfs.LeaseHeldError, and this command sends no such message.
func (s *Sender) Attend(ctx context.Context, patience time.Duration) (err error) {
	if s.attends == nil && s.To.Set() {
		s.attends, err = sharedfs.TakeLease(ctx, s.Folder.Notified()+".end", patience)
	}
	return err
}

// Leave ends Attend.
func (s *Sender) Leave() error {
	lease := s.attends
	if s.attends = nil; lease == nil {
		return nil
	}
	return lease.Release()
}

// Deliver sends the messages that are due, of the study's attempts as their folders record them. over reports whether
// the caller begins no more attempts; otherwise the study has not ended. compose writes a message about attempts: all,
// or for Failed the new ones. A message that could not be sent stays due.
func (s *Sender) Deliver(ctx context.Context, over bool, compose func(Event, []*launcher.Attempt) (Message, error)) error {
	lease, err := sharedfs.TakeLease(ctx, s.Folder.Notified()+".lease", leasePatience)
	if err != nil {
		return err
	}
	defer lease.Release()
	attempts, err := launcher.Attempts(s.Folder)
	if err != nil {
		return err
	}
	r, err := s.read()
	if err != nil {
		return err
	}
	now := count(attempts)
	for _, e := range r.due(now) {
		about := attempts
		switch {
		case e == Ended && (!over || s.attends == nil):
			continue
		case e == Failed:
			about = r.since(attempts)
		}
		m, err := compose(e, about)
		if err == nil {
			err = lease.Check() // composing may take long
		}
		if err == nil {
			err = send(ctx, s.To, m)
		}
		if err != nil {
			return err
		}
		r = r.sent(e, now)
		if err := rundir.WriteJSON(s.Folder.Notified(), r, sharedfs.ModeOpen); err != nil {
			return err
		}
	}
	return nil
}

// read returns the record of what was sent.
func (s *Sender) read() (r record, err error) {
	text, err := s.Folder.ReadFile(s.Folder.Notified(), maxRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s cannot be read: %w; move it away to get its messages again", s.Folder.Notified(), err)
	}
	return r, nil
}

// since returns the attempts that were created after the last message that the study ended; all, if none of these
// failed.
func (r record) since(attempts []*launcher.Attempt) []*launcher.Attempt {
	list := slices.DeleteFunc(slices.Clone(attempts), func(a *launcher.Attempt) bool { return a.Record.CreatedUnix <= r.Newest })
	if failure(list) == nil {
		return attempts
	}
	return list
}
