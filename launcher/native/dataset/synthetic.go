package dataset

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// SyntheticOptions describe a synthetic data set. Equal options make equal bytes on processors of
// one architecture.
//
// Every class has a few prototypes, smooth patterns of colour. An image is one of its class's
// prototypes, shifted, possibly mirrored, and with a random contrast. A weaker prototype of another
// class and pixel noise are added. So position and orientation carry no information, single pixels
// carry little, and a network must find the stronger of two patterns.
type SyntheticOptions struct {
	TrainSamples int   // 0: DefaultTrainSamples
	TestSamples  int   // 0: DefaultTestSamples
	Seed         int64 // seed of the patterns and samples
	// Difficulty is the strength of the other class's pattern relative to the
	// own one, from 0 (none) to below 1 (which would be undecidable); it raises
	// the pixel noise as well. nil: DefaultDifficulty.
	Difficulty *float64
}

// Defaults with which the small CNN exceeds 0.75 after a few epochs.
const (
	DefaultTrainSamples = 5000
	DefaultTestSamples  = 1000
	DefaultDifficulty   = 0.6
)

// complete fills in the defaults.
func (o SyntheticOptions) complete() (SyntheticOptions, error) {
	if o.TrainSamples == 0 {
		o.TrainSamples = DefaultTrainSamples
	}
	if o.TestSamples == 0 {
		o.TestSamples = DefaultTestSamples
	}
	if o.Difficulty == nil {
		d := DefaultDifficulty
		o.Difficulty = &d
	}
	switch d := *o.Difficulty; {
	case o.TrainSamples < 0 || o.TestSamples < 0:
		return o, fmt.Errorf("synthetic data of %d training and %d test samples; want 1 or more, or 0 for the default", o.TrainSamples, o.TestSamples)
	case o.TrainSamples > maxSamples || o.TestSamples > maxSamples:
		return o, fmt.Errorf("synthetic data of %d training and %d test samples; want at most %d", o.TrainSamples, o.TestSamples, maxSamples)
	case !(d >= 0 && d < 1):
		return o, fmt.Errorf("synthetic data of difficulty %g; want 0 or more and less than 1", d)
	}
	return o, nil
}

// maxSamples limits the size to 30 GB, so that a typing error does not fill a disk.
const maxSamples = 10_000_000

// OpenSynthetic describes synthetic data, which Load makes in memory. The first n samples do not
// depend on how many are requested.
func OpenSynthetic(o SyntheticOptions) (*Source, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Source{TrainSamples: o.TrainSamples, TestSamples: o.TestSamples, load: func() (*Data, error) {
		g := newGenerator(o)
		return &Data{Train: g.split(trainStream, o.TrainSamples), Test: g.split(testStream, o.TestSamples)}, nil
	}}, nil
}

