package nccl_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
)

// One rank sums an array of four numbers over all ranks; here it is the only
// one. In a run of several processes, rank 0 makes the identifier and hands it
// to the others, as package rendezvous does. The tests run this with the fake.
func Example() {
	ctx := context.Background()
	library, err := nccl.Open(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	driver, err := cuda.Open(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	device, err := driver.Bind(0) // locks this goroutine to its thread
	if err != nil {
		log.Fatal(err)
	}
	defer device.Release()
	stream, err := device.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	buffer, err := device.Alloc(4 * 4)
	if err != nil {
		log.Fatal(err)
	}
	id, err := library.NewUniqueID()
	if err != nil {
		log.Fatal(err)
	}
	comm, err := library.Join(ctx, nccl.Options{Rank: 0, Size: 1, ID: id, Stream: uintptr(stream),
		Done: func() (bool, error) { return device.Done(stream) }})
	if err != nil {
		log.Fatal(err)
	}

	var numbers []byte
	for _, x := range []float32{1, 2, 3, 4} {
		numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(x))
	}
	if err := device.Upload(buffer, numbers, stream); err != nil {
		log.Fatal(err)
	}
	sum := nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Reduction: nccl.Sum, Count: 4, Send: uintptr(buffer), Recv: uintptr(buffer)}
	if err := comm.Enqueue(ctx, sum); err != nil {
		log.Fatal(err)
	}
	if err := comm.Wait(ctx); err != nil { // on failure: what this rank was doing
		log.Fatal(err)
	}
	if err := device.Download(numbers, buffer, stream); err != nil {
		log.Fatal(err)
	}
	fmt.Println(library)
	for i := range 4 {
		fmt.Println(math.Float32frombits(binary.LittleEndian.Uint32(numbers[4*i:])))
	}
	if err := comm.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// DOUBLE of NCCL 2.28.0 (not NCCL, not a GPU)
	// 1
	// 2
	// 3
	// 4
}
