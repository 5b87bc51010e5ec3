package extract

import (
	"io"
	"regexp"
	"strconv"
	"strings"
)

// megatron reads the iteration lines of Megatron-LM, and of those that were made of
// it: Megatron-DeepSpeed, AMD's Primus and NVIDIA's Megatron-Bridge. The last rank
// prints them; times are the mean since the line before. Primus writes the current
// value and an average in one field: the current one is read. Bridge has its
// FLOP/s in a line of its own, before the iteration's.
var megatron = Extractor{
	Name:  "megatron",
	Kind:  "train",
	Reads: "iteration N/ N | consumed samples: N | elapsed time per iteration (ms): X | … | global batch size: N | lm loss: X | …",
	read:  readMegatron,
}

var (
	megatronStep     = regexp.MustCompile(`^(?:.*[\s\]:])?iteration +(\d+)/ *(\d+) +\|(.+)\|\s*$`)
	megatronEval     = regexp.MustCompile(`(?:^|\s)validation loss at iteration +(\d+)( on [a-z]+ set)? +\|(.+)\|\s*$`)
	megatronArgument = regexp.MustCompile(`^\s*(world_size|seq_length) \.{3,} (\d+)\s*$`)
	megatronMemory   = regexp.MustCompile(`(?:^|\s)\[Rank \d+\] .*memory \(MB\) \| allocated: \d+\.?\d* \| max allocated: (\d+\.?\d*) \| reserved: \d+\.?\d* \| max reserved: (\d+\.?\d*)(?: \||\s*$)`)
	bridgeStep       = regexp.MustCompile(`(?:^|\s)Step Time : \d+\.?\d*s GPU utilization: (\d+\.?\d*)MODEL_TFLOP/s/GPU\s*$`)
)

// megatronFields are what the fields of an iteration are called, and our figures.
var megatronFields = []struct {
	theirs, ours string
	scale        float64
}{
	{"elapsed time per iteration (ms)", stepSeconds, 1e-3},
	{"throughput per GPU (TFLOP/s/GPU)", flopsPerGPU, 1e12},
	{"compute per GPU (TFLOP/s/GPU)", flopsPerGPU, 1e12}, // Primus from 26.5 on
	{"TFLOPs", flopsPerGPU, 1e12},
	{"tokens per GPU (tokens/s/GPU)", tokensPerGPU, 1},
	{"tokens/s/GPU inst/harmonic mean", tokensPerGPU, 1},
	{"tokens/sec/gpu", tokensPerGPU, 1},
	{"tokens per gpu per second (tgs)", tokensPerGPU, 1},
	{"hip mem usage/free/total/usage_ratio", usedMemory, 1 << 30}, // which it calls GB
}

func readMegatron(l *log, r io.Reader) error {
	s := newStepLog(l, "Megatron", 1)
	s.convention = "megatron"
	var bridge Value // TFLOP/s of the iteration whose line comes next; Line 0: not said
	err := l.each(r, func(ln line) error {
		if m := megatronArgument.FindStringSubmatch(ln.text); m != nil {
			n, err := l.count(ln.number, m[1]+" of", m[2])
			switch {
			case err != nil:
				return err
			case m[1] == "world_size":
				s.devicesAre(n)
				return nil
			}
			return s.tokensOf(Value{float64(n), ln.number})
		}
		if m := megatronMemory.FindStringSubmatch(ln.text); m != nil {
			if err := s.number(ln.number, allocatedMemory, m[1], 1<<20); err != nil { // which it calls MB
				return err
			}
			return s.number(ln.number, reservedMemory, m[2], 1<<20)
		}
		if m := bridgeStep.FindStringSubmatch(ln.text); m != nil {
			v, err := l.parse(ln.number, m[1])
			bridge = v
			return err
		}
		if m := megatronEval.FindStringSubmatch(ln.text); m != nil {
			return s.megatronEvaluation(ln, m)
		}
		m := megatronStep.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		step, err := l.whole(ln.number, m[1])
		if err != nil {
			return err
		}
		flops := bridge
		bridge = Value{}
		if ok, err := s.takes(ln, step); !ok {
			return err
		}
		fields, err := l.fieldsOf(ln.number, m[3], "|")
		if err != nil {
			return err
		}
		if flops.Line > 0 {
			delete(fields, "throughput per GPU (TFLOP/s/GPU)")
		}
		if err := s.megatronIteration(ln.number, step, fields); err != nil || flops.Line == 0 {
			return err
		}
		return s.add(flopsPerGPU, flops, 1e12)
	})
	if err != nil {
		return err
	}
	return s.finish()
}

func (s *stepLog) megatronIteration(ln, step int, fields parts) error {
	if x, ok := fields["global batch size"]; ok {
		v, err := s.l.parse(ln, x)
		if err != nil {
			return err
		}
		if err := s.batchOf(v); err != nil {
			return err
		}
	}
	if err := s.megatronTokens(ln, fields); err != nil {
		return err
	}
	for _, f := range megatronFields {
		x, ok := fields[f.theirs]
		if !ok {
			continue
		}
		x, _, _ = strings.Cut(x, "/") // the current value, before an average
		x, _, _ = strings.Cut(x, " (avg ")
		if err := s.number(ln, f.ours, strings.TrimSuffix(x, "GB"), f.scale); err != nil {
			return err
		}
	}
	if x, ok := fields["lm loss"]; ok {
		return s.lossOf(ln, "step", float64(step), x)
	}
	return nil
}

// megatronTokens finds the tokens of a sample where the arguments were not printed:
// Megatron-DeepSpeed states them, or counts both.
func (s *stepLog) megatronTokens(ln int, fields parts) error {
	if x, ok := fields["actual seqlen"]; ok {
		n, err := s.l.count(ln, "an actual seqlen of", x)
		if err != nil {
			return err
		}
		return s.tokensOf(Value{float64(n), ln})
	}
	tokens, err := strconv.ParseInt(fields["consumed tokens"], 10, 64)
	if err != nil || s.tokens.Line > 0 { // some write 1.258B
		return nil
	}
	samples, err := strconv.ParseInt(fields["consumed samples"], 10, 64)
	if err == nil && samples > 0 && tokens >= samples && tokens%samples == 0 {
		return s.tokensOf(Value{float64(tokens / samples), ln})
	}
	return nil
}

// megatronEvaluation takes a loss on the validation set; that on the test set, after
// training, is another figure.
func (s *stepLog) megatronEvaluation(ln line, m []string) error {
	if strings.TrimSpace(m[2]) == "on test set" {
		return nil
	}
	fields, err := s.l.fieldsOf(ln.number, m[3], "|")
	if err != nil {
		return err
	}
	x, ok := fields["lm loss value"]
	if !ok {
		return nil
	}
	return s.evaluationAt(ln, m[1], x)
}
