//go:build !training

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/number"
)

func init() {
	programs = append(programs, &cli.Command{Name: "preprocess", Usage: "one rank of a preprocessing, as run starts it", Action: preprocessSamples})
}

// preprocessSamples runs one rank of a preprocessing workload.
func preprocessSamples(c *cli.Context) error {
	return runMember(c, "preprocess", overTCP, func(ctx context.Context, m *member) error {
		r := &preprocessing{member: m, asked: m.point.Workload.Preprocess}
		return r.run(ctx)
	})
}

// A preprocessing is one rank of the workload.
type preprocessing struct {
	*member
	asked   study.Preprocess
	threads int
	cpus    int // CPUs of this rank
	decoder func() (preprocess.Decoder, error)
	files   []preprocess.File // files of this rank
	all     []preprocess.File
	target  preprocess.Target       // this rank's part of the target; nil for none
	clear   func() error            // removes what was written there
	ready   *preprocess.ObjectStore // the target, if it is an object store
	store   preprocess.Store
	objects *preprocess.ObjectStore // the source, if it is an object store; nil: files
	kernels string                  // compute kernels of the trainer
	learner *train.Learner          // nil: no training uses the samples
	classes *preprocess.Classes
	last    preprocess.Learnt // result of this rank's last pass
	losses  []float64         // over all ranks, of each pass so far
}

