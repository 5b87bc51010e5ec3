//go:build cgo

package gpurank

import (
	"bytes"
	"context"
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpucheck"
)

// This file runs every collective with every type and reduction and compares the results bit for
// bit with results computed independently. It shows that a binding moves and reduces the right
// data, on a GPU or with the fake. It only measures what calls cost on the host.

// mostRanks is the largest number of ranks whose results are exact in every type. NCCL multiplies
// floating-point averages by 1/ranks, which is exact for 1, 2 and 4; for 3 the results of the fake,
// which divides, are exact.
const mostRanks = 4

// proofTypes are the data types that the proof covers. These are all except the two 8-bit
// floating-point types, in which sums are rarely exact.
var proofTypes = []nccl.DataType{nccl.Int8, nccl.Uint8, nccl.Int32, nccl.Uint32, nccl.Int64, nccl.Uint64, nccl.Float16, nccl.Float32, nccl.Float64, nccl.BFloat16}

// counts returns the lengths to test, in elements. For the two types that are used most, the last
// length needs several rounds through NCCL's buffers.
func counts(t nccl.DataType) []int {
	if t == nccl.Int64 || t == nccl.Float32 {
		return []int{1, 5, 1000, most}
	}
	return []int{1, 5, 1000}
}

const most = 70_000

// ProofChecks is the number of results that RunProof compares: for every type and length,
// all-reduce and reduce-scatter with five reductions, all-gather and broadcast, each in place and
// out of place.
var ProofChecks = (3*len(proofTypes) + 2) * (5*2 + 2) * 2

// ProofRank holds the GPU objects of one rank that RunProof uses.
type ProofRank struct {
	Device *cuda.Device
	Stream cuda.Stream
	Comm   *nccl.Comm
}

// A ProofOutcome is the result of one rank.
type ProofOutcome struct {
	Checks int                   `json:"checks"` // results compared
	Wrong  []gpucheck.Difference `json:"wrong"`  // results that are not as expected; the first few
}

// mostWrong is the maximum number of wrong results that are listed.
const mostWrong = 5

// RunProof runs and checks all collectives; every rank must call it. It returns how many results it
// compared, and the wrong ones. perturb is the number, from 1, of a result in which one bit is
// changed before the comparison, to test that this is detected; 0: none. An error means that a call
// failed.
func RunProof(ctx context.Context, s ProofRank, perturb int) (ProofOutcome, error) {
	r := &run{ProofRank: s, ctx: ctx, perturb: perturb}
	size := s.Comm.Size()
	if size > mostRanks {
		return r.ProofOutcome, fmt.Errorf("a proof takes at most %d ranks, not %d", mostRanks, size)
	}
	for i := range r.buffers {
		var err error
		if r.buffers[i], err = s.Device.Alloc(int64(most * 8 * size)); err != nil {
			return r.ProofOutcome, err
		}
		defer s.Device.Free(r.buffers[i])
	}
	for _, t := range proofTypes {
		for _, n := range counts(t) {
			for _, r.inPlace = range []bool{false, true} {
				if err := r.prove(t, n); err != nil {
					return r.ProofOutcome, err
				}
			}
		}
	}
	return r.ProofOutcome, nil
}

// prove tries every collective with n elements of one type.
func (r *run) prove(t nccl.DataType, n int) error {
	rank, size := r.Comm.Rank(), r.Comm.Size()
	root := size - 1
	signed := t != nccl.Uint8 && t != nccl.Uint32 && t != nccl.Uint64
	o := nccl.Operation{Type: t, Count: int64(n), Root: root}
	for o.Reduction = nccl.Sum; o.Reduction <= nccl.Average; o.Reduction++ {
		mine := func(i int) int64 { return input(rank, i, o.Reduction, signed) }
		all := func(i int) int64 { return expected(size, i, o.Reduction, signed) }
		o.Kind = nccl.AllReduce
		if err := r.try(o, values(t, n, mine), values(t, n, all)); err != nil {
			return err
		}
		o.Kind = nccl.ReduceScatter
		if err := r.try(o, values(t, n*size, mine), values(t, n, func(i int) int64 { return all(rank*n + i) })); err != nil {
			return err
		}
	}
	o.Reduction = nccl.Sum
	of := func(rank int) func(i int) int64 {
		return func(i int) int64 { return input(rank, i, nccl.Sum, signed) }
	}
	o.Kind = nccl.AllGather
	if err := r.try(o, values(t, n, of(rank)), values(t, n*size, func(i int) int64 { return of(i / n)(i % n) })); err != nil {
		return err
	}
	o.Kind = nccl.Broadcast
	return r.try(o, values(t, n, of(rank)), values(t, n, of(root)))
}

type run struct {
	ProofRank
	ProofOutcome
	ctx     context.Context
	perturb int
	inPlace bool
	buffers [2]cuda.Pointer
}

// try runs one operation with the data sent and compares the result with want.
func (r *run) try(o nccl.Operation, sent, want []byte) error {
	send, recv := r.buffers[0], r.buffers[1]
	if r.inPlace { // the smaller buffer is this rank's part of the larger
		switch recv = send; o.Kind {
		case nccl.ReduceScatter:
			recv += cuda.Pointer(r.Comm.Rank() * len(want))
		case nccl.AllGather:
			send += cuda.Pointer(r.Comm.Rank() * len(sent))
		}
	}
	if err := r.Device.Upload(send, sent, r.Stream); err != nil {
		return err
	}
	o.Send, o.Recv = uintptr(send), uintptr(recv)
	if err := r.Comm.Enqueue(r.ctx, o); err != nil {
		return err
	}
	if err := r.Comm.Wait(r.ctx); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if err := r.Device.Download(got, recv, r.Stream); err != nil {
		return err
	}
	r.Checks++
	if r.Checks == r.perturb {
		got[len(got)-1] ^= 1
	}
	if !bytes.Equal(got, want) && len(r.Wrong) < mostWrong {
		r.Wrong = append(r.Wrong, difference(o, r.inPlace, got, want))
	}
	return nil
}

// difference describes a wrong result, element by element.
func difference(o nccl.Operation, inPlace bool, got, want []byte) gpucheck.Difference {
	where := "out of place"
	if inPlace {
		where = "in place"
	}
	size := int(o.Type.Size())
	d := gpucheck.Difference{What: fmt.Sprintf("%v %v %v × %d %s", o.Kind, o.Type, o.Reduction, o.Count, where),
		Shape: fmt.Sprint(len(want) / size), Elements: len(want) / size, Tolerance: "none",
		Launch: &gpucheck.Launch{Kernel: fmt.Sprintf("NCCL's %v", o.Kind), Arguments: fmt.Sprintf("%+v", o)}}
	for i := 0; i < len(want); i += size {
		d.Add(i/size, value(got[i:i+size], o.Type), value(want[i:i+size], o.Type), bytes.Equal(got[i:i+size], want[i:i+size]))
	}
	return d
}
