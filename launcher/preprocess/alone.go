package preprocess

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// ReadAlone reads all files with the given number of threads, and discards what it reads. It
// measures the highest rate at which a source delivers data to that many threads. It returns
// the number of bytes.
func ReadAlone(ctx context.Context, store Store, files []File, threads int) (read int64, err error) {
	var next, sum atomic.Int64
	err = each(ctx, threads, func(ctx context.Context, _ int) error {
		buffer := make([]byte, 1<<20)
		for ctx.Err() == nil {
			i := next.Add(1) - 1
			if i >= int64(len(files)) {
				return nil
			}
			f, err := store.Open(ctx, files[i])
			if err != nil {
				return err
			}
			for err == nil {
				var n int
				n, err = f.Read(buffer)
				sum.Add(int64(n))
			}
			f.Close()
			if !errors.Is(err, io.EOF) {
				return err
			}
		}
		return nil
	})
	return sum.Load(), err
}

// WriteAlone writes the given number of random bytes in the same way as a pass writes samples.
// It measures the highest rate at which a target accepts data from that many threads.
func WriteAlone(ctx context.Context, target Target, bytes, shard int64, threads int) error {
	return each(ctx, threads, func(ctx context.Context, i int) error {
		buffer := make([]byte, atOnce)
		_, _ = rand.Read(buffer) // random bytes, so that a file system that compresses saves nothing; Read cannot fail
		left := bytes / int64(threads)
		for n := 0; left > 0 && ctx.Err() == nil; n++ {
			f, err := target.Create(ctx, fmt.Sprintf("alone-%d-%05d", i, n))
			if err != nil {
				return err
			}
			for size := int64(0); size < shard && left > 0 && err == nil; {
				var k int
				k, err = f.Write(buffer[:min(left, atOnce)])
				size, left = size+int64(k), left-int64(k)
			}
			if err == nil {
				err = f.Commit()
			} else {
				err = errors.Join(err, f.Abandon())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls work in the given number of threads. The first error cancels the context of the
// other calls, and is returned.
func each(ctx context.Context, threads int, work func(context.Context, int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for i := range threads {
		group.Go(func() {
			if err := work(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