// run prepares all samples as often as requested, and reports.
func (r *preprocessing) run(ctx context.Context) (err error) {
	r.cpus = min(r.point.Resources.CPUsPerWorker, world.CPUs())
	if r.threads = r.asked.Threads; r.threads == 0 {
		r.threads = r.cpus
	}
	if err := r.openStore(); err != nil {
		return fmt.Errorf("workload.source: %w", err)
	}
	if err := r.openTarget(); err != nil {
		return fmt.Errorf("workload.target: %w", err)
	}
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.findSource(ctx); err != nil {
		return err
	}
	if err := r.openLearner(ctx); err != nil {
		return err
	}
	if r.learner != nil {
		defer r.learner.Close()
	}
	remove, err := r.makeTarget(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := r.warm(ctx); err != nil {
		return err
	}
	var sum tally
	for pass := range r.asked.Passes {
		if err := r.phase(fmt.Sprintf("pass %d of %d", pass+1, r.asked.Passes)); err != nil {
			return err
		}
		if err := r.pass(ctx, pass, &sum); err != nil {
			return err
		}
	}
	list, err := r.ceilings(ctx, &sum)
	if err != nil {
		return err
	}
	return r.report(&sum, list)
}

// describe records what prepares and uses the samples, and chooses the decoder.
func (r *preprocessing) describe() error {
	// Runs that used different object stores do not count as repeats. For a source in a folder,
	// object_store is "".
	versions := map[string]string{"object_store": ""}
	for _, s := range []*preprocess.ObjectStore{r.objects, r.ready} {
		if s != nil {
			versions["object_store"] = s.Endpoint()
		}
	}
	if preprocess.Decodes(r.asked.Format) {
		r.decoder = func() (preprocess.Decoder, error) { return preprocess.GoJPEG{}, nil }
		versions["jpeg"] = "image/jpeg of " + runtime.Version()
		if r.asked.Decoder != "go" {
			d, name, err := openTurboJPEG()
			switch {
			case err == nil:
				d.Close()
				versions["jpeg"] = name
				r.decoder = func() (preprocess.Decoder, error) {
					d, _, err := openTurboJPEG()
					return d, err
				}
			case r.asked.Decoder == "turbojpeg":
				return fmt.Errorf("workload.decoder = \"turbojpeg\": %w", err)
			case r.world.Rank == 0:
				if err := r.note("JPEG was decoded by Go's image/jpeg, which takes about three times as long as libjpeg-turbo: " + err.Error()); err != nil {
					return err
				}
			}
		}
	}
	if r.asked.Model != "" {
		kernels, err := simd.Choose(os.Getenv(train.KernelsVariable))
		if err != nil {
			return fmt.Errorf("%s: %w", train.KernelsVariable, err)
		}
		r.kernels, versions["kernels"] = kernels.Name(), kernels.Name()
	}
	return r.environment(r.threads, versions)
}

// findSource lists the source, and sets the files of this rank. Rank 0 first generates the source
// if the study asks for it. Each rank reads the same files in every pass, so that they are in its
// node's page cache.
func (r *preprocessing) findSource(ctx context.Context) (err error) {
	files, err := preprocess.Find(ctx, r.asked.Format, r.store)
	var empty *preprocess.EmptyError
	if (errors.As(err, &empty) || errors.Is(err, fs.ErrNotExist)) && r.asked.Generate > 0 {
		if err = r.phase(fmt.Sprintf("making %s in %s", number.Count(r.asked.Generate, "sample"), r.asked.Source)); err == nil && r.world.Rank == 0 {
			generate := preprocess.Generate
			if r.asked.Model != "" {
				generate = preprocess.GenerateClasses
			}
			err = generate(r.asked.Format, r.asked.Source, r.asked.Generate, 1)
		}
	}
	if err != nil && !errors.As(err, &empty) && !errors.Is(err, fs.ErrNotExist) || err != nil && r.asked.Generate == 0 {
		return r.noSource(err)
	}
	if err := r.group.Barrier(ctx); err != nil {
		return err
	}
	if r.all, err = preprocess.Find(ctx, r.asked.Format, r.store); err != nil {
		return r.noSource(err)
	}
	if len(files) > 0 && len(files) != len(r.all) {
		return fmt.Errorf("workload.source: %s changes while it is read", r.asked.Source)
	}
	for i := r.world.Rank; i < len(r.all); i += r.world.Size {
		r.files = append(r.files, r.all[i])
	}
	if r.objects != nil {
		return r.phase(fmt.Sprintf("%s in %s at %s", number.Count(len(r.all), "object"), r.asked.Source, r.objects.Endpoint()))
	}
	kind, err := preprocess.FileSystem(r.asked.Source)
	if err == nil && r.asked.Cache == "cold" && preprocess.InMemory(kind) {
		err = fmt.Errorf("%s is on %s, which is memory and cannot be cold; set workload.cache = \"warm\"", r.asked.Source, kind)
	}
	if err != nil {
		return fmt.Errorf("workload.source: %w", err)
	}
	return r.phase(fmt.Sprintf("%s in %s on %s", number.Count(len(r.all), "file"), r.asked.Source, kind))
}

func (r *preprocessing) noSource(err error) error {
	if _, ok := errors.AsType[*preprocess.EmptyError](err); ok {
		return fmt.Errorf("workload.source: %s: %w", r.asked.Source, err)
	}
	return fmt.Errorf("workload.source: %w", err)
}

// openStore opens the storage of the source.
func (r *preprocessing) openStore() (err error) {
	if !strings.HasPrefix(r.asked.Source, preprocess.ObjectScheme) {
		r.store = preprocess.Folder(r.asked.Source)
		return nil
	}
	if r.objects, err = preprocess.OpenObjects(r.asked.Source, preprocess.ObjectAccessFromEnvironment(os.Getenv)); err != nil {
		return err
	}
	r.store = r.objects
	if r.world.Rank > 0 || r.asked.Cache == "memory" {
		return nil
	}
	return r.note("objects are never in this node's page cache: workload.cache has no effect, the share read from storage is unknown, and so is what " + r.objects.Endpoint() + " has in its memory")
}

// warm reads the source before the passes, if the study asks for a source that is in memory at
// their start.
func (r *preprocessing) warm(ctx context.Context) error {
	switch r.asked.Cache {
	case "warm":
		_, err := preprocess.ReadAlone(ctx, r.store, r.files, r.threads)
		return err
	case "memory":
		memory, err := preprocess.Load(ctx, r.store, r.files)
		if err != nil {
			return err
		}
		r.store = memory
	}
	return nil
}

// paged reports whether this node's page cache holds what was read from the source.
func (r *preprocessing) paged() bool { return r.objects == nil && r.asked.Cache != "memory" }

// coldShare is the largest share of a cold source that may be in memory.
const coldShare = 0.01

// chill evicts the source if it must be cold, waits for all ranks, and returns how many
// bytes of the rank's files are in memory.
func (r *preprocessing) chill(ctx context.Context) (resident, total int64, err error) {
	if !r.paged() {
		return 0, 0, r.group.Barrier(ctx)
	}
	if r.asked.Cache == "cold" {
		if err := preprocess.Evict(r.files); err != nil {
			return 0, 0, fmt.Errorf("workload.cache = \"cold\": %w", err)
		}
	}
	if err := r.group.Barrier(ctx); err != nil { // no rank may read while another evicts
		return 0, 0, err
	}
	if resident, total, err = preprocess.Resident(r.files); err != nil {
		return 0, 0, err
	}
	if r.asked.Cache == "cold" && float64(resident) > coldShare*float64(total) {
		return 0, 0, fmt.Errorf("workload.cache = \"cold\": %s of %s are still in memory; another process has mapped them, or they are not this user's files, of which the kernel tells nothing", number.Bytes(float64(resident)), number.Bytes(float64(total)))
	}
	return resident, total, r.group.Barrier(ctx)
}

// pass prepares all samples once and adds the work of all ranks to sum.
func (r *preprocessing) pass(ctx context.Context, number int, sum *tally) error {
	resident, total, err := r.chill(ctx)
	if err != nil {
		return err
	}
	storage, counted := preprocess.StorageRead()
	repeated := r.repeated()
	o := preprocess.Options{Format: r.asked.Format, Threads: r.threads, Resize: r.asked.Resize, Crop: r.asked.Crop,
		Decoder: r.decoder, Target: r.target, Shard: int64(r.asked.Shard), Store: r.store}
	begun := time.Now()
	var listed preprocess.Spent
	if r.asked.Cache != "memory" {
		if listed, err = preprocess.Listing(ctx, r.asked.Format, r.store); err != nil {
			return err
		}
	}
	loaders := float64(min(r.cpus, r.threads))
	part := tally{cpus: loaders, loaders: loaders, threads: float64(r.threads)}
	consumed := func() error { return nil }
	passCtx := ctx
	switch {
	case r.asked.Consumer > 0:
		consumer := preprocess.NewConsumer(r.asked.Consumer / float64(r.world.Size))
		o.Take = consumer.Take
		consumed = func() error {
			part.waited, part.took = consumer.End()
			return nil
		}
	case r.learner != nil:
		passCtx, consumed = r.learn(ctx, &o, &part)
	}
	result, err := preprocess.Pass(passCtx, r.order(number), o)
	if e := consumed(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := r.group.Barrier(ctx); err != nil {
		return err
	}
	seconds := time.Since(begun).Seconds()
	result.Stages[preprocess.List] = listed
	result.CPU += listed.CPU
	part.resident, part.pages = float64(resident), float64(total)
	if after, err := preprocess.StorageRead(); err == nil && counted == nil {
		part.storage = float64(after - storage)
	} else {
		part.uncounted = 1
	}
	part.repeated = r.repeated() - repeated
	part.add(result)
	if err := part.over(ctx, r.group); err != nil {
		return err
	}
	part.seconds = seconds
	sum.merge(part)
	if err := r.learnt(number, &part); err != nil {
		return err
	}
	return r.clear()
}

// repeated returns how many requests this rank had to repeat.
func (r *preprocessing) repeated() (n float64) {
	for _, s := range []*preprocess.ObjectStore{r.objects, r.ready} {
		if s != nil {
			n += float64(s.Repeated())
		}
	}
	return n
}

// order returns the rank's files in the order in which a pass reads them.
func (r *preprocessing) order(pass int) []preprocess.File {
	files := append([]preprocess.File(nil), r.files...)
	if r.asked.Shuffle {
		random := rand.New(rand.NewPCG(uint64(r.point.Seed), uint64(pass)))
		random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	}
	return files
}
