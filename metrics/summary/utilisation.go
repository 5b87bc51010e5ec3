package summary

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// MFU is what a plan asks of the model FLOP/s of a language model, and what it knows
// of the model.
type MFU struct {
	Convention string  // of package mfu
	FLOPs      float64 // of a token, by it
	Hardware   float64 // of a token, with what is computed again; 0: not known
	Dtype      string  // of the matrix multiplications
	PeakTFLOPS float64 // of a worker's device, as the study says; 0: by the device's name
}

// MFUOf is what the parameters of a run say; nil where none is asked for.
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

// gemmFLOPS is the figure by which a program says what a worker's CPUs reach in a
// matrix multiplication of their own: the peak that a CPU's MFU is of.
const gemmFLOPS = "gemm_flops"

// utilisation is the MFU by the convention that the study asks for, and the HFU, of the
// tokens/s of a worker, which has one device.
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
			r.Why[m.Name] = "nobody says what the program computes again for activation checkpointing; set workload.recompute"
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

// flopsOf is the FLOP/s of a device by a log's own count; 0 where it states none.
func flopsOf(r *Outcome) float64 {
	if stated := r.Known(measure.ReportedFLOPS); stated != nil {
		return *stated
	}
	return 0
}

// peak is that of a worker's device in FLOP/s, and where it is from.
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
