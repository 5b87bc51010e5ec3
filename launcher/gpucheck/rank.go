package gpucheck

// NonceVariable carries the nonce by which the ranks of a proof know each other.
const NonceVariable = "SCALEBENCH_GPU_CHECK_NONCE"

// Proof is what one rank of the worker's command nccl prints.
type Proof struct {
	GPU      string   `json:"gpu"`
	Checks   int      `json:"checks"` // results compared
	Expected int      `json:"expected"`
	Wrong    []string `json:"wrong"`
	Costs    []Cost   `json:"costs"`
}

// Cost is what a call takes on the host, in ns.
type Cost struct {
	Call   string  `json:"call"`
	Calls  int     `json:"calls"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	P99    float64 `json:"p99"`
}
