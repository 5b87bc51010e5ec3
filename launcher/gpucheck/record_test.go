package gpucheck

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// The record and the report come and go together, and the documents say what is
// so: none of them may go on claiming that nothing ran on a GPU, nor stop too
// early.
func TestRecordAndReport(t *testing.T) {
	var parsed *Record
	if err := json.Unmarshal(record, &parsed); err != nil {
		t.Fatalf("record.json: %v", err)
	}
	report, err := os.ReadFile("../../docs/gpu-check.md")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for file, sentence := range map[string]string{"docs/nccl.md": "This has never run on a GPU.", "docs/trainer.md": "It has never run on a GPU.", "docs/telemetry.md": "This has never run on a GPU.", "docs/cuda.md": "This has never run on a GPU.", "docs/gpu.md": "None of them has ever run on a GPU.", "README.md": "nothing here has run on a GPU"} {
		page, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(string(page), sentence); says != (parsed == nil) {
			t.Errorf("%s says %q: %v; record.json is %s", file, sentence, says, record)
		}
	}
	if parsed == nil {
		if report != nil {
			t.Error("docs/gpu-check.md is there without a record; make gpu-check writes both")
		}
		if Standing() != "scalebench itself has not been tested on a GPU" {
			t.Errorf("Standing: %q", Standing())
		}
		return
	}
	for what, word := range map[string]string{"commit": parsed.Commit, "date": parsed.Date, "GPUs": parsed.GPUs, "NCCL": parsed.NCCL, "driver": parsed.Driver, "PyTorch": parsed.PyTorch} {
		if word == "" || !strings.Contains(string(report), word) {
			t.Errorf("docs/gpu-check.md does not have the record's %s, %q", what, word)
		}
	}
	if strings.Contains(string(report), "DOUBLE") {
		t.Error("docs/gpu-check.md is of a double")
	}
}

func TestString(t *testing.T) {
	r := &Record{Date: "2026-12-01", GPUs: "1 × X", NCCL: "2.28.0"}
	if got, want := r.String(), "checked on 1 × X with NCCL 2.28.0 on 2026-12-01 (docs/gpu-check.md)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Open = []string{"energy/nvml", "scaling/gpus"}
	if got, want := r.String(), "checked on 1 × X with NCCL 2.28.0 on 2026-12-01, but for energy/nvml, scaling/gpus (docs/gpu-check.md)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
