package train

import (
	"math/rand/v2"

	"github.com/scalebench/scalebench/launcher/native/dataset"
)

// Numbers of random streams. They differ from each other and from the model's.
const (
	orderStream uint64 = iota + 1
	augmentStream
)

// An order determines the samples of each global batch. Each epoch has a different permutation of the training
// set, the same on all ranks. Step k of the epoch takes the next globalBatch samples, and each rank a
// contiguous part by rank. So the samples of a global batch and their order do not depend on the number of
// ranks. An incomplete last batch is left out.
type order struct {
	seed         uint64
	samples      []int32
	rank, worker int // this rank, and the number of its samples in a global batch
	globalBatch  int
}

func newOrder(seed int64, samples, rank, workerBatch, globalBatch int) *order {
	return &order{seed: uint64(seed), samples: make([]int32, samples), rank: rank, worker: workerBatch, globalBatch: globalBatch}
}

func (o *order) stepsPerEpoch() int { return len(o.samples) / o.globalBatch }

// shuffle draws the permutation of an epoch, 0-based.
func (o *order) shuffle(epoch int) {
	random := rand.New(rand.NewPCG(o.seed, orderStream<<32|uint64(epoch)))
	for i := range o.samples {
		o.samples[i] = int32(i)
	}
	random.Shuffle(len(o.samples), func(i, j int) { o.samples[i], o.samples[j] = o.samples[j], o.samples[i] })
}

// batch returns this rank's samples in step k of the epoch.
func (o *order) batch(k int) []int32 {
	at := k*o.globalBatch + o.rank*o.worker
	return o.samples[at : at+o.worker]
}

// share returns the part [from, to) of n samples that a rank evaluates.
func share(n, rank, size int) (from, to int) { return rank * n / size, (rank + 1) * n / size }

// augmentation returns the random transform of a sample in an epoch. It only depends on these, not
// on the rank that trains on the sample.
func augmentation(seed int64, epoch int, sample int32) dataset.Transform {
	var source rand.PCG
	source.Seed(uint64(seed), augmentStream<<60|uint64(epoch)<<32|uint64(uint32(sample)))
	bits := source.Uint64()
	const positions = 2*dataset.Margin + 1
	return dataset.Transform{
		DX:     uint8(bits & 0xffff % positions),
		DY:     uint8(bits >> 16 & 0xffff % positions),
		Mirror: bits>>32&1 == 1,
	}
}
