package advice

import "github.com/scalebench/scalebench/metrics/measure"

// Clock says what is in the times that decide (Candidate.Seconds), in words that
// follow a time.
type Clock string

// The clocks.
const (
	Untimed Clock = ""                           // no candidate has a time
	Job     Clock = "with initialisation"        // from the start of the processes
	Trained Clock = "without initialisation"     // the training clock: initialisation was not recorded
	Stated  Clock = "on the program's own clock" // from its start of training to its target
)

// Clock tells from where the candidates' times count.
func (a *Advice) Clock() Clock {
	clock := Untimed
	for _, c := range a.Candidates {
		switch {
		case c.Seconds == nil:
		case a.Goal == measure.ToTarget:
			return Stated
		case c.Seconds.Value > c.Training.Value:
			return Job
		default:
			clock = Trained
		}
	}
	return clock
}
