package loadtest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/scalebench/scalebench/metrics/measure"
)

// ServerMetrics are a server's own metrics by name, over all of their labels.
type ServerMetrics map[string]ServerValue

// A ServerValue adds up the values that a metric has for different labels.
type ServerValue struct {
	Sum float64
	N   int
}

// Add adds the value of a metric for one set of labels. It ignores values that are not finite.
func (m ServerMetrics) Add(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	v := m[name]
	m[name] = ServerValue{v.Sum + value, v.N + 1}
}

// A snapshot holds the metrics of all replicas at one time.
type snapshot struct {
	at       time.Duration // from the start of the load
	replicas []ServerMetrics
}

// total returns the sum of a metric over replicas and labels, and its mean. ok is false if no replica has it.
func (s snapshot) total(name string) (sum, mean float64, ok bool) {
	n := 0
	for _, r := range s.replicas {
		v := r[name]
		sum, n = sum+v.Sum, n+v.N
	}
	return sum, sum / float64(max(n, 1)), n > 0
}

// serverFigures are the measures taken from servers' metrics. The first name that a server has counts. To add a
// server, add its names.
var serverFigures = []struct {
	measure, unit string
	names         []string // names of the metric or counter
	of            []string // for a ratio: counters to divide by, in the same order
	value         func(list []snapshot, name, of string) (float64, bool)
}{
	{measure.ServerQueue, "requests", []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred", "nv_inference_pending_request_count", "tgi_queue_size"}, nil, meanSum},
	{measure.ServerRunning, "requests", []string{"vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing", "tgi_batch_current_size"}, nil, meanSum},
	{measure.ServerKVCache, "", []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio"}, nil, largestMean},
	{measure.ServerCacheHits, "", []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"}, []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total", "sglang:prompt_tokens_total"}, increaseRatio},
	{measure.ServerPreemptions, "", []string{"vllm:num_preemptions_total", "sglang:num_retracted_requests_total"}, nil, increase},
}

// meanSum returns the mean over time of a metric's sum over replicas.
func meanSum(list []snapshot, name, _ string) (mean float64, ok bool) {
	for _, s := range list {
		sum, _, has := s.total(name)
		mean, ok = mean+sum/float64(len(list)), ok || has
	}
	return mean, ok
}

// largestMean returns the largest mean over replicas that a share had at any time.
func largestMean(list []snapshot, name, _ string) (most float64, ok bool) {
	for _, s := range list {
		_, mean, has := s.total(name)
		most, ok = max(most, mean), ok || has
	}
	return most, ok
}

// increase returns by how much a counter grew.
func increase(list []snapshot, name, _ string) (float64, bool) {
	before, _, ok := list[0].total(name)
	after, _, _ := list[len(list)-1].total(name)
	return after - before, ok && after >= before
}

// increaseRatio returns by how much a counter grew, as a share of the growth of another.
func increaseRatio(list []snapshot, name, of string) (float64, bool) {
	part, ok := increase(list, name, "")
	all, known := increase(list, of, "")
	return part / all, ok && known && all > 0
}

// scrapePause is the time between two queries of the servers' metrics.
const scrapePause = time.Second

// A scraper reads the servers' metrics during a load.
type scraper struct {
	service *Service
	list    []snapshot
	err     error
	stop    func()
	done    chan struct{}
}

// scrape starts to read the servers' metrics of a load; nil if the study does not ask for it.
func (s *Service) scrape(ctx context.Context, l Load) *scraper {
	if s.Scrape == nil || l.probes {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	c := &scraper{service: s, stop: stop, done: make(chan struct{})}
	begun := time.Now()
	read := func(name string) {
		replicas, err := s.Scrape(ctx, name)
		if err != nil {
			c.err = err
			return
		}
		c.list = append(c.list, snapshot{time.Since(begun), replicas})
	}
	read(l.file() + "-before")
	go func() {
		defer close(c.done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(scrapePause):
				read("")
			}
		}
	}()
	return c
}

// cancel stops the scraper.
func (c *scraper) cancel() {
	if c != nil {
		c.stop()
		<-c.done
	}
}

// end stops the scraper, reads the metrics once more, and records the figures of the measured part: all but the
// lead, which is the start of the run (ramp and warm-up).
func (c *scraper) end(ctx context.Context, r *recorder, lead time.Duration) {
	if c == nil {
		return
	}
	c.cancel()
	if ctx.Err() == nil && c.err != nil && len(c.list) == 0 {
		r.doubts = append(r.doubts, fmt.Sprintf("the service's metrics cannot be read: %v", c.err))
		return
	}
	last, err := c.service.Scrape(ctx, r.load.file()+"-after")
	if err == nil {
		c.list = append(c.list, snapshot{1 << 62, last})
	}
	list := c.list
	for len(list) > 2 && list[0].at < lead {
		list = list[1:]
	}
	if len(list) < 2 {
		return
	}
	found := false
	for _, f := range serverFigures {
		for i, name := range f.names {
			of := ""
			if f.of != nil {
				of = f.of[i]
			}
			if value, ok := f.value(list, name, of); ok {
				r.figure(f.measure, f.unit, value)
				found = true
				break
			}
		}
	}
	if !found {
		r.doubts = append(r.doubts, "the service's metrics have none of the known names of queues and caches; its text is in the run folder")
	}
}
