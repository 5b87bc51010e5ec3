package export

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

var extraPFormat = Format{
	Name:   "extra-p",
	About:  "Extra-P's JSON lines: the values of good runs by workers, a callpath for each series",
	Suffix: "-extra-p.jsonl",
	file:   writeExtraP,
}

// An extraPLine is one value in Extra-P's format. Lines with equal parameters, callpath and metric
// are repeats. The callpath is the series, so that only runs that scalebench compares are modelled
// together.
type extraPLine struct {
	Params   map[string]float64 `json:"params"`
	Callpath string             `json:"callpath"`
	Metric   string             `json:"metric"`
	Value    float64            `json:"value"`
}

func writeExtraP(ctx context.Context, s *Source, w io.Writer) error {
	e := json.NewEncoder(w)
	left, missed := 0, 0
	err := s.each(ctx, func(r *store.RunFacts) error {
		if !r.Counts {
			left++
			return nil
		}
		params := map[string]float64{scaling.Workers: float64(r.Workers)}
		for _, v := range r.Results {
			if v.Value == nil {
				if v.Reached != nil {
					missed++
				}
				continue
			}
			line := extraPLine{Params: params, Callpath: callpath(r.Series), Metric: titled(v.Measure, v.Unit), Value: *v.Value}
			if v.At != nil {
				line.Callpath += "->" + callpath(placed(v.At))
			}
			if err := e.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
	s.leftOut(left, "Extra-P knows no runs without a good result")
	if missed > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d times to targets that runs missed are left out, so models of these times are too optimistic.", missed))
	}
	return err
}

// callpath returns a name that is one node of Extra-P's call tree.
func callpath(name string) string {
	if name == "" {
		name = "no series"
	}
	return strings.ReplaceAll(text(name), "->", "→")
}
