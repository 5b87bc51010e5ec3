package preprocess

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source returns a folder with the images of testdata.
func source(t *testing.T) []File {
	t.Helper()
	dir := t.TempDir()
	for _, p := range pillows {
		if err := os.WriteFile(filepath.Join(dir, p.name+".JPG"), content(t, p.name+".jpg"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := Find(t.Context(), "jpeg", Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func options() Options {
	return Options{Format: "jpeg", Store: Folder(""), Threads: 2, Resize: 32, Crop: 28, Shard: 1 << 20, Decoder: func() (Decoder, error) { return GoJPEG{}, nil }}
}

// All samples are prepared and written, and every moment of a thread is some stage's.
func TestPass(t *testing.T) {
	files := source(t)
	o := options()
	target := t.TempDir()
	o.Target = Folder(target)
	size := int64(0)
	for _, f := range files {
		size += f.Size
	}
	r, err := Pass(t.Context(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	const sample = 4 * 3 * 28 * 28
	if r.Samples != 4 || r.Read != size || r.Written != 4*sample {
		t.Errorf("%+v, want 4 samples, %d bytes read", r, size)
	}
	for _, s := range []Stage{Open, Read, Decode, Resize, Normalise, Pack, Write, Sync} {
		if !(r.Stages[s].Wall > 0) {
			t.Errorf("%v took no time", s)
		}
	}
	if r.Stages[HandOver].Wall != 0 || r.Stages[Unpack].Wall != 0 {
		t.Error("a stage that there is not took time")
	}
	var values []float32
	written, err := filepath.Glob(filepath.Join(target, "*.f32"))
	if err != nil || len(written) == 0 {
		t.Fatal(written, err)
	}
	for _, path := range written {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(b) > 0; b = b[4:] {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	}
	if len(values) != 4*sample/4 {
		t.Fatalf("%d values", len(values))
	}
	// From memory the same comes out, without a file being opened.
	memory, err := Load(t.Context(), Folder(""), files)
	if err != nil {
		t.Fatal(err)
	}
	o.Store, o.Target = memory, nil
	for i := range files {
		if err := os.Remove(files[i].Path); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Pass(t.Context(), files, o); err != nil || r.Samples != 4 || r.Written != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The stages of a thread add up to its whole time: each moment belongs to exactly one stage.
func TestStagesAddUp(t *testing.T) {
	w := startWatch(List)
	begun, cpu := w.wall, w.cpu
	sum := 0
	for i := range 1000 {
		w.enter(Stage(i % Stages))
		for j := range 1000 {
			sum += j
		}
	}
	w.enter(List)
	var wall, used float64
	for _, s := range w.sums {
		wall += s.Wall
		used += s.CPU
	}
	if math.Abs(wall-w.wall.Sub(begun).Seconds()) > 1e-6 || math.Abs(used-(w.cpu-cpu).Seconds()) > 1e-6 || sum == 0 {
		t.Errorf("stages have %v s, %v s of CPU time; the whole is %v, %v", wall, used, w.wall.Sub(begun), w.cpu-cpu)
	}
}

// The error names the file and its fault; no file stays open, and no thread keeps running.
func TestPassFails(t *testing.T) {
	files := source(t)
	if err := os.WriteFile(files[2].Path, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	files[2].Size = 10
	_, err := Pass(t.Context(), files, options())
	if err == nil || !strings.Contains(err.Error(), files[2].Path) {
		t.Errorf("%v does not say %s", err, files[2].Path)
	}
	gone := []File{{Path: filepath.Join(t.TempDir(), "gone.jpg"), Size: 5}}
	if _, err := Pass(t.Context(), gone, options()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Pass(ctx, source(t), options()); err == nil {
		t.Error("a pass that was ended has no error")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	var empty *EmptyError
	if _, err := Find(t.Context(), "jpeg", Folder(dir)); !errors.As(err, &empty) {
		t.Error(err)
	}
	if _, err := Find(t.Context(), "jpeg", Folder(filepath.Join(dir, "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Find(t.Context(), "gif", Folder(dir)); err == nil || !strings.Contains(err.Error(), "valid: ") {
		t.Error(err)
	}
	// Data that another process is still generating does not count as existing.
	half := filepath.Join(dir, beingMade+"1", "content")
	if err := errors.Join(os.MkdirAll(half, 0o700), os.WriteFile(filepath.Join(half, "half.jpg"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if files, err := Find(t.Context(), "jpeg", Folder(dir)); !errors.As(err, &empty) {
		t.Errorf("%v, %v", files, err)
	}
	if err := os.RemoveAll(filepath.Dir(half)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds the first one's files
		if err := Generate("jpeg", dir, 3, 1); err != nil {
			t.Fatal(err)
		}
		if files, err := Find(t.Context(), "jpeg", Folder(dir)); err != nil || len(files) != 3 {
			t.Errorf("%v, %v", files, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".being-made-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
