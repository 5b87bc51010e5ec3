// Package preprocess prepares samples for a training and measures how long each stage
// takes: it lists and opens files, reads, decodes and resizes, normalises, packs and
// writes. Threads share the files and do with each sample everything that there is to
// do, one stage after the other, as the workers of the usual data loaders do.
//
// Every moment of a thread belongs to one stage, by the clock and in CPU time, so
// stages add up to the whole. Seconds, bytes and samples; rates are for others to make.
package preprocess

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Options are one pass over files.
type Options struct {
	Format       string
	Threads      int
	Resize, Crop int
	// Decoder makes one for each thread; nil for a format without JPEG.
	Decoder func() (Decoder, error)
	// Target is where samples are written; nil writes none.
	Target Target
	Shard  int64 // bytes of each file there
	Store  Store // that the files are in
	// Take, if not nil, receives each finished sample in the thread that made it.
	Take func(ctx context.Context, s Sample) error
	// Classes, if not nil, give each sample's label.
	Classes *Classes
}

// A Sample is a prepared sample. The thread overwrites its memory with the next one.
type Sample struct {
	Values []float32 // of an image: normalised red, green, blue, one after the other
	Class  byte      // 0 if Classes is nil
}

// A Result is the work of a pass over all threads.
type Result struct {
	Samples       int64
	Read, Written int64 // bytes
	Stages        [Stages]Spent
	CPU           float64 // seconds of the process
	Delay         float64 // seconds in which threads could run and had no CPU; NaN: not known
	FewFiles      bool    // fewer than threads
}

// A thread prepares samples.
type thread struct {
	*stopwatch
	options *Options
	format  format
	decoder Decoder
	pixels  Pixels
	scaler  scaler
	floats  []float32
	ahead   *bufio.Reader
	sample  []byte // as it was read
	table   csvBlock
	packed  []byte // as it is handed over
	out     output
	result  Result
}

