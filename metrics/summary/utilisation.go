package summary

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// MFU is the plan's request to compute the MFU of a language model, with the facts about the
// model.
type MFU struct {
	Convention string  // convention; see package measure
	FLOPs      float64 // per token, by the convention
	Hardware   float64 // per token, including recomputation; 0: unknown
	Dtype      string  // of the matrix multiplications
	PeakTFLOPS float64 // per worker, as set in the study; 0: look up the device's name
}

// MFUOf returns the request in a run's parameters; nil: none.
func MFUOf(parameters map[string]any) *MFU {
	number := func(key string) float64 { return amount(parameters[key]) }
	m := MFU{FLOPs: number(measure.FLOPsPerTokenKey), Hardware: number(measure.HardwareFLOPsPerTokenKey), PeakTFLOPS: number(measure.MFUPeakKey)}
	m.Convention, _ = parameters[measure.MFUKey].(string)
	m.Dtype, _ = parameters["workload.precision"].(string)
	if m.Convention == "" || !(m.FLOPs > 0) {
		return nil
	}
	return &m
}

// gemmFLOPS is the name of the figure with the FLOP/s that a worker's CPUs reach in a matrix
// multiplication. It is the peak for the MFU on CPUs.
const gemmFLOPS = "gemm_flops"

// utilisation sets the MFU and the HFU by the convention that the study names. It computes them
// from the tokens/s of a worker, which has one device.
func (r *Outcome) utilisation(in Input) {
	if in.MFU == nil {
		return
	}
	each := r.Known(measure.TokensPerGPU)
	if each == nil {
		each = r.Known(measure.TokensPerSecond + "_per_worker")
	}
	share := func(name string, flops float64, of func(flops, tokensPerSecond, peak float64) (float64, error), counts string) {
		m := measure.Reported(name+"_"+in.MFU.Convention, "", measure.Neither)
		if slices.ContainsFunc(r.Reported, func(known measure.Measure) bool { return known.Name == m.Name }) {
			return
		}
		r.Reported = append(r.Reported, m)
		switch {
		case flops == 0:
			r.Why[m.Name] = "what the program recomputes for activation checkpointing is unknown; set workload.recompute"
			return
		case each == nil:
			r.Why[m.Name] = "there are no tokens/s of a worker"
			return
		}
		peak, source, err := in.MFU.peak(r)
		var x float64
		if err == nil {
			x, err = of(flops, *each, peak)
		}
		if err != nil {
			r.Why[m.Name] = err.Error()
			r.warn("no %s: %v", m.Name, err)
			return
		}
		r.Values[m.Name] = x
		r.warn("%s: %.4g FLOPs a token by %s's count%s, in %s; 100 %% is %s", m.Name, flops, in.MFU.Convention, counts, in.MFU.Dtype, source)
		if stated := r.Known(measure.ReportedMFU); name == "mfu" && stated != nil && *stated > 0 {
			r.warn("%s", measure.RestatedMFU(measure.MFUStatement{MFU: *stated, FLOPS: flopsOf(r)}, measure.MFUStatement{MFU: x, FLOPS: flops * *each}, m.Name, *each))
		}
	}
	share("mfu", in.MFU.FLOPs, measure.Utilisation, "")
	share("hfu", in.MFU.Hardware, measure.HardwareUtilisation, ", with what is computed again in the backward pass")
}

// flopsOf returns the FLOP/s per device that a log states; 0 if it states none.
func flopsOf(r *Outcome) float64 {
	if stated := r.Known(measure.ReportedFLOPS); stated != nil {
		return *stated
	}
	return 0
}

// peak returns the peak of a worker's device in FLOP/s, and where that number comes from.
func (m *MFU) peak(r *Outcome) (flops float64, source string, err error) {
	device := r.Fingerprint[fingerprint.GPU]
	if m.PeakTFLOPS > 0 {
		flops = m.PeakTFLOPS * 1e12
		if math.IsInf(flops, 0) {
			return 0, "", fmt.Errorf("workload.peak_tflops = %g is no peak", m.PeakTFLOPS)
		}
		return flops, fmt.Sprintf("%.4g TFLOP/s, as workload.peak_tflops says", flops/1e12), measure.CheckPeak(device, m.Dtype, flops)
	}
	if gemm := r.Known(gemmFLOPS); device == "" && gemm != nil && *gemm > 0 {
		return *gemm, "what a worker's CPUs reached in a matrix multiplication before or after the training, not a maker's figure", nil
	}
	if device == "" {
		return 0, "", errors.New("no peak is known of a CPU, and the program measured none (gemm_flops); set workload.peak_tflops to what a worker's CPUs can do")
	}
	p, err := measure.PeakOf(device, m.Dtype)
	if err != nil {
		return 0, "", fmt.Errorf("%w as workload.peak_tflops", err)
	}
	return p.FLOPS, fmt.Sprintf("the peak of %s, %.4g TFLOP/s (%s)", p.Device, p.FLOPS/1e12, p.Source), nil
}
