package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// An engine is one rank's copy of the model on some device. It owns the
// parameters, their gradients and the reduction of gradients over the ranks, so
// that a device which reduces while it still computes can do so; the step loop
// only says what happens when. onCPU is one.
//
// A step is: fill Input, Gradient, Reduce, Update. Between Gradient's begin and
// Reduce's end the engine may use the ranks' group whenever it likes, and nobody
// else may.
//
// An engine for GPUs (package train/gpu) fits the same calls: the group is then what
// the ranks found each other with; it carries NCCL's identifier, and the sums of
// evaluations.
type engine interface {
	Parameters() int
	GradientBytes() int64
	// WriteParameters writes all parameters as little-endian IEEE 754.
	WriteParameters(w io.Writer) error

	// Input is where the next batch goes, of Gradient or Evaluate. It may be another
	// memory for each.
	Input() dataset.Batch
	// Broadcast makes rank 0's parameters everybody's.
	Broadcast(ctx context.Context) error
	// Gradient makes this rank's share of the gradient of the mean loss over the
	// global batch, and may begin to reduce what is final of it. loss is the sum
	// over the first n images; communication is the part of the call that was
	// spent waiting for other ranks.
	Gradient(ctx context.Context, n int) (loss float64, communication time.Duration, err error)
	// Reduce returns when the gradients are summed over all ranks, and votes
	// with them. busy is how long gradients were being reduced in this step,
	// also while Gradient still computed others.
	Reduce(ctx context.Context, votes []float32) (busy time.Duration, err error)
	// SquaredNorms are those of the gradients just reduced, for the gradient
	// noise scale: own of the mean loss over this rank's images, averaged of that
	// over the global batch. ok is false in steps that they were not measured in.
	SquaredNorms() (own, averaged float64, ok bool)
	// Update makes an optimiser step.
	Update(learningRate float64)
	// AverageStatistics makes what an evaluation uses beside the parameters
	// equal on all ranks.
	AverageStatistics(ctx context.Context) error
	// Trained is the model as Evaluate uses it.
	Trained() (*netspec.Trained, error)
	// Evaluate classifies the first n images; loss is their sum.
	Evaluate(n int) (loss float64, correct int, err error)
	Close()
}

// onCPU is the engine on CPUs. Its images are decoded where the batch is made.
type onCPU struct{ *cpu.Engine }

func (e onCPU) Input() dataset.Batch {
	images, labels := e.Engine.Input()
	return dataset.Decoded{Images: images, Labels: labels}
}

// A GPU is an engine on one, and what a run has to say of it.
type GPU interface {
	engine
	// GPU is its model.
	GPU() string
	// Ahead is what Input will be after the next Gradient or Evaluate: a batch may be
	// put there while that computes, on another goroutine.
	Ahead() dataset.Batch
	// Versions are those of what computes and reduces.
	Versions() map[string]string
	// Doubts are why the run's figures are none of the hardware; they belong beside
	// them wherever they are kept.
	Doubts() []string
	// End leaves the other ranks in order, or tells them why this one cannot go on,
	// and returns that. Parameters can still be read.
	End(ctx context.Context, reason error) error
}

// parameterSHA256 is the hash of an engine's parameters, equal for equal bits
// only.
func parameterSHA256(e engine) (string, error) {
	h := sha256.New()
	if err := e.WriteParameters(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