// Pass prepares the samples of all files. The first error ends it.
func Pass(ctx context.Context, files []File, o Options) (Result, error) {
	f, ok := formats[o.Format]
	if !ok {
		return Result{}, fmt.Errorf("format %q is not known", o.Format)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	results := make([]Result, o.Threads)
	before := processCPU()
	for i := range results {
		group.Go(func() {
			runtime.LockOSThread() // stages are in the thread's own CPU time
			defer runtime.UnlockOSThread()
			t := &thread{stopwatch: startWatch(Open), options: &o, format: f, scaler: scaler{resize: o.Resize, crop: o.Crop}}
			t.out = output{target: o.Target, number: i, shard: o.Shard}
			delay, known := threadDelay()
			err := t.run(ctx, files, &next)
			t.enter(Open)
			t.result.Delay = math.NaN()
			if after, ok := threadDelay(); ok && known {
				t.result.Delay = (after - delay).Seconds()
			}
			t.result.Stages = t.sums
			results[i] = t.result
			if err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	sum := Result{CPU: (processCPU() - before).Seconds(), FewFiles: len(files) < o.Threads}
	for _, r := range results {
		sum.Samples += r.Samples
		sum.Read += r.Read
		sum.Written += r.Written
		sum.Delay += r.Delay
		for s := range sum.Stages {
			sum.Stages[s].Wall += r.Stages[s].Wall
			sum.Stages[s].CPU += r.Stages[s].CPU
		}
	}
	return sum, context.Cause(ctx)
}

// run takes one file after the other.
func (t *thread) run(ctx context.Context, files []File, next *atomic.Int64) (err error) {
	if t.options.Decoder != nil {
		if t.decoder, err = t.options.Decoder(); err != nil {
			return err
		}
		defer t.decoder.Close()
	}
	for {
		i := next.Add(1) - 1
		if i >= int64(len(files)) {
			return t.out.close(ctx, t)
		}
		if err := t.take(ctx, files[i]); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", files[i].Path, err), t.out.abandon())
		}
	}
}

// take prepares the samples of one file.
func (t *thread) take(ctx context.Context, file File) error {
	t.enter(Open)
	source := reading{t: t}
	var opened io.Closer
	if t.format.ranges {
		f, err := t.options.Store.OpenRanges(ctx, file)
		if err != nil {
			return err
		}
		source.at, opened = f, f
	} else {
		f, err := t.options.Store.Open(ctx, file)
		if err != nil {
			return err
		}
		source.from, opened = f, f
	}
	defer func() { // closing belongs to opening
		t.enter(Open)
		opened.Close()
	}()
	t.enter(Read)
	return t.format.samples(t, source, file.Size, func(sample []byte) error {
		if t.result.Samples++; ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.format.prepare(t, sample); err != nil {
			return fmt.Errorf("sample %d: %w", t.result.Samples, err)
		}
		if t.options.Target != nil {
			if err := t.out.write(ctx, t, t.packed); err != nil {
				return err
			}
		}
		if t.options.Take != nil {
			t.enter(HandOver)
			ready := Sample{Values: t.floats}
			if t.options.Classes != nil {
				ready.Class = t.options.Classes.of(file, sample)
			}
			if err := t.options.Take(ctx, ready); err != nil {
				return err
			}
		}
		t.enter(Read)
		return nil
	})
}

// A reading counts the bytes read and charges the time to stage Read, within any other stage.
type reading struct {
	t    *thread
	from io.Reader   // nil for a format that reads in parts
	at   io.ReaderAt // nil for all others
}

func (r reading) Read(b []byte) (int, error) {
	return r.count(func() (int, error) { return r.from.Read(b) })
}

func (r reading) ReadAt(b []byte, at int64) (int, error) {
	return r.count(func() (int, error) { return r.at.ReadAt(b, at) })
}

func (r reading) count(read func() (int, error)) (n int, err error) {
	around := r.t.now
	if around != Read {
		r.t.enter(Read)
		defer r.t.enter(around)
	}
	n, err = read()
	r.t.result.Read += int64(n)
	return n, err
}

// prepareJPEG makes of a file in JPEG a normalised square.
func prepareJPEG(t *thread, sample []byte) error {
	t.enter(Decode)
	if err := t.decoder.Decode(sample, &t.pixels); err != nil {
		return err
	}
	t.enter(Resize)
	square := t.scaler.do(&t.pixels)
	t.normalise(square)
	return nil
}

// normalise converts pixels and packs them.
func (t *thread) normalise(rgb []byte) {
	t.enter(Normalise)
	if cap(t.floats) < len(rgb) {
		t.floats = make([]float32, len(rgb))
	}
	t.floats = t.floats[:len(rgb)]
	normalise(rgb, t.floats)
	t.pack()
}

// pack converts the floats to little-endian bytes.
func (t *thread) pack() {
	t.enter(Pack)
	t.packed = sized(t.packed, 4*len(t.floats))
	for i, x := range t.floats {
		binary.LittleEndian.PutUint32(t.packed[4*i:], math.Float32bits(x))
	}
}

// An output holds a thread's files in the target.
type output struct {
	target Target
	number int // of the thread
	shard  int64
	files  int
	file   Output
	size   int64
	buffer []byte
}

// atOnce is how many bytes one call writes.
const atOnce = 4 << 20

func (o *output) write(ctx context.Context, t *thread, sample []byte) error {
	o.buffer = append(o.buffer, sample...)
	if len(o.buffer) < atOnce {
		return nil
	}
	return o.flush(ctx, t)
}

func (o *output) flush(ctx context.Context, t *thread) (err error) {
	t.enter(Write)
	if o.file == nil {
		if o.file, err = o.target.Create(ctx, fmt.Sprintf("thread-%d-%05d.f32", o.number, o.files)); err != nil {
			return err
		}
		o.files++
	}
	n, err := o.file.Write(o.buffer)
	o.size += int64(n)
	t.result.Written += int64(n)
	o.buffer = o.buffer[:0]
	if err == nil && o.size >= o.shard {
		err = o.end(t)
	}
	return err
}

// end commits the file to storage.
func (o *output) end(t *thread) error {
	t.enter(Sync)
	err := o.file.Commit()
	o.file, o.size = nil, 0
	return err
}

// close writes what is left.
func (o *output) close(ctx context.Context, t *thread) error {
	if len(o.buffer) > 0 {
		if err := o.flush(ctx, t); err != nil {
			return errors.Join(err, o.abandon())
		}
	}
	if o.file == nil {
		return nil
	}
	return o.end(t)
}

// abandon discards an unfinished file.
func (o *output) abandon() error {
	if o.file == nil {
		return nil
	}
	return o.file.Abandon()
}
