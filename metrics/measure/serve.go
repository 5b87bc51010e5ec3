package measure

import "slices"

// The measures of a service. Those of a load are of its coordinates.
const (
	RequestsPerSecond = "requests_per_second" // right answers in time
	SamplesPerSecond  = "samples_per_second"  // those times the samples in a request
	LatencyP50        = "latency_p50"         // of right answers; from the time at which a request was to be sent
	LatencyP95        = "latency_p95"
	LatencyP99        = "latency_p99"
	LatencyMean       = "latency_mean"
	Errors            = "errors"   // share of the requests that got no right answer in time
	Timeouts          = "timeouts" // of those errors, what had no answer at all within the timeout
	SendLagP99        = "send_lag_p99"
	ClientCPUs        = "client_cpus"     // that the load generator kept busy
	ClientRate        = "client_rate"     // that it reaches against a server that answers at once
	ClientOverhead    = "client_overhead" // median latency of such a server, one request in flight
	Goodput           = "goodput"         // right answers whose own times are all within the limit
	LongestStall      = "longest_stall"   // without a right answer, while requests were in flight
	WindowCV          = "window_cv"       // of the windows' median latencies
	ReplicaSpread     = "replica_spread"  // the slowest replica's mean latency, over the others' median
	RateWithinLimit   = "rate_within_limit"
	SearchProbes      = "search_probes"   // that the search for that rate took, found or not
	StartupSeconds    = "startup_seconds" // until the last replica was ready
	ModelP50          = "model_p50"       // of the model alone, in a process without a server, one request at a time
)

// CostPerMillion is what a million answers cost at the largest rate within the limit,
// and CostPerMillionSamples what a million samples in them do. No run has them: prices
// are the site's, and whoever is given them makes them of the rate.
const (
	CostPerMillion        = "cost_per_million"
	CostPerMillionSamples = "cost_per_million_samples"
)

// PerMillion are those measures in a currency.
func PerMillion(currency string) []Measure {
	return []Measure{
		{Name: CostPerMillion, Title: "cost of a million answers", Unit: currency, Better: Lower, At: Batch},
		{Name: CostPerMillionSamples, Title: "cost of a million samples", Unit: currency, Better: Lower, At: Batch},
	}
}

// The measures of answers that come text by text, as language models give them.
const (
	TTFTP50          = "ttft_p50" // time to first token, from the time at which a request was to be sent
	TTFTP95          = "ttft_p95"
	TTFTP99          = "ttft_p99"
	TTFOP50          = "ttfo_p50" // time to first output token: the first behind a model's reasoning
	TTFOP95          = "ttfo_p95"
	TTFOP99          = "ttfo_p99"
	TPOTP50          = "tpot_p50" // time per output token behind the first, of an answer
	TPOTP95          = "tpot_p95"
	TPOTP99          = "tpot_p99"
	ITLP50           = "itl_p50" // inter-token latency: from one text to the next
	ITLP95           = "itl_p95"
	ITLP99           = "itl_p99"
	OutputThroughput = "output_throughput" // of right answers
	InputTokens      = "input_tokens"      // of a request, on average, as the service counts
	CachedTokens     = "cached_tokens"     // share of the input tokens that the service had in its cache
	ReasoningTokens  = "reasoning_tokens"  // share of the output tokens that precede the answer
)

// The measures of one of several replicas under a load.
const (
	ReplicaRequests = "replica_requests" // that it was sent
	ReplicaErrors   = "replica_errors"
	ReplicaMean     = "replica_latency_mean"
	ReplicaP50      = "replica_latency_p50"
	ReplicaP95      = "replica_latency_p95"
	ReplicaP99      = "replica_latency_p99"
)

// The coordinates of a load: requests in flight (closed loop), or requests/s that
// were asked for (open loop), and samples in each.
const (
	Batch   = "batch"
	Rate    = "rate"
	Threads = "threads"
	Replica = "replica" // of the replicas' measures, 0-based
)

// Refusable reports whether a run that was put under a load lacks the measure because of
// what it would be: no percentile is given where queues were still growing, or the slow
// requests were few stalls, and no rate within the limit, nor its cost, where none kept the
// limit. A median of the other runs would be that of the calm ones.
func (m Measure) Refusable() bool {
	return m.At == ofLoad && m.Better != Neither || m.Name == RateWithinLimit || m.Name == CostPerMillion || m.Name == CostPerMillionSamples
}

// OfLoad reports whether a coordinate says how much is asked of a service.
func OfLoad(key string) bool { return ofLoad.Has(key) }

const (
	ofLoad    Coordinates = Batch + " " + Rate + " " + Threads
	ofReplica Coordinates = Batch + " " + Rate + " " + Replica + " " + Threads
)

