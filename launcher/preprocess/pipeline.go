// Package preprocess prepares samples for a training and measures how long each stage takes:
// list and open files, read, decode, resize, normalise, pack and write. The files are divided
// among threads. Each thread takes a sample through all stages, as the workers of common data
// loaders do.
//
// At any time a thread is in exactly one stage, so the times of the stages add up to the
// whole: by the clock, and in CPU time. The package reports seconds, bytes and samples;
// callers compute rates.
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

// Options configure one pass over files.
type Options struct {
	Format       string
	Threads      int
	Resize, Crop int
	// Decoder returns a new decoder for a thread; nil for a format without JPEG.
	Decoder func() (Decoder, error)
	// Target receives the prepared samples; nil: they are not written.
	Target Target
	Shard  int64 // size in bytes of each file in Target
	Store  Store // store with the source's files
	// Take, if not nil, is called with each prepared sample, in the thread that prepared it.
	Take func(ctx context.Context, s Sample) error
	// Classes, if not nil, gives the label of each sample.
	Classes *Classes
}

// A Sample is a prepared sample. Its memory is only valid until the thread prepares the next
// sample.
type Sample struct {
	Values []float32 // for an image: all of red, then green, then blue, normalised
	Class  byte      // 0 if Classes is nil
}

// A Result holds what the threads of a pass did, all together.
type Result struct {
	Samples       int64
	Read, Written int64 // bytes
	Stages        [Stages]Spent
	CPU           float64 // CPU seconds of the whole process
	Delay         float64 // seconds in which threads were runnable but had no CPU; NaN: unknown
	FewFiles      bool    // there were fewer files than threads
}

// A thread prepares samples, one file after the other.
type thread struct {
	*stopwatch
	options *Options
	format  format
	decoder Decoder
	pixels  Pixels
	scaler  scaler
	floats  []float32
	ahead   *bufio.Reader
	sample  []byte // the sample as read from the file
	table   csvBlock
	packed  []byte // the prepared sample, in the form that is written
	out     output
	result  Result
}

// Pass prepares the samples of all files and returns the time and amounts of each stage. The
// first error ends it.
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
			runtime.LockOSThread() // CPU time is measured per thread
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

// run prepares files until none is left; next is the index of the next file, which the
// threads share.
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

// take prepares all samples of one file.
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
	defer func() { // the time to close a file counts as stage Open
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

// A reading is an open file. It counts the bytes that are read from it and adds the time to
// stage Read, in whichever stage they are read.
type reading struct {
	t    *thread
	from io.Reader   // nil for a format that reads parts of files
	at   io.ReaderAt // nil for all other formats
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

// prepareJPEG decodes a JPEG file, resizes and crops it to a square, and normalises it.
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

// normalise converts pixels to normalised floats and packs these.
func (t *thread) normalise(rgb []byte) {
	t.enter(Normalise)
	if cap(t.floats) < len(rgb) {
		t.floats = make([]float32, len(rgb))
	}
	t.floats = t.floats[:len(rgb)]
	normalise(rgb, t.floats)
	t.pack()
}

// pack converts the floats to little-endian bytes, in t.packed.
func (t *thread) pack() {
	t.enter(Pack)
	t.packed = sized(t.packed, 4*len(t.floats))
	for i, x := range t.floats {
		binary.LittleEndian.PutUint32(t.packed[4*i:], math.Float32bits(x))
	}
}

// An output writes a thread's samples to files in the target.
type output struct {
	target Target
	number int // number of the thread
	shard  int64
	files  int
	file   Output
	size   int64
	buffer []byte
}

// atOnce is the number of bytes that one call to Write passes on.
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

// end finishes the present file and waits until it is on storage.
func (o *output) end(t *thread) error {
	t.enter(Sync)
	err := o.file.Commit()
	o.file, o.size = nil, 0
	return err
}

// close writes the samples that are still in the buffer, and ends the file.
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
