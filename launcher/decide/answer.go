package decide

import (
	"math"

	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// An Answer is the state of a question about one series that is neither the best number of workers
// nor a comparison, such as how much of each resource is enough.
type Answer struct {
	Series  string
	Text    string // the answer in sentences, or why there is none
	Decided bool   // at the design's level
	// Open are the IDs of the points of which more runs may change the answer. If it is empty and
	// the question is not decided, Caveat says why more runs do not help.
	Open   []string
	Caveat string
}

// all is the only entry of the Runs and Points of a view that has no worker counts.
const all = 0

// answers returns a view for each answer.
func (s *Study) answers(r *Results) []View {
	var views []View
	runs := map[string]int{}
	for _, o := range r.Observations {
		runs[o.Point]++
	}
	for _, a := range r.Answers {
		v := View{
			Look:     &sequential.Look{Series: a.Series, Runs: map[int]int{}, Decided: a.Decided, Caveat: a.Caveat},
			Points:   map[int][]string{all: a.Open},
			question: sequential.Question{Design: s.Design, Hours: r.hours(a.Open)},
			stated:   "Undecided. " + a.Text,
			total:    len(r.Observations),
		}
		if a.Decided {
			v.stated = "Decided. " + a.Text
		}
		least := math.MaxInt
		for _, id := range a.Open {
			least = min(least, runs[id])
		}
		if v.Runs[all] = least; !a.Decided && len(a.Open) > 0 && !s.closed(v.Points)[all] {
			v.Counts, v.Open = []int{all}, []int{all}
		}
		views = append(views, v)
	}
	return views
}

// hours returns a function that returns the node-hours of one more run of each of the points.
func (r *Results) hours(points []string) func(int) float64 {
	hours, runs := map[string]float64{}, map[string]float64{}
	for i := range r.Observations {
		o := &r.Observations[i]
		hours[o.Point] += NodeHours(o)
		runs[o.Point]++
	}
	each := 0.0
	for _, id := range points {
		each += hours[id] / max(1, runs[id])
	}
	return func(int) float64 { return each }
}
