package measure

import "slices"

// The measures of a service. Those of a load have its coordinates.
const (
	RequestsPerSecond = "requests_per_second" // correct answers in time
	SamplesPerSecond  = "samples_per_second"  // RequestsPerSecond times samples per request
	LatencyP50        = "latency_p50"         // of correct answers; from the scheduled send time
	LatencyP95        = "latency_p95"
	LatencyP99        = "latency_p99"
	LatencyMean       = "latency_mean"
	Errors            = "errors"    // share of requests without a correct answer in time
	Timeouts          = "timeouts"  // share of requests without any answer within the timeout
	CancelledShare    = "cancelled" // share of requests chosen to be abandoned by the client
	SendLagP99        = "send_lag_p99"
	ClientCPUs        = "client_cpus"     // CPUs used by the load generator
	ClientRate        = "client_rate"     // rate of the load generator against a server that answers at once
	ClientOverhead    = "client_overhead" // median latency of such a server, one request in flight
	Goodput           = "goodput"         // correct answers whose times are all within the limit
	LongestStall      = "longest_stall"   // longest time without a correct answer while requests were in flight
	WindowCV          = "window_cv"       // coefficient of variation of the windows' median latencies
	ReplicaSpread     = "replica_spread"  // slowest replica's mean latency over the median of the others
	RateWithinLimit   = "rate_within_limit"
	RateAtLeast       = "rate_at_least" // ends of the 95 % interval of RateWithinLimit from one run's probes
	RateAtMost        = "rate_at_most"
	SearchProbes      = "search_probes"   // probes made by the search for the largest rate, successful or not
	StartupSeconds    = "startup_seconds" // until the last replica was ready
	ModelP50          = "model_p50"       // model alone, without a server, one request at a time
)

// CostPerMillion is the cost of a million answers at the largest rate within the
// limit; CostPerMillionSamples is the cost of a million samples. Runs do not record
// them: package cost calculates them from the rate and the site's prices.
const (
	CostPerMillion        = "cost_per_million"
	CostPerMillionSamples = "cost_per_million_samples"
)

// PerMillion returns these measures in the given currency.
func PerMillion(currency string) []Measure {
	return []Measure{
		{Name: CostPerMillion, Title: "cost of a million answers", Unit: currency, Better: Lower, At: Batch},
		{Name: CostPerMillionSamples, Title: "cost of a million samples", Unit: currency, Better: Lower, At: Batch},
	}
}

// The measures of streamed answers, as language models give them.
const (
	TTFTP50          = "ttft_p50" // time to first token, from the scheduled send time
	TTFTP95          = "ttft_p95"
	TTFTP99          = "ttft_p99"
	TTFOP50          = "ttfo_p50" // time to first output token: the first after the model's reasoning
	TTFOP95          = "ttfo_p95"
	TTFOP99          = "ttfo_p99"
	TPOTP50          = "tpot_p50" // time per output token after the first, per answer
	TPOTP95          = "tpot_p95"
	TPOTP99          = "tpot_p99"
	ITLP50           = "itl_p50" // inter-token latency: from one chunk of text to the next
	ITLP95           = "itl_p95"
	ITLP99           = "itl_p99"
	OutputThroughput = "output_throughput" // of correct answers
	InputTokens      = "input_tokens"      // mean per request, as counted by the service
	CachedTokens     = "cached_tokens"     // share of input tokens found in the service's cache
	ReasoningTokens  = "reasoning_tokens"  // share of output tokens that precede the answer
	OutputTokens     = "output_tokens"     // mean per answer
	OutputPerUser    = "output_per_user"   // tokens/s that the caller of one answer sees: 1 / TPOTP50
	OutputPerGPU     = "output_per_gpu"    // OutputThroughput per GPU of the service
)

// The measures that a service reports itself, from its metrics during a load.
const (
	ServerQueue       = "server_queue"       // mean number of requests waiting in the service
	ServerRunning     = "server_running"     // mean number of requests that it computes
	ServerKVCache     = "server_kv_cache"    // largest share of the KV cache in use
	ServerCacheHits   = "server_cache_hits"  // share of input tokens found in the prefix cache
	ServerPreemptions = "server_preemptions" // requests that lost their place in the KV cache
)

// The measures of one replica under a load.
const (
	ReplicaRequests = "replica_requests" // requests sent to it
	ReplicaErrors   = "replica_errors"
	ReplicaMean     = "replica_latency_mean"
	ReplicaP50      = "replica_latency_p50"
	ReplicaP95      = "replica_latency_p95"
	ReplicaP99      = "replica_latency_p99"
)

// The coordinates of a load: requests in flight (closed loop) or target requests/s
// (open loop), and samples per request.
const (
	Batch   = "batch"
	Rate    = "rate"
	Threads = "threads"
	Replica = "replica" // of the replica measures, from 0
)

// Refusable reports whether a run may lack the measure because its value would be bad:
// no percentile is given while queues still grow or if a few stalls made the slow
// requests, and no rate or cost if no rate met the limit. A median over the other runs
// would be too good.
func (m Measure) Refusable() bool {
	return m.At == ofLoad && m.Better != Neither || m.Name == RateWithinLimit || m.Name == CostPerMillion || m.Name == CostPerMillionSamples
}

// DescribesLoad reports whether a coordinate describes the load on a service.
func DescribesLoad(key string) bool { return ofLoad.Has(key) }

const (
	ofLoad    Coordinates = Batch + " " + Rate + " " + Threads
	ofReplica Coordinates = Batch + " " + Rate + " " + Replica + " " + Threads
)

// Probe is the prefix of load measures that belong to a probe: one load of the search
// for the largest rate, tested against the limit. Each run probes different rates.
const Probe = "probe_"

const ofProbe Coordinates = Batch + " " + Rate

// probes returns the load measures that probes have.
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
	{Name: OutputTokens, Title: "output tokens per answer", Unit: "tokens", At: ofLoad},
	{Name: OutputPerUser, Title: "output tokens per user", Unit: "tokens/s", Better: Higher, At: ofLoad},
	{Name: OutputPerGPU, Title: "output tokens per GPU", Unit: "tokens/s", Better: Higher, At: ofLoad},
	{Name: CancelledShare, Title: "cancelled", Show: Percent, At: ofLoad},
	{Name: ServerQueue, Title: "queue of the service", Unit: "requests", Better: Lower, At: ofLoad},
	{Name: ServerRunning, Title: "running in the service", Unit: "requests", At: ofLoad},
	{Name: ServerKVCache, Title: "KV cache in use, largest", Show: Percent, At: ofLoad},
	{Name: ServerCacheHits, Title: "prefix cache hits", Show: Percent, At: ofLoad},
	{Name: ServerPreemptions, Title: "preemptions", At: ofLoad},
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
	{Name: RateAtLeast, Title: "rate within the limit, at least", Unit: "requests/s", Better: Higher, At: Batch},
	{Name: RateAtMost, Title: "rate within the limit, at most", Unit: "requests/s", Better: Higher, At: Batch},
	{Name: SearchProbes, Title: "probes of the search", At: Batch},
	{Name: ModelP50, Title: "model alone, P50", Unit: "s", Better: Lower, Show: Seconds, At: Batch},
	{Name: StartupSeconds, Title: "startup", Unit: "s", Better: Lower, Show: Seconds},
}
