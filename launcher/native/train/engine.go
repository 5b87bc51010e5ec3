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

// An engine is one rank's copy of the model on some device, such as onCPU. It owns the parameters,
// their gradients, and the reduction of gradients over the ranks, so that a device can reduce while
// it still computes. The step loop only decides the order of the calls.
//
// A step is: fill Input, Gradient, Reduce, Update. Between the start of Gradient and the end of
// Reduce, only the engine may use the ranks' group.
//
// An engine for GPUs (package train/gpu) has the same methods. It uses the group to exchange NCCL's
// identifier and for the sums of evaluations.
type engine interface {
	Parameters() int
	GradientBytes() int64
	// WriteParameters writes all parameters as little-endian IEEE 754.
	WriteParameters(w io.Writer) error

	// Input returns where to put the next batch for Gradient or Evaluate. The memory may differ
	// from call to call.
	Input() dataset.Batch
	// Broadcast copies rank 0's parameters to all ranks.
	Broadcast(ctx context.Context) error
	// Gradient computes this rank's share of the gradient of the mean loss over the global batch,
	// and may start to reduce finished parts of it. loss is the sum over the first n images;
	// communication is the part of the call that was spent waiting for other ranks.
	Gradient(ctx context.Context, n int) (loss float64, communication time.Duration, err error)
	// Reduce returns when the gradients and the votes are summed over all ranks. busy is the time
	// during which gradients were being reduced in this step, including during Gradient.
	Reduce(ctx context.Context, votes []float32) (busy time.Duration, err error)
	// SquaredNorms returns the squared norms of the gradients just reduced, for the gradient noise
	// scale: own of the mean loss over this rank's images, averaged of the mean loss over the
	// global batch. ok is false in steps that do not measure them.
	SquaredNorms() (own, averaged float64, ok bool)
	// Update makes a step of the optimiser.
	Update(learningRate float64)
	// AverageStatistics makes the values that an evaluation needs in addition to the parameters
	// equal on all ranks.
	AverageStatistics(ctx context.Context) error
	// Trained returns the model in the form that Evaluate uses.
	Trained() (*netspec.Trained, error)
	// Evaluate classifies the first n images. loss is the sum of their losses.
	Evaluate(n int) (loss float64, correct int, err error)
	Close()
}

// onCPU is the engine on CPUs. Its images are decoded when a batch is made.
type onCPU struct{ *cpu.Engine }

func (e onCPU) Input() dataset.Batch {
	images, labels := e.Engine.Input()
	return dataset.Decoded{Images: images, Labels: labels}
}

// A GPU is an engine on a GPU, with the data that a run records about it.
type GPU interface {
	engine
	// GPU returns the GPU's model.
	GPU() string
	// Ahead returns what Input will return after the next Gradient or Evaluate: another goroutine
	// may fill it during the computation.
	Ahead() dataset.Batch
	// Versions returns the versions of the libraries that compute and reduce.
	Versions() map[string]string
	// TimingCaveats returns why the run's timings do not reflect the hardware. They must be stored with
	// them.
	TimingCaveats() []string
	// End leaves the group normally, or tells the other ranks why this one cannot continue and
	// returns that reason. The parameters can still be read.
	End(ctx context.Context, reason error) error
}

// parameterSHA256 returns the hash of an engine's parameters. It is equal only for equal bits.
func parameterSHA256(e engine) (string, error) {
	h := sha256.New()
	if err := e.WriteParameters(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
