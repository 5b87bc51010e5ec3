package telemetry

import (
	"runtime"
	"time"
)

// Devices reads devices that have no files, such as GPUs through their vendor's library. missing
// says, by column name, why a value could not be read. It may hang.
type Devices func() (list []Reading, missing map[string]string)

// outside calls Devices on a separate thread, so that a call that hangs loses only its own
// readings.
type outside struct {
	ask    chan struct{}
	answer chan answer
	asked  time.Time // the last question
	open   bool      // it has not been answered
	stale  bool      // it is of an earlier sample
	cpu    time.Duration
}

type answer struct {
	list    []Reading
	missing map[string]string
	cpu     time.Duration
}

// answerWithin is how long a sample waits. A later answer belongs to another moment and is dropped.
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

// end lets the thread go, once it has answered.
func (o *outside) end() {
	if o != nil {
		close(o.ask)
	}
}

// begin asks, unless the question before has not been answered.
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

// take is the answer to this sample's question; ok is false where none came in time.
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

// time is the CPU time of its thread, as last known.
func (o *outside) time() time.Duration {
	if o == nil {
		return 0
	}
	return o.cpu
}
