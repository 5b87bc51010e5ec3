package train

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// saving gives each rank a separate file for the model.
func saving(dir string) func(rank int, p *study.Point, w *world.World, o *Options) context.Context {
	return func(rank int, _ *study.Point, _ *world.World, o *Options) context.Context {
		o.ModelFile = filepath.Join(dir, string(rune('0'+rank)))
		return nil
	}
}

// Rank 0 saves the final parameters. The model loaded from the file classifies as many images
// correctly as the last evaluation.
func TestSavedModel(t *testing.T) {
	for _, name := range []string{"cnn", "mlp"} {
		dir := t.TempDir()
		p := point(name, 2, 8)
		p.Workload.Train.SaveModel, p.Workload.Train.Epochs, p.Data.TestSamples = true, 2, 200
		list := runRanks(t, p, 2, saving(dir))
		noErrors(t, list)
		if _, err := os.Stat(filepath.Join(dir, "1")); err == nil {
			t.Error("rank 1 has saved a model, too")
		}
		text, err := os.ReadFile(filepath.Join(dir, "0"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := netspec.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var parameters bytes.Buffer
		for _, tensor := range m.Tensors {
			if !strings.HasSuffix(tensor.Name, "norm.mean") && !strings.HasSuffix(tensor.Name, "norm.variance") {
				_ = binary.Write(&parameters, binary.LittleEndian, tensor.Data)
			}
		}
		sum := sha256.Sum256(parameters.Bytes())
		if want := list[0].last().Stop.ParameterSHA256; hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: its parameters are %x, the run ended with %s", name, sum, want)
		}
		c, err := cpu.NewClassifier(m, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		source, err := openData(p)
		if err != nil {
			t.Fatal(err)
		}
		data, err := source.Load()
		if err != nil {
			t.Fatal(err)
		}
		images, right := make([]float32, data.Test.Len()*dataset.ImageBytes), 0
		for i := range data.Test.Len() {
			dataset.Decode(data.Test.Image(i), dataset.Identity, images[i*dataset.ImageBytes:(i+1)*dataset.ImageBytes])
		}
		logits := c.Logits(images)
		for i, label := range data.Test.Labels {
			own := logits[i*dataset.Classes : (i+1)*dataset.Classes]
			if slices.Index(own, slices.Max(own)) == int(label) {
				right++
			}
		}
		evaluations := list[0].of("evaluation")
		accuracy := evaluations[len(evaluations)-1].Evaluation.Accuracy
		if got := float64(right) / float64(data.Test.Len()); got != accuracy {
			t.Errorf("%s: the saved model is right about %g of the images, the last evaluation says %g", name, got, accuracy)
		}
	}
}

// A model is saved only on request, at the end of a successful run. A run that cannot save its
// model fails.
func TestNoSavedModel(t *testing.T) {
	dir := t.TempDir()
	noErrors(t, runRanks(t, point("cnn", 1, 8), 1, saving(dir)))
	p := point("cnn", 1, 8)
	p.Workload.Train.SaveModel, p.Workload.Train.LearningRate, p.LearningRate = true, 1e30, 1e30
	if list := runRanks(t, p, 1, saving(dir)); list[0].err == nil {
		t.Error("a learning rate of 1e30 ends well")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v: nothing was to be saved", entries, err)
	}
	p.LearningRate = 0.05
	list := runRanks(t, p, 1, saving(filepath.Join(dir, "none")))
	if list[0].err == nil || !strings.Contains(list[0].err.Error(), "save: cannot write "+dir+"/none/0: its folder") {
		t.Errorf("error %v", list[0].err)
	}
}
