package decide

import (
	"context"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// Forecast returns a text about the planned looks, before any run: how narrow an interval each is
// expected to give, and the maximum cost until then.
func (s *Study) Forecast(ctx context.Context) ([]string, error) {
	scatter, err := s.scatter(ctx)
	if err != nil {
		return nil, err
	}
	return s.forecast(scatter), nil
}

// scatter returns the relative standard deviation of the study's earlier runs within their
// points; 0 if no point has two runs.
func (s *Study) scatter(ctx context.Context) (float64, error) {
	done, err := s.Done(ctx)
	if err != nil || len(done) == 0 {
		return 0, err
	}
	if err := s.Collect(ctx); err != nil {
		return 0, err
	}
	results, err := s.Results(ctx, s.Design)
	if err != nil {
		return 0, err
	}
	return sequential.Scatter(results.Curves), nil
}

// forecast returns the text of Forecast for a given scatter; 0 means unknown.
func (s *Study) forecast(scatter float64) []string {
	var hours []float64
	seen := map[string]bool{}
	var points []int
	for _, p := range s.Plan.Points {
		if !seen[p.Point.ID] && !p.Between {
			seen[p.Point.ID] = true
			points = append(points, len(hours))
			hours = append(hours, p.NodeHours())
		}
	}
	from := "if runs scatter by " + number.Significant(100*scatter) + " %, as earlier ones do"
	if scatter == 0 {
		scatter, from = sequential.Assumed, "if runs scatter by "+number.ExactPercent(sequential.Assumed)
	}
	list := []string{fmt.Sprintf("plan of looks: up to %s of each of %s; an interval at each look has %s, so that all together hold with %s",
		number.Count(s.most(), "run"), number.Count(len(points), "point"), number.ExactPercent(s.Design.Confidence), number.ExactPercent(sequential.Level))}
	for _, f := range s.Design.Forecast(points, func(i int) float64 { return hours[i] }, scatter) {
		tells := "no interval yet"
		switch {
		case f.Half == 0 && !s.Compares:
			tells += "; what is far behind is left out from here on"
		case f.Half > 0:
			tells = fmt.Sprintf("ratios to about ±%.1f %% %s", 100*f.Half, from)
		}
		list = append(list, fmt.Sprintf("  %s of each: %s; at most %s", number.Count(f.Repeats, "run"), tells, s.atMost(f)))
	}
	return list
}

// atMost returns a text with the number of runs up to a look, and their maximum cost, which
// follows from their time limits.
func (s *Study) atMost(f sequential.Forecast) string {
	text := number.Count(f.Runs, "run")
	if f.Hours > 0 {
		text += ", " + number.Significant(f.Hours) + " node-hours by their time limits"
	}
	if s.NodeHours > 0 && f.Hours > s.NodeHours {
		text += fmt.Sprintf(", of which max_node_hours allows %s", number.Significant(s.NodeHours))
	}
	return text
}

// seen is the largest p-value with which nodes, jobs or days count as different.
const seen = 0.05

// scatter returns a text that says how much runs of a point differ, and whether nodes, jobs or days
// do; "" if no point has two runs.
func (r *Results) scatter() string {
	all := sequential.Scatter(r.Curves)
	if all == 0 {
		return ""
	}
	text := fmt.Sprintf("Runs of a point scatter by %s %% (standard deviation).", number.Significant(100*all))
	var same []string
	for _, c := range sequential.Components(r.Observations) {
		if c.P > seen {
			same = append(same, c.Name)
			continue
		}
		text += fmt.Sprintf(" %d %s differ by %s %% (p = %.2g): use several.", c.Groups, c.Name, number.Significant(100*c.SD), c.P)
	}
	if same != nil {
		text += " No difference between " + strings.Join(same, " or ") + " is seen."
	}
	return text
}
