//go:build gpu

package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpucheck"
)

// The parts of a step's time add up to the step. The CNN has three convolutions and a
// dense layer: four products forward, four for their weights, and three for inputs,
// since the image needs no gradient.
func TestGPUStepTime(t *testing.T) {
	out, complaint, err := withFakes(t, nil, "step-time", "--model", "cnn", "--batch", "3")
	if err != nil {
		t.Fatal(err, complaint)
	}
	var precisions []string
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var found struct {
			Precision string
			Step      float64
			Shares    []struct {
				What     string
				Launches int
				Seconds  float64
			}
		}
		if err := d.Decode(&found); err != nil {
			t.Fatal(err)
		}
		precisions = append(precisions, found.Precision)
		sum, launches := 0.0, map[string]int{}
		for _, s := range found.Shares {
			sum += s.Seconds
			launches[s.What] = s.Launches
		}
		if math.Abs(sum-found.Step) > 1e-9 || !(found.Step > 0) {
			t.Errorf("%s: shares of %v s, and a step of %v s", found.Precision, sum, found.Step)
		}
		for what, want := range map[string]int{"products": 11, "input": 1, "decode": 1, "normalise": 3, "cross_entropy": 1, "sgd": 1} {
			if launches[what] != want {
				t.Errorf("%s: %d launches of %s, want %d", found.Precision, launches[what], what, want)
			}
		}
	}
	if got := strings.Join(precisions, " "); got != "fp32 tf32 bf16" {
		t.Errorf("precisions %s", got)
	}
}

// The list has each check once, with its duration.
func TestGPUChecks(t *testing.T) {
	out, complaint, err := withFakes(t, nil, "checks")
	if err != nil {
		t.Fatal(err, complaint)
	}
	var list []gpucheck.Listed
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	seen, groups := map[string]bool{}, map[string]int{}
	for _, c := range list {
		group, _, _ := strings.Cut(c.Name, "/")
		groups[group]++
		if seen[c.Name] || !(c.Seconds > 0) {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	if len(groups) != 3 || groups["kernels"] == 0 || groups["products"] == 0 || groups["steps"] == 0 {
		t.Errorf("%v", groups)
	}
}
