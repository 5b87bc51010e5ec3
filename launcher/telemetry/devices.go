package telemetry

import (
	"runtime"
	"time"
)

// Devices reads devices that have no files, such as GPUs through their vendor's library. missing holds, by
// column name, why a value could not be read. It may hang.
type Devices func() (list []Reading, missing map[string]string)

// outside calls Devices on a separate thread, so that a hanging call only loses its own readings.
type outside struct {
	ask    chan struct{}
	answer chan answer
	asked  time.Time // time of the last request
	open   bool      // the last request has not been answered
	stale  bool      // the open request belongs to an earlier sample
	cpu    time.Duration
}

type answer struct {
	list    []Reading
	missing map[string]string
	cpu     time.Duration
}

// answerWithin limits how long a sample waits. A later answer belongs to another moment and is dropped.
const answerWithin = time.Second

func newOutside(read Devices) *outside {
	if read == nil {
		return nil
	}
	o := &outside{ask: make(chan struct{}, 1), answer: make(chan answer, 1)}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for range o.ask {
			list, missing := read()
			o.answer <- answer{list, missing, threadTime()}
		}
	}()
	return o
}

// end stops the thread after its current call.
func (o *outside) end() {
	if o != nil {
		close(o.ask)
	}
}

// begin requests readings, unless the last request has not been answered.
func (o *outside) begin() {
	if o == nil {
		return
	}
	if o.stale = o.open; o.open {
		select {
		case late := <-o.answer:
			o.cpu, o.stale = late.cpu, false
		default:
			return
		}
	}
	o.asked, o.open = time.Now(), true
	o.ask <- struct{}{}
}

// take returns the readings of this sample; ok is false if none came in time.
func (o *outside) take() (a answer, ok bool) {
	if o.stale {
		return a, false
	}
	select {
	case a = <-o.answer:
		o.cpu, o.open = a.cpu, false
		return a, true
	case <-time.After(time.Until(o.asked.Add(answerWithin))):
		return a, false
	}
}

// time returns the last known CPU time of the thread.
func (o *outside) time() time.Duration {
	if o == nil {
		return 0
	}
	return o.cpu
}