// Probe comes before the name of a measure of a load where it is of a probe: a load of
// which a search for the largest rate asks whether the limit is kept. Every run tries
// rates of its own.
const Probe = "probe_"

const ofProbe Coordinates = Batch + " " + Rate

// probes are the measures that probes have of those of loads.
func probes(loads []Measure) (list []Measure) {
	for _, m := range loads {
		if isPercentile(m.Name) || m.Name == RequestsPerSecond || m.Name == Errors {
			list = append(list, Measure{Name: Probe + m.Name, Title: m.Title + " of a probe", Unit: m.Unit, Better: m.Better, Show: m.Show, At: ofProbe})
		}
	}
	return list
}

var serve = Kind{
	Name: "serve", Measures: slices.Concat(serving, probes(serving)),
	Main:  []string{RequestsPerSecond, SamplesPerSecond, RateWithinLimit},
	Loads: true, Worker: "replica",
	Rate: RateWithinLimit,
}

var serving = []Measure{
	{Name: RequestsPerSecond, Title: "answers", Unit: "requests/s", Better: Higher, At: ofLoad, Capacity: true, Scales: true},
	{Name: SamplesPerSecond, Title: "samples", Unit: "samples/s", Better: Higher, At: ofLoad, Scales: true},
	{Name: LatencyP50, Title: "P50", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: LatencyP95, Title: "P95", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: LatencyP99, Title: "P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: LatencyMean, Title: "mean latency", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: Errors, Title: "errors", Better: Lower, Show: Percent, At: ofLoad},
	{Name: Timeouts, Title: "timeouts", Better: Lower, Show: Percent, At: ofLoad},
	{Name: TTFTP50, Title: "TTFT P50", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TTFTP95, Title: "TTFT P95", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TTFTP99, Title: "TTFT P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TTFOP50, Title: "TTFO P50", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TTFOP95, Title: "TTFO P95", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TTFOP99, Title: "TTFO P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TPOTP50, Title: "TPOT P50", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TPOTP95, Title: "TPOT P95", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: TPOTP99, Title: "TPOT P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: ITLP50, Title: "ITL P50", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: ITLP95, Title: "ITL P95", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: ITLP99, Title: "ITL P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: OutputThroughput, Title: "output tokens", Unit: "tokens/s", Better: Higher, At: ofLoad, Scales: true},
	{Name: InputTokens, Title: "input tokens", Unit: "tokens", At: ofLoad},
	{Name: CachedTokens, Title: "cached input tokens", Show: Percent, At: ofLoad},
	{Name: ReasoningTokens, Title: "reasoning tokens", Show: Percent, At: ofLoad},
	{Name: Goodput, Title: "goodput", Unit: "requests/s", Better: Higher, At: ofLoad, Scales: true},
	{Name: SendLagP99, Title: "send lag P99", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: ClientCPUs, Title: "client CPUs", At: ofLoad},
	{Name: ClientRate, Title: "client's limit", Unit: "requests/s", At: ofLoad},
	{Name: ClientOverhead, Title: "client's overhead", Unit: "s", Show: Seconds, At: ofLoad},
	{Name: LongestStall, Title: "longest stall", Unit: "s", Better: Lower, Show: Seconds, At: ofLoad},
	{Name: WindowCV, Title: "P50 over windows, cv", Better: Lower, Show: Percent, At: ofLoad},
	{Name: ReplicaSpread, Title: "slowest / other replicas", Better: Lower, At: ofLoad},
	{Name: ReplicaRequests, Title: "requests", At: ofReplica},
	{Name: ReplicaMean, Title: "mean latency", Unit: "s", Better: Lower, Show: Seconds, At: ofReplica},
	{Name: ReplicaP50, Title: "P50", Unit: "s", Better: Lower, Show: Seconds, At: ofReplica},
	{Name: ReplicaP95, Title: "P95", Unit: "s", Better: Lower, Show: Seconds, At: ofReplica},
	{Name: ReplicaP99, Title: "P99", Unit: "s", Better: Lower, Show: Seconds, At: ofReplica},
	{Name: ReplicaErrors, Title: "errors", Better: Lower, Show: Percent, At: ofReplica},
	{Name: RateWithinLimit, Title: "rate within the limit", Unit: "requests/s", Better: Higher, At: Batch, Capacity: true, Scales: true},
	{Name: SearchProbes, Title: "probes of the search", At: Batch},
	{Name: ModelP50, Title: "model alone, P50", Unit: "s", Better: Lower, Show: Seconds, At: Batch},
	{Name: StartupSeconds, Title: "startup", Unit: "s", Better: Lower, Show: Seconds},
}
