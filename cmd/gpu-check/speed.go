package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A workload is a model and a batch whose speed is measured.
type workload struct {
	model string
	batch int
}

func (w workload) String() string { return fmt.Sprintf("%s-%d", w.model, w.batch) }

// compiled reports whether the workload is also measured with torch.compile. It is only
// tried with one batch, because compiling takes most of a minute for each precision.
func (w workload) compiled() bool { return w.batch == 512 }

// speedModels returns the models whose training speed is measured.
func speedModels(double bool) []string {
	if double {
		return []string{"cnn"}
	}
	return []string{"resnet20", "resnet44"}
}

func workloads(double bool) (list []workload) {
	batches := []int{128, 512}
	if double {
		batches = []int{16}
	}
	for _, model := range speedModels(double) {
		for _, batch := range batches {
			list = append(list, workload{model, batch})
		}
	}
	return list
}

// precisions are the precisions that the native trainer has on GPUs.
var precisions = []string{"fp32", "tf32", "bf16"}

// Names of trainers in rates.
const (
	nativeTrainer  = "native"
	pytorchTrainer = "PyTorch"
)

// A rate is the speed of one training on one GPU.
type rate struct {
	Model     string  `json:"model"`
	Batch     int     `json:"batch"`
	Trainer   string  `json:"trainer"`
	Mode      string  `json:"mode,omitempty"`   // for PyTorch: eager or compiled
	Layout    string  `json:"layout,omitempty"` // for PyTorch: nchw or channels_last
	Precision string  `json:"precision"`
	Median    float64 `json:"images_per_s"`
	Least     float64 `json:"least,omitempty"`
	Most      float64 `json:"most,omitempty"`
	Why       string  `json:"why,omitempty"` // why there is no rate
}

// rates returns the rates of all parts.
func (r *report) rates() (list []rate) {
	for _, o := range r.Parts {
		list = append(list, o.Rates...)
	}
	return list
}

// flops returns the number of floating-point operations of a training step per image. It
// counts only matrix products and convolutions, forward and backward, with two operations
// for each multiply-add. In the first layer, the gradient with respect to the input is not
// computed.
func flops(name string) (float64, error) {
	layers, err := netspec.Find(name, 10)
	if err != nil {
		return 0, err
	}
	pixels, channels, total := 32*32, 3, 0
	flat := pixels * channels // number of inputs of the next dense layer
	for i, l := range layers {
		products := 0
		switch l.Form {
		case netspec.Convolution:
			pixels /= l.Stride * l.Stride
			products = 2 * pixels * 9 * channels * l.Outputs
			channels = l.Outputs
		case netspec.AveragePool:
			flat = channels
		case netspec.Dense:
			products = 2 * flat * l.Outputs
			flat = l.Outputs
		}
		if i == 0 {
			total -= products
		}
		total += 3 * products
	}
	return float64(total), nil
}

// otherPeaks are the peak FLOP/s of devices, from the vendor's data sheets, without
// sparsity. Package measure has the peaks for the precisions of language models; these are
// for other precisions.
var otherPeaks = map[string]map[string]float64{
	"A100": {"fp32": 19.5e12, "tf32": 156e12},
	"H100": {"fp32": 67e12, "tf32": 495e12},
	"H200": {"fp32": 67e12, "tf32": 495e12},
}

// peak returns the peak FLOP/s of a device in a precision; 0 if it is unknown.
func peak(gpu, precision string) float64 {
	p, err := measure.PeakOf(gpu, "bf16")
	switch {
	case err != nil:
		return 0
	case precision == "bf16":
		return p.FLOPS
	}
	return otherPeaks[p.Device][precision] // 0 (unknown) for "H100 PCIe" and other variants
}

// speed returns the page's section about training speed: a row for each model, batch and trainer,
// with a cell for each precision.
func (r *report) speed() string {
	all := r.rates()
	if len(all) == 0 {
		return ""
	}
	native, fastest := map[string]float64{}, map[string]float64{} // of the native trainer, and the highest eager rate
	for _, x := range all {
		switch {
		case x.Trainer == nativeTrainer:
			native[x.work()] = x.Median
		case x.Mode == "eager":
			fastest[x.work()] = max(fastest[x.work()], x.Median)
		}
	}
	var rows []string // model, batch and trainer
	cells := map[string]string{}
	_, gpu, _ := strings.Cut(r.GPUs, " × ")
	for _, x := range all {
		row := fmt.Sprintf("%s | %d | %s", x.Model, x.Batch, strings.Join(strings.Fields(x.Trainer+" "+x.Mode+" "+x.Layout), " "))
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		cells[row+x.Precision] = x.cell(gpu, native[x.work()])
	}
	var b strings.Builder
	b.WriteString("\n## Speed\n\nImages/s on one GPU. Native: 1 run each, its input included; in brackets, the operations of the matrix products as a share of the device's peak in that precision, without sparsity. PyTorch: the median of five stretches, from the slowest to the fastest, with its batch on the GPU already; then native / this.\n\n" +
		"| model | batch | trainer | " + strings.Join(precisions, " | ") + " |\n|---|---|---|" + strings.Repeat("---|", len(precisions)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row + " |")
		for _, precision := range precisions {
			b.WriteString(" " + cmp.Or(cells[row+precision], "–") + " |")
		}
		b.WriteString("\n")
	}
	var goals []string
	for _, x := range all {
		if e := fastest[x.work()]; x.Trainer == nativeTrainer && e > 0 {
			goals = append(goals, fmt.Sprintf("%s-%d %s %.2f", x.Model, x.Batch, x.Precision, x.Median/e))
		}
	}
	if len(goals) > 0 {
		b.WriteString("\nNative / PyTorch eager in its faster layout (the goal is 1.0 or more): " + strings.Join(goals, ", ") + ".\n")
	}
	return b.String()
}

// work identifies what was computed, by any trainer.
func (x rate) work() string { return fmt.Sprint(x.Model, x.Batch, x.Precision) }

// cell returns a rate as a table shows it: the native trainer's as a share of the device's peak,
// others in relation to native, the native trainer's rate.
func (x rate) cell(gpu string, native float64) string {
	if x.Why != "" {
		return fmt.Sprintf("– (%s)", strings.ReplaceAll(x.Why, "|", "/"))
	}
	text := fmt.Sprintf("%.0f", x.Median)
	if x.Most > 0 {
		text += fmt.Sprintf(" (%.0f–%.0f)", x.Least, x.Most)
	}
	if x.Trainer != nativeTrainer {
		if native > 0 {
			text += fmt.Sprintf("; %.2f", native/x.Median)
		}
		return text
	}
	if n, err := flops(x.Model); err == nil && peak(gpu, x.Precision) > 0 {
		text += fmt.Sprintf(" (%.2g %%)", 100*x.Median*n/peak(gpu, x.Precision))
	}
	return text
}
