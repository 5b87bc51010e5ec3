package loadtest

import (
	"fmt"
	"maps"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// replicas records the figures of each replica, and returns a warning if one differs from the others by more
// than noise.
func (s *Service) replicas(l Load, v *Verdict) (doubts []string, err error) {
	if len(v.Total.Replicas) < 2 || v.Ours {
		return nil, nil
	}
	if i, share, others, sure := v.Worst(); sure {
		doubts = append(doubts, fmt.Sprintf("%s gave no right answer in time to %.3g %% of its requests, the others to %.3g %%", s.replica(i), 100*share, 100*others))
	}
	if v.Why != "" {
		return doubts, nil
	}
	at := l.At()
	figure := func(name, unit string, value float64) {
		if err == nil {
			err = s.Figure(metrics.Figure{Name: name, Unit: unit, Value: value, At: maps.Clone(at)})
		}
	}
	slowest, times, sure, ok := v.Slowest()
	if ok {
		figure(measure.ReplicaSpread, "", times)
	}
	if sure {
		doubts = append(doubts, fmt.Sprintf("%s is slower than the others, %.2f times their mean latency, and by more than noise", s.replica(slowest), times))
	}
	for i := range v.Total.Replicas {
		own := v.ForReplica(i)
		at[measure.Replica] = float64(i)
		figure(measure.ReplicaRequests, "", float64(own.Total.Requests()))
		figure(measure.ReplicaErrors, "", own.Total.Errors())
		if mean, _ := own.Total.Mean(); mean > 0 {
			figure(measure.ReplicaMean, "s", mean)
		}
		for _, p := range []struct {
			name  string
			share float64
		}{{measure.ReplicaP50, 0.5}, {measure.ReplicaP95, 0.95}, {measure.ReplicaP99, 0.99}} {
			if seconds, why := own.Percentile(Latency, p.share); why == "" {
				figure(p.name, "s", seconds)
			}
		}
	}
	return doubts, err
}

// replica returns a replica's name.
func (s *Service) replica(i int) string {
	if i < len(s.Replicas) {
		return s.Replicas[i]
	}
	return fmt.Sprintf("replica %d", i)
}
