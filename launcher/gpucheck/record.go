// Package gpucheck has the record of where the GPU check (cmd/gpu-check) was last made, the
// formats in which the worker answers the check, and how a check is defined (check.go) and run
// (run.go). Doctor prints the record, record.json; record.md has its results.
package gpucheck

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed record.json
var record []byte

// A Record describes a check on a GPU: machine, time and results.
type Record struct {
	Date    string `json:"date"`   // 2006-01-02, UTC
	Commit  string `json:"commit"` // commit that was checked
	Host    string `json:"host"`
	GPUs    string `json:"gpus"`   // "1 × NVIDIA H100 80GB HBM3"
	Driver  string `json:"driver"` // the CUDA that it supports
	NCCL    string `json:"nccl"`
	PyTorch string `json:"pytorch"`

	Open []string `json:"open,omitempty"` // parts of the check that have not been made there
}

// LastChecked says in a few words on which GPU scalebench was last checked.
func LastChecked() string {
	var r Record
	if err := json.Unmarshal(record, &r); err != nil {
		panic(err) // the file is part of the source, and a test reads it
	}
	return r.String()
}

func (r Record) String() string {
	text := fmt.Sprintf("checked on %s with NCCL %s on %s", r.GPUs, r.NCCL, r.Date)
	if len(r.Open) > 0 {
		text += ", but for " + strings.Join(r.Open, ", ")
	}
	return text + " (launcher/gpucheck/record.md)"
}

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
