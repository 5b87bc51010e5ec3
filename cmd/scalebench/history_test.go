package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// measured stores runs with known results: "measured STUDY
// WORKERS BATCH STEP..." stores one finished run for each step time given in
// milliseconds; all steps are equal, so the throughput is BATCH·WORKERS/STEP.
// It reaches accuracy 0.5 after 2 of its 4 epochs and 0.75 after the last.
// A step time of "failed" stores a run that failed. The database is $SCALEBENCH_DB.
//
// KEY=VALUE before the step times sets more: cpu (model), commit, created
// (seconds since 1970 of the first run; the others follow by the second), nodes,
// repeat (of the first run), partition (of a job of 90 s), python, container and
// modules (of the site, which has else recorded nothing); anything else is a
// parameter.
func measured(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: measured study workers batch [key=value...] step...")
	}
	study := args[0]
	workers, err := strconv.Atoi(args[1])
	ts.Check(err)
	batch, err := strconv.Atoi(args[2])
	ts.Check(err)
	more := map[string]string{"cpu": "Test CPU", "created": strconv.Itoa(1795000000 + 100*workers), "nodes": "1", "repeat": "1"}
	steps := slices.DeleteFunc(args[3:], func(arg string) bool {
		key, value, is := strings.Cut(arg, "=")
		if is {
			more[key] = value
		}
		return is
	})
	take := func(key string) string {
		value := more[key]
		delete(more, key)
		return value
	}
	count := func(key string) int {
		n, err := strconv.Atoi(take(key))
		ts.Check(err)
		return n
	}
	environment := &metrics.Environment{Hostname: "node1", CPUModel: take("cpu"), CPUs: 64, GitCommit: take("commit"), Versions: map[string]string{"native": "1"}}
	if s := (metrics.Setting{Python: take("python"), Container: take("container"), Modules: take("modules")}); s != (metrics.Setting{}) {
		environment.Setting = &s
	}
	created, nodes, first, partition := count("created"), count("nodes"), count("repeat"), take("partition")
	db, err := store.Open(ts.MkAbs(ts.Getenv("SCALEBENCH_DB")), store.Options{})
	ts.Check(err)
	defer db.Close()
	for i, step := range steps {
		i += first - 1
		point := fmt.Sprintf("native-w%d", workers)
		for _, key := range slices.Sorted(maps.Keys(more)) {
			point += "-" + more[key]
		}
		run := metrics.Run{
			ID: fmt.Sprintf("%s/%s-r%d-a1", study, point, i+1), Study: study, Point: point, Repeat: i + 1, Attempt: 1,
			Kind: "train", Framework: "native", Workers: workers, Nodes: nodes,
			Parameters: map[string]any{"framework": "native", "workers": int64(workers), "workload.batch": int64(batch),
				"workload.scaling": "weak", "workload.targets": []any{0.5, 0.75}},
			Status: metrics.Done, Dir: ts.MkAbs(filepath.Join("runs", study, point)), CreatedUnix: float64(created + i - first + 1),
		}
		for key, value := range more {
			run.Parameters[key] = value
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				run.Parameters[key] = n
			}
		}
		if partition != "" {
			run.Job = &metrics.Job{ID: strconv.Itoa(1000 + i), Partition: partition, State: "COMPLETED",
				StartUnix: run.CreatedUnix, EndUnix: run.CreatedUnix + 90}
		}
		var files []metrics.EventFile
		if step == "failed" {
			run.Status, run.Detail = metrics.Failed, "exit code 1"
		} else {
			milliseconds, err := strconv.ParseFloat(step, 64)
			ts.Check(err)
			for rank := range workers {
				path := filepath.Join(ts.MkAbs("events"), fmt.Sprintf("%s-%s-%d-%d.jsonl", study, strings.TrimPrefix(point, "native-w"), i, rank))
				ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
				ts.Check(os.WriteFile(path, rankEvents(rank, workers, float64(created/100000*100000), int64(batch), milliseconds/1000, environment), 0o644))
				files = append(files, metrics.EventFile{Path: path, Writer: "rank", Rank: rank})
			}
		}
		_, err := db.Ingest(context.Background(), run, files)
		ts.Check(err)
	}
	ts.Check(db.Arrange(context.Background()))
}

// rankEvents returns the events of one rank of such a run: training starts after 1 s and has 4
// epochs of 50 steps, each followed by an instantaneous evaluation. Runs that were created
// close to each other start at the same time.
func rankEvents(rank, workers int, began float64, batch int64, step float64, environment *metrics.Environment) []byte {
	const epochs, steps = 4, 50
	var lines strings.Builder
	add := func(e metrics.Event) {
		line, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		lines.Write(append(line, '\n'))
	}
	add(metrics.Event{Start: &metrics.Start{Format: metrics.FormatVersion, Unix: began, Writer: "rank", Framework: "native",
		Rank: rank, WorldSize: workers, LocalRank: rank, Host: "node1", PID: 100 + rank}})
	add(metrics.Event{Time: 0.5, Environment: environment})
	add(metrics.Event{Time: 1, Train: &metrics.Train{Parameters: 1000, GradientBytes: 4000, TrainSamples: steps * batch, TestSamples: 100,
		GlobalBatch: int(batch) * workers, StepsPerEpoch: steps}})
	at := 1.0
	for epoch := 1; epoch <= epochs; epoch++ {
		columns := metrics.Steps{First: (epoch - 1) * steps, Tick: 1e-6}
		for range steps {
			columns.Duration = append(columns.Duration, int64(step*1e6))
			columns.Samples = append(columns.Samples, batch)
		}
		at += steps * step
		add(metrics.Event{Time: at, Steps: &columns})
		add(metrics.Event{Time: at, Epoch: &metrics.Epoch{Epoch: epoch, Step: epoch * steps, Samples: steps * batch, Seconds: steps * step, LearningRate: 0.1}})
		if workers > 1 {
			add(metrics.Event{Time: at, Gradients: gradientsOfNoise(640, epoch, epoch*steps, int(batch), workers)})
		}
		if rank == 0 {
			add(metrics.Event{Time: at, Evaluation: &metrics.Evaluation{Epoch: epoch, Step: epoch * steps,
				Accuracy: []float64{0.25, 0.5, 0.625, 0.75}[epoch-1], Samples: 100}})
		}
	}
	add(metrics.Event{Time: at, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: epochs * steps, Epochs: epochs}})
	return []byte(lines.String())
}

// gradientsOfNoise returns the norms of 10 blocks of 5 steps with |G|² = 1 and a
// tr(Σ) that goes up evenly by a tenth of its mean from block to block. The
// noise scale is that mean, and its interval, by Student's t with 9 degrees of
// freedom, ± 2.262157·√(82.5/9/10)/10 = ± 21.66 %.
func gradientsOfNoise(mean float64, epoch, step, batch, workers int) *metrics.Gradients {
	g := &metrics.Gradients{Epoch: epoch, Step: step, Samples: batch, GlobalSamples: batch * workers}
	for k := range 10 {
		trace := mean * (1 + (float64(k)-4.5)/10)
		g.Steps = append(g.Steps, 5)
		g.Own = append(g.Own, 1+trace/float64(batch))
		g.Averaged = append(g.Averaged, 1+trace/float64(batch*workers))
	}
	return g
}
