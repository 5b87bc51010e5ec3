// Package gpucheck has the record of when the GPU check (cmd/gpu-check) last passed,
// the formats in which the worker answers the check, and how a check is defined
// (check.go) and run (run.go). The record is part of the
// source, like docs/gpu-check.md. Until one is committed, programs say wherever GPUs
// come up that scalebench has never run on one.
package gpucheck

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed record.json
var record []byte

// A Record says where and when the check passed.
type Record struct {
	Date    string `json:"date"`   // 2006-01-02, UTC
	Commit  string `json:"commit"` // that was checked
	Host    string `json:"host"`
	GPUs    string `json:"gpus"`   // "1 × NVIDIA H100 80GB HBM3"
	Driver  string `json:"driver"` // the CUDA that it supports
	NCCL    string `json:"nccl"`
	PyTorch string `json:"pytorch"`
}

// Last is the record in this source; nil: the check has never passed on a GPU.
func Last() *Record {
	var r *Record
	if err := json.Unmarshal(record, &r); err != nil {
		return nil // a test keeps the file readable; unreadable is no proof
	}
	return r
}

// Standing says in a few words what a program may claim of GPUs.
func Standing() string { return Last().String() }

func (r *Record) String() string {
	if r == nil {
		return "scalebench itself has not been tested on a GPU"
	}
	return fmt.Sprintf("checked on %s with NCCL %s on %s (docs/gpu-check.md)", r.GPUs, r.NCCL, r.Date)
}
