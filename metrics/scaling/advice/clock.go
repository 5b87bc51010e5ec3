package advice

import "github.com/scalebench/scalebench/metrics/measure"

// Clock says which time the candidates' times (Candidate.Seconds) measure, in words that follow a
// time.
type Clock string

// The values of Clock.
const (
	Untimed Clock = ""                           // no candidate has a time
	Job     Clock = "with initialisation"        // counted from the start of the processes
	Trained Clock = "without initialisation"     // time on the training clock; initialisation was not recorded
	Stated  Clock = "on the program's own clock" // counted from the program's start of training to its target
)

// Clock returns the moment from which the candidates' times are counted.
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
