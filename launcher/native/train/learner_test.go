package train

import (
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// learn passes the batches of p's trainer to a learner, and returns the loss of the epoch and
// the hash of the parameters.
func learn(t *testing.T, p study.Point, rank int, l net.Listener) (loss float64, hash string) {
	w := world.World{Rank: rank, Size: p.Workers, LocalRank: rank, LocalSize: p.Workers, Nodes: 1, Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	o := collective.Options{Timeout: 30 * time.Second, JoinTimeout: 30 * time.Second}
	if rank == 0 {
		o.Listener = l
	}
	g, err := collective.Join(t.Context(), w, "secret", o)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer g.Close()
	source, err := openData(p)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	data, err := source.Load()
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	train := p.Workload.Train
	learner, err := NewLearner(t.Context(), cpu.Options{
		Model: train.Model, Classes: dataset.Classes, Height: dataset.Height, Width: dataset.Width, Channels: dataset.Channels,
		Batch: p.WorkerBatch, Seed: p.Seed, Threads: 1, Momentum: train.Momentum, WeightDecay: train.WeightDecay,
	}, train.LearningRate, g)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer learner.Close()
	order := newOrder(p.Seed, data.Train.Len(), rank, p.WorkerBatch, p.GlobalBatch)
	order.shuffle(0)
	batch := dataset.Decoded{Images: make([]float32, p.WorkerBatch*dataset.ImageBytes), Labels: make([]byte, p.WorkerBatch)}
	for k := range order.stepsPerEpoch() {
		for i, id := range order.batch(k) {
			batch.Put(i, data.Train.Image(int(id)), augmentation(p.Seed, 0, id), data.Train.Labels[id])
		}
		if all, err := learner.Agree(t.Context(), true); err != nil || !all {
			t.Errorf("%v, %v", all, err)
		}
		part, err := learner.Step(t.Context(), batch.Images, batch.Labels)
		if err != nil {
			t.Error(err)
		}
		loss += part
	}
	// All ranks stop if one rank has no batch.
	if all, err := learner.Agree(t.Context(), rank == 0 && p.Workers > 1); err != nil || all {
		t.Errorf("%v, %v", all, err)
	}
	if hash, err = learner.ParameterSHA256(); err != nil {
		t.Error(err)
	}
	return loss, hash
}

// With the same batches, a learner ends with the trainer's loss and parameters, bit for bit.
func TestLearnerIsTheTrainer(t *testing.T) {
	for _, workers := range []int{1, 2} {
		p := point("cnn", workers, 8)
		runs := runRanks(t, p, workers, nil)
		noErrors(t, runs)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for rank := range workers {
			group.Go(func() {
				loss, hash := learn(t, p, rank, listener)
				if want := runs[rank].last().Stop.ParameterSHA256; hash != want {
					t.Errorf("%d workers, rank %d: parameters %s, the trainer's are %s", workers, rank, hash, want)
				}
				if want := *runs[rank].of("epoch")[0].Epoch.Loss; math.Abs(loss/float64(64/workers)-want) > 1e-12 {
					t.Errorf("%d workers, rank %d: loss %v, the trainer's is %v", workers, rank, loss/float64(64/workers), want)
				}
			})
		}
		group.Wait()
	}
}

// A batch of another size is an error, and so is a loss that is not a finite number.
func TestLearnerRefuses(t *testing.T) {
	g, err := collective.Join(t.Context(), world.World{Size: 1, LocalSize: 1, Nodes: 1}, "secret", collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	l, err := NewLearner(t.Context(), cpu.Options{Model: "cnn", Classes: 2, Height: 8, Width: 8, Channels: 3, Batch: 1, Threads: 1}, 0.1, g)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Step(t.Context(), make([]float32, 10), []byte{0}); err == nil {
		t.Error("a batch of 10 values is no error")
	}
	images := make([]float32, 3*8*8)
	images[5] = float32(math.NaN())
	if _, err := l.Step(t.Context(), images, []byte{1}); err == nil || !strings.Contains(err.Error(), "loss of step 1 is not a finite number") {
		t.Error(err)
	}
	if _, err := NewLearner(t.Context(), cpu.Options{Model: "none", Classes: 2, Height: 8, Width: 8, Channels: 3, Batch: 1, Threads: 1}, 0.1, g); err == nil {
		t.Error("an unknown model is no error")
	}
}
