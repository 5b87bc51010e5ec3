package gpucheck

// NonceVariable carries the nonce by which the ranks of a proof know each other.
const NonceVariable = "SCALEBENCH_GPU_CHECK_NONCE"

// A Proof is the output of one rank of the worker's command nccl.
type Proof struct {
	GPU      string       `json:"gpu"`
	Checks   int          `json:"checks"` // results compared
	Expected int          `json:"expected"`
	Wrong    []Difference `json:"wrong"`
	Costs    []Cost       `json:"costs"`
}

// A Listed is a check of results in the list of the worker's command checks.
type Listed struct {
	Name    string  `json:"name"`    // "kernels/sgd"
	Seconds float64 `json:"seconds"` // that it takes, about
	PyTorch bool    `json:"pytorch,omitempty"`
	NCCL    bool    `json:"nccl,omitempty"`
}

// A Cost is the time that a call takes on the host, in ns.
type Cost struct {
	Call   string  `json:"call"`
	Calls  int     `json:"calls"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	P99    float64 `json:"p99"`
}
