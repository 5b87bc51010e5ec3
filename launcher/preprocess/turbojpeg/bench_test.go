package turbojpeg_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/launcher/preprocess/turbojpeg"
)

// decoder is libjpeg-turbo's for the pipeline.
type decoder struct{ *turbojpeg.Decoder }

func (d decoder) Decode(file []byte, into *preprocess.Pixels) error {
	width, height, err := d.Size(file)
	if err == nil {
		err = preprocess.Grow(into, width, height)
	}
	if err != nil {
		return err
	}
	return d.Decoder.Decode(file, into.RGB, width, height)
}

// pillow does with each image what a pass does, as torchvision's transforms have it
// done, and prints the CPU seconds that it took for one. Files are in memory before.
const pillow = `
import glob, io, sys, time
import numpy
from PIL import Image
mean = numpy.array([0.485, 0.456, 0.406], numpy.float32)
deviation = numpy.array([0.229, 0.224, 0.225], numpy.float32)
files = [open(name, "rb").read() for name in sorted(glob.glob(sys.argv[1] + "/**/*.jpg", recursive=True))]
def prepare(file):
    image = Image.open(io.BytesIO(file)).convert("RGB")
    w, h = image.size
    size = (256, 256 * h // w) if w < h else (256 * w // h, 256)
    image = image.resize(size, Image.BILINEAR)
    left, top = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    image = image.crop((left, top, left + 224, top + 224))
    values = (numpy.asarray(image, numpy.float32) / numpy.float32(255) - mean) / deviation
    return numpy.ascontiguousarray(values.transpose(2, 0, 1)).tobytes()
def decode(file):
    return Image.open(io.BytesIO(file)).convert("RGB")
for work in prepare, decode:
    work(files[0])
    begun = time.process_time()
    for file in files:
        work(file)
    print((time.process_time() - begun) / len(files))
`

// BenchmarkAgainstPillow prepares images of ImageNet's size, in memory, in one thread:
// JPEG decoded, resized, cropped, normalised, packed. It prints Pillow's CPU time over
// ours, for all of that and for the decoding alone: medians of five rounds, in turns.
// PYTHON names another interpreter than Debian's.
func BenchmarkAgainstPillow(b *testing.B) {
	library, err := turbojpeg.Open(os.Getenv)
	if err != nil {
		b.Fatal(err)
	}
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	dir := b.TempDir()
	if err := preprocess.Generate("jpeg", dir, 200, 1); err != nil {
		b.Fatal(err)
	}
	files, err := preprocess.Find(b.Context(), "jpeg", preprocess.Folder(dir))
	if err != nil {
		b.Fatal(err)
	}
	memory, err := preprocess.Load(b.Context(), preprocess.Folder(""), files)
	if err != nil {
		b.Fatal(err)
	}
	options := preprocess.Options{Format: "jpeg", Threads: 1, Resize: 256, Crop: 224, Store: memory, Decoder: func() (preprocess.Decoder, error) {
		d, err := library.Decoder()
		return decoder{d}, err
	}}
	for b.Loop() {
		var ratios, decoding, rates []float64
		for range 5 {
			out, err := exec.Command(python, "-c", pillow, dir).Output()
			var theirs, theirDecoding float64
			if err == nil {
				_, err = fmt.Sscan(string(out), &theirs, &theirDecoding)
			}
			if err != nil {
				b.Fatalf("%s: %v\n%s", python, err, out)
			}
			r, err := preprocess.Pass(b.Context(), files, options)
			if err != nil {
				b.Fatal(err)
			}
			ours := r.CPU / float64(r.Samples)
			ratios, rates = append(ratios, theirs/ours), append(rates, 1/ours)
			decoding = append(decoding, theirDecoding*float64(r.Samples)/r.Stages[preprocess.Decode].CPU)
		}
		for unit, list := range map[string][]float64{"of-Pillow's-speed": ratios, "of-its-decoding": decoding, "images/CPU-s": rates} {
			slices.Sort(list)
			b.ReportMetric(list[len(list)/2], unit)
		}
	}
}

// BenchmarkAgainstFio reads 2,000 files of 108 KiB in one thread, cold and warm, as fio
// does: opened one after the other, each read at once. It prints our bytes/s over
// fio's: medians of five rounds, in turns.
func BenchmarkAgainstFio(b *testing.B) {
	const count, size = 2000, 27 * 4096
	dir := b.TempDir()
	var files []preprocess.File
	content := make([]byte, size)
	for i := range count {
		path := filepath.Join(dir, fmt.Sprintf("f.%d", i))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
		files = append(files, preprocess.File{Path: path, Size: size})
	}
	for b.Loop() {
		for _, cache := range []string{"cold", "warm"} {
			var ratios, rates []float64
			for range 5 {
				if err := preprocess.Evict(files); err != nil {
					b.Fatal(err)
				}
				if cache == "warm" {
					if _, err := preprocess.ReadAlone(b.Context(), preprocess.Folder(""), files, 1); err != nil {
						b.Fatal(err)
					}
				}
				begun := time.Now()
				n, err := preprocess.ReadAlone(b.Context(), preprocess.Folder(""), files, 1)
				if err != nil || n != count*size {
					b.Fatal(n, err)
				}
				ours := float64(n) / time.Since(begun).Seconds()
				theirs := fio(b, dir, count, size, cache == "cold")
				ratios, rates = append(ratios, ours/theirs), append(rates, ours/1e6)
			}
			slices.Sort(ratios)
			slices.Sort(rates)
			b.ReportMetric(ratios[2], "of-fio-"+cache)
			b.ReportMetric(rates[2], "MB/s-"+cache)
		}
	}
}

func fio(b *testing.B, dir string, count, size int, cold bool) (bytesPerSecond float64) {
	b.Helper()
	invalidate := "--invalidate=0"
	if cold {
		invalidate = "--invalidate=1"
	}
	out, err := exec.Command("fio", "--name=f", "--output-format=json", "--ioengine=psync", "--rw=read", "--directory="+dir,
		fmt.Sprintf("--nrfiles=%d", count), fmt.Sprintf("--filesize=%d", size), fmt.Sprintf("--bs=%d", size), "--filename_format=f.$filenum",
		"--openfiles=1", "--file_service_type=sequential", invalidate).Output()
	var report struct {
		Jobs []struct {
			Read struct {
				Bytes int64   `json:"io_bytes"`
				Rate  float64 `json:"bw_bytes"`
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &report)
	}
	if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Read.Bytes != int64(count*size) {
		b.Fatalf("fio: %v\n%s", err, out)
	}
	return report.Jobs[0].Read.Rate
}