// Synthesize writes synthetic data to the folder dir in CIFAR-10's binary format, the training
// samples spread over the five files in order. It creates dir, and returns an error if a data file
// exists.
func Synthesize(dir string, o SyntheticOptions) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if o.TrainSamples < len(TrainFiles) {
		return fmt.Errorf("synthetic data of %d training samples cannot fill %d files; want at least %d", o.TrainSamples, len(TrainFiles), len(TrainFiles))
	}
	for _, name := range append([]string{TestFile}, TrainFiles...) {
		if path := filepath.Join(dir, name); exists(path) {
			return fmt.Errorf("%s is already there; give another folder or remove the data files first", path)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	g := newGenerator(o)
	for i, name := range TrainFiles {
		from, to := i*o.TrainSamples/len(TrainFiles), (i+1)*o.TrainSamples/len(TrainFiles)
		if err := g.writeFile(filepath.Join(dir, name), trainStream, from, to); err != nil {
			return err
		}
	}
	return g.writeFile(filepath.Join(dir, TestFile), testStream, 0, o.TestSamples)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Numbers of random streams, which must differ.
const (
	patternStream uint64 = 1 << 62
	trainStream   uint64 = 2 << 62
	testStream    uint64 = 3 << 62
)

const (
	variants = 3 // prototypes per class
	waves    = 3 // sinusoids per channel of a prototype
	maxShift = 4 // pixels, either way and in both directions
	margin   = maxShift
	side     = Width + 2*margin // side length of a prototype's planes
)

// prototype is a pattern of about unit variance, planar, with a margin to shift
// the window in.
type prototype [Channels][side * side]float32

type generator struct {
	seed       uint64
	prototypes [Classes][variants]prototype
	other      float64 // amplitude of the other class's pattern
	noise      float64 // standard deviation; that of patterns is 1
}

func newGenerator(o SyntheticOptions) *generator {
	g := &generator{seed: uint64(o.Seed), other: *o.Difficulty, noise: 0.5 + *o.Difficulty}
	random := rand.New(rand.NewPCG(g.seed, patternStream))
	for class := range g.prototypes {
		for v := range g.prototypes[class] {
			g.prototypes[class][v].draw(random)
		}
	}
	return g
}

// draw fills the pattern with plane waves of one half to three periods across
// the image, in random directions.
func (p *prototype) draw(random *rand.Rand) {
	amplitude := math.Sqrt(2.0 / waves) // the sum has unit variance
	for c := range p {
		for range waves {
			periods := 0.5 + 2.5*random.Float64()
			angle := 2 * math.Pi * random.Float64()
			phase := 2 * math.Pi * random.Float64()
			fx := 2 * math.Pi * periods * math.Cos(angle) / Width
			fy := 2 * math.Pi * periods * math.Sin(angle) / Height
			for y := range side {
				for x := range side {
					p[c][y*side+x] += float32(amplitude * math.Sin(fx*float64(x)+fy*float64(y)+phase))
				}
			}
		}
	}
}

// sample makes image i of a stream. It depends only on the options' seed and difficulty, the stream
// and i.
func (g *generator) sample(stream uint64, i int, image []byte) (label byte) {
	random := rand.New(rand.NewPCG(g.seed, stream|uint64(i)))
	own := random.IntN(Classes)
	other := (own + 1 + random.IntN(Classes-1)) % Classes
	a, b := g.window(random, own), g.window(random, other)
	strength := 0.8 + 0.4*random.Float64()
	weak := strength * g.other
	// Scale patterns and noise to the contrast that normalisation expects, so that few pixels are
	// clipped.
	contrast := 64 / math.Sqrt(1+g.other*g.other+g.noise*g.noise)
	for k := range image {
		c, y, x := k/(Height*Width), k/Width%Height, k%Width
		v := strength*a.at(c, y, x) + weak*b.at(c, y, x) + g.noise*random.NormFloat64()
		image[k] = byte(min(max(math.Round(124+contrast*v), 0), 255))
	}
	return byte(own)
}

// window is a prototype seen through a shifted and perhaps mirrored frame.
type window struct {
	p      *prototype
	dx, dy int
	mirror bool
}

func (g *generator) window(random *rand.Rand, class int) window {
	return window{
		p:      &g.prototypes[class][random.IntN(variants)],
		dx:     random.IntN(2*maxShift + 1),
		dy:     random.IntN(2*maxShift + 1),
		mirror: random.IntN(2) == 1,
	}
}

func (w *window) at(c, y, x int) float64 {
	if w.mirror {
		x = Width - 1 - x
	}
	return float64(w.p[c][(y+w.dy)*side+x+w.dx])
}

func (g *generator) split(stream uint64, n int) Split {
	s := newSplit(n)
	for i := range n {
		s.Labels[i] = g.sample(stream, i, s.Image(i))
	}
	return s
}

// writeFile writes samples [from, to) of a stream.
func (g *generator) writeFile(path string, stream uint64, from, to int) error {
	return create(path, func(w io.Writer) error { return g.write(w, stream, from, to) })
}

// create creates a file with the content that write writes. It returns an error if the file exists,
// and removes an incomplete file.
func create(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(path)
		}
	}()
	return write(f)
}

func (g *generator) write(w io.Writer, stream uint64, from, to int) error {
	buffered := bufio.NewWriter(w)
	record := make([]byte, RecordBytes)
	for i := from; i < to; i++ {
		record[0] = g.sample(stream, i, record[1:])
		if _, err := buffered.Write(record); err != nil {
			return err
		}
	}
	return buffered.Flush()
}
