package scaling

import (
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Published tables are reproduced from their published raw values. Every expected value is copied
// from the source, with its rounding.
//
// NVIDIA DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5, README.md, "Training
// performance": images/s with 1 and 8 GPUs, and the speedups in the column "strong scaling". These
// were truncated to two digits, and computed from values that the table rounds to whole images.
// They may differ accordingly, by half an image.
func TestPublishedSpeedups(t *testing.T) {
	for _, tt := range []struct {
		name    string
		one     float64 // images/s with 1 GPU
		eight   float64 // with 8
		speedup float64 // published
	}{
		{"DGX A100, TF32", 938, 7248, 7.72},
		{"DGX A100, mixed precision", 2470, 16621, 6.72},
		{"DGX-1, V100 16 GB, FP32", 367, 2855, 7.76},
		{"DGX-1, V100 16 GB, mixed precision", 1200, 8322, 6.93},
		{"DGX-1, V100 32 GB, FP32", 356, 2766, 7.75},
		{"DGX-1, V100 32 GB, mixed precision", 1156, 8056, 6.96},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := analyse(t, join(runs(1, tt.one), runs(8, tt.eight)), Options{})[0]
			p := c.Points[1]
			got := p.Of(measure.Throughput).Gain().Value
			half := got * (0.5/tt.one + 0.5/tt.eight)
			if got < tt.speedup-half || got > tt.speedup+0.01+half {
				t.Errorf("speedup %.4f ± %.4f, published as %.2f", got, half, tt.speedup)
			}
			if e := p.Of(measure.Throughput).Efficiency().Value; math.Abs(e-tt.speedup/8) > (0.01+half)/8 {
				t.Errorf("efficiency %.4f, published speedup over 8 GPUs %.4f", e, tt.speedup/8)
			}
			if p.Of(measure.Throughput).Gain().Interval != nil {
				t.Error("an interval from one published figure a side")
			}
		})
	}
}

func ExampleAnalyse() {
	// MLPerf Training 3.0, NVIDIA H100, ResNet-50: minutes to 75.9 % with 8, 64, 512 and 3584 GPUs.
	// By time to accuracy, 448 times the GPUs are 73.6 times as fast.
	var obs []Observation
	for n, minutes := range map[int]float64{8: 13.466, 64: 2.664, 512: 0.509, 3584: 0.183} {
		seconds := 60 * minutes
		obs = append(obs, Observation{Run: fmt.Sprint(n), Workers: n, Framework: "mxnet",
			Values: map[string]float64{"to_0.759": seconds}})
	}
	curves, err := Analyse(obs, Options{})
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range curves[0].Points {
		s := p.Of("to_0.759")
		fmt.Printf("%4d GPUs: %6.1f s, %.1f times as fast\n", p.Workers, s.Median.Value, s.Gain().Value)
	}
	// Output:
	//    8 GPUs:  808.0 s, 1.0 times as fast
	//   64 GPUs:  159.8 s, 5.1 times as fast
	//  512 GPUs:   30.5 s, 26.5 times as fast
	// 3584 GPUs:   11.0 s, 73.6 times as fast
}
