package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	Ended       int  `json:"ended"`         // attempts at the last message that the study ended
	EndedFailed int  `json:"ended_failed"`  // failed attempts then
	Warned      bool `json:"failure_since"` // a failure has been reported since then
}

// counts are the attempts at a study's runs.
type counts struct{ attempts, failed, underway int }

func count(attempts []*launcher.Attempt) (c counts) {
	for _, a := range attempts {
		c.attempts++
		switch {
		case a.Verdict == nil:
			c.underway++
		case failed(a):
			c.failed++
		}
	}
	return c
}

// due returns the events of which no message was sent.
func (r record) due(c counts) (list []Event) {
	if c.failed > r.EndedFailed && !r.Warned {
		list = append(list, Failed)
	}
	if c.underway == 0 && c.attempts > r.Ended {
		list = append(list, Ended)
	}
	return list
}

// sent returns the record after a message.
func (r record) sent(e Event, c counts) record {
	if e == Ended {
		return record{Ended: c.attempts, EndedFailed: c.failed}
	}
	r.Warned = true
	return r
}

const (
	maxRecord = 1 << 16
	// leasePatience is how long to wait for another command that sends messages of the same study.
	leasePatience = 2 * time.Minute
)

// Deliver sends the messages of a study that are due: of its attempts as their folders record them. over reports
// whether the caller begins no more attempts; otherwise the study has not ended. compose writes a message. A message
// that could not be sent stays due.
func Deliver(ctx context.Context, folder rundir.Study, to study.Notify, over bool, compose func(Event, []*launcher.Attempt) (Message, error)) error {
	lease, err := sharedfs.TakeLease(ctx, folder.Notified()+".lease", leasePatience)
	if err != nil {
		return err
	}
	defer lease.Release()
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		return err
	}
	var r record
	text, err := folder.ReadFile(folder.Notified(), maxRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be read: %w; move it away to get its messages again", folder.Notified(), err)
	}
	now := count(attempts)
	for _, e := range r.due(now) {
		if e == Ended && !over {
			continue
		}
		m, err := compose(e, attempts)
		if err == nil {
			err = send(ctx, to, m)
		}
		if err != nil {
			return err
		}
		r = r.sent(e, now)
		if err := rundir.WriteJSON(folder.Notified(), r, sharedfs.ModeOpen); err != nil {
			return err
		}
	}
	return nil
}
