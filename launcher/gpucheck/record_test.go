package gpucheck

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The record and the report in record.md describe the same check, which was on a GPU.
func TestRecordAndReport(t *testing.T) {
	var parsed Record
	if err := json.Unmarshal(record, &parsed); err != nil {
		t.Fatalf("record.json: %v", err)
	}
	report, err := os.ReadFile("record.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, word := range map[string]string{"commit": parsed.Commit, "date": parsed.Date, "GPUs": parsed.GPUs, "NCCL": parsed.NCCL, "driver": parsed.Driver, "PyTorch": parsed.PyTorch} {
		if word == "" || !strings.Contains(string(report), word) {
			t.Errorf("record.md does not have the record's %s, %q", what, word)
		}
	}
	for _, part := range parsed.Open {
		if !strings.Contains(string(report), "| "+part+" | pending |") {
			t.Errorf("record.md does not list %s as pending", part)
		}
	}
	if strings.Contains(string(report), "DOUBLE") {
		t.Error("record.md is of the fakes")
	}
}

func TestString(t *testing.T) {
	r := Record{Date: "2026-12-01", GPUs: "1 × X", NCCL: "2.28.0"}
	if got, want := r.String(), "checked on 1 × X with NCCL 2.28.0 on 2026-12-01 (launcher/gpucheck/record.md)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Open = []string{"energy/nvml", "scaling/gpus"}
	if got, want := r.String(), "checked on 1 × X with NCCL 2.28.0 on 2026-12-01, but for energy/nvml, scaling/gpus (launcher/gpucheck/record.md)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
