//go:build slurm

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher"
)

// wrote holds what the ranks of a run wrote, read without any of our code.
type wrote struct {
	durations, samples []float64 // by step: of the slowest rank, of all ranks
	ranks              []int     // number of ranks that reported the step
	epochs             []int     // steps done at the end of each, by rank 0
	train, last        float64   // times on rank 0's clock: start of its training, and end of its last step or evaluation
	accuracy           *float64  // of the last evaluation
}

// readRank adds a rank's event file.
func (w *wrote) readRank(path string, rank int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var e struct {
			T     float64
			Train *struct{}
			Steps *struct {
				First             int
				Tick              float64
				Duration, Samples []float64
			}
			Epoch      *struct{ Step int }
			Evaluation *struct{ Accuracy float64 }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if rank == 0 && e.Train != nil {
			w.train = e.T
		}
		if rank == 0 && (e.Steps != nil || e.Evaluation != nil) {
			w.last = e.T
		}
		if rank == 0 && e.Epoch != nil {
			w.epochs = append(w.epochs, e.Epoch.Step)
		}
		if e.Evaluation != nil {
			w.accuracy = &e.Evaluation.Accuracy
		}
		if e.Steps == nil {
			continue
		}
		for i, ticks := range e.Steps.Duration {
			for len(w.durations) <= e.Steps.First+i {
				w.durations, w.samples, w.ranks = append(w.durations, 0), append(w.samples, 0), append(w.ranks, 0)
			}
			step := e.Steps.First + i
			w.durations[step] = max(w.durations[step], ticks*e.Steps.Tick)
			w.samples[step] += e.Steps.Samples[i]
			w.ranks[step]++
		}
	}
	return nil
}

// rightFigures compares the stored results of a good attempt with values computed from its ranks'
// files as docs/metrics.md says. Only the number of warm-up steps is taken from scalebench,
// through run.
func (f *findings) rightFigures(run func(args ...string) (string, int), a *launcher.Attempt) {
	out, code := run("show", a.Record.ID, "--format", "json")
	var shown struct {
		Result struct {
			Restart, Steps int
			Samples        float64
			Warmup         int      `json:"warmup_steps"`
			Steady         int      `json:"steady_steps"`
			World          int      `json:"world"`
			Rate           *float64 `json:"throughput"`
			Why            *string  `json:"throughput_why"`
			EndToEnd       *float64 `json:"end_to_end"`
			Seconds        *float64 `json:"train_seconds"`
			Final          *float64 `json:"final_accuracy"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&shown); err != nil || code != 0 {
		f.lost = append(f.lost, fmt.Sprintf("show %s: exit code %d, %v: %.500s", a.Record.ID, code, err, out))
		return
	}
	got := shown.Result
	claims, err := filepath.Glob(filepath.Join(a.Run.Path(), "claim-*"))
	if err != nil || len(claims) == 0 {
		f.lost = append(f.lost, a.Record.ID+" is good and was never claimed")
		return
	}
	restart := 0 // the newest: a job may be preempted before its first start claims
	for _, claim := range claims {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(claim), "claim-"))
		if err != nil {
			f.lost = append(f.lost, fmt.Sprintf("%s has the claim %s", a.Record.ID, claim))
			return
		}
		restart = max(restart, n)
	}
	var w wrote
	for rank := range a.Point.Workers {
		path := filepath.Join(a.Run.Path(), "events", fmt.Sprintf("rank-%05d-%d.jsonl", rank, restart))
		if err := w.readRank(path, rank); err != nil {
			f.lost = append(f.lost, err.Error())
			return
		}
	}
	wrong := func(what string, got, want any) {
		f.wrong = append(f.wrong, fmt.Sprintf("%s: %s is stored as %v, and its ranks wrote %v", a.Record.ID, what, got, want))
	}
	figure := func(what string, got *float64, want float64) {
		if got == nil {
			wrong(what, "nothing", want)
		} else if math.Abs(*got-want) > 1e-9*math.Abs(want) {
			wrong(what, *got, want)
		}
	}
	for step, ranks := range w.ranks {
		if ranks != a.Point.Workers {
			wrong(fmt.Sprintf("step %d", step), "one of all ranks", fmt.Sprintf("it %d times", ranks))
		}
	}
	samples := sum(w.samples)
	if got.Steps != len(w.durations) || got.Restart != restart || got.World != a.Point.Workers || got.Samples != samples {
		wrong("steps, restart, ranks, samples", []any{got.Steps, got.Restart, got.World, got.Samples}, []any{len(w.durations), restart, a.Point.Workers, samples})
		return
	}
	figure("training time", got.Seconds, w.last-w.train)
	figure("end-to-end throughput", got.EndToEnd, samples/(w.last-w.train))
	if w.accuracy != nil {
		figure("accuracy", got.Final, *w.accuracy)
	} else if got.Final != nil {
		wrong("accuracy", *got.Final, "none")
	}
	switch {
	case got.Rate == nil && (got.Why == nil || *got.Why == ""):
		wrong("throughput", "nothing, without a reason", "steps")
	case got.Rate != nil && (got.Steady < 10 || got.Warmup+got.Steady != got.Steps):
		wrong("steady steps", got.Steady, got.Steps-got.Warmup)
	case got.Rate != nil:
		figure("throughput", got.Rate, w.rate(got.Warmup))
	}
}

// rate returns the throughput after warm-up. It averages the steps at each position over all
// epochs, and returns the throughput of the resulting epoch. Without epochs of equal length (the
// last may be incomplete), all steps have the same position.
func (w *wrote) rate(warmup int) float64 {
	length := 1
	if len(w.epochs) > 0 && w.epochs[0] < len(w.durations) {
		length = w.epochs[0]
	}
	for i, end := range w.epochs {
		if whole := (i + 1) * length; end != whole && (end > whole || i < len(w.epochs)-1) {
			length = 1
		}
	}
	samples, seconds := 0.0, 0.0
	for place := range length {
		n, s, d := 0, 0.0, 0.0
		for step := warmup; step < len(w.durations); step++ {
			if step%length == place {
				n, s, d = n+1, s+w.samples[step], d+w.durations[step]
			}
		}
		if n > 0 {
			samples, seconds = samples+s/float64(n), seconds+d/float64(n)
		}
	}
	return samples / seconds
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}
