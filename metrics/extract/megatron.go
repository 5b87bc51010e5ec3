package extract

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// megatron reads the iteration lines of Megatron-LM, and of those that were made of
// it: Megatron-DeepSpeed, GPT-NeoX, AMD's Primus and NVIDIA's Megatron-Bridge. The last
// rank prints them; times are the mean since the line before. GPT-NeoX has its samples/s
// before the iteration. Primus writes the current
// value and an average in one field: the current one is read. Bridge has its
// FLOP/s in a line of its own, before the iteration's.
var megatron = Extractor{
	Name:  "megatron",
	Kind:  "train",
	Reads: "iteration N/ N | consumed samples: N | elapsed time per iteration (ms): X | … | global batch size: N | lm loss: X | …",
	read:  readMegatron,
}

var (
	megatronStep     = regexp.MustCompile(`^(?:.*?[\s\]:])?(samples/sec: +\S+ \| )?iteration +(\d+)/ *(\d+) +\|(.+)\|\s*$`)
	megatronEval     = regexp.MustCompile(`(?:^|\s)validation loss at iteration +(\d+)( on [a-z]+ set)? +\|(.+)\|\s*$`)
	megatronArgument = regexp.MustCompile(`^\s*(world_size|seq_length|train_batch_size) \.{3,} ?(\d+)(?:\s*\.*\s*(?:default|updated))?\s*$`)
	megatronMemory   = regexp.MustCompile(`(?:^|\s)\[Rank \d+\] .*memory \(MB\) \| allocated: \d+\.?\d* \| max allocated: (\d+\.?\d*) \| reserved: \d+\.?\d* \| max reserved: (\d+\.?\d*)(?: \||\s*$)`)
	neoxWorld        = regexp.MustCompile(`NeoXArgs\.configure_distributed_args\(\) using (world size): (\d+) `)
	bridgeStep       = regexp.MustCompile(`(?:^|\s)Step Time : \d+\.?\d*s GPU utilization: (\d+\.?\d*)MODEL_TFLOP/s/GPU\s*$`)
)

// megatronFields are what the fields of an iteration are called, and our figures.
var megatronFields = []stepField{
	{"elapsed time per iteration (ms)", stepSeconds, 1e-3},
	{"throughput per GPU (TFLOP/s/GPU)", flopsPerGPU, 1e12},
	{"compute per GPU (TFLOP/s/GPU)", flopsPerGPU, 1e12}, // Primus from 26.5 on
	{"TFLOPs", flopsPerGPU, 1e12},
	{"tokens per GPU (tokens/s/GPU)", tokensPerGPU, 1},
	{"tokens/s/GPU inst/harmonic mean", tokensPerGPU, 1},
	{"tokens/sec/gpu", tokensPerGPU, 1},
	{"tokens per gpu per second (tgs)", tokensPerGPU, 1},
	{"approx flops per GPU", flopsPerGPU, 1e12},
	{"hip mem usage/free/total/usage_ratio", usedMemory, 1 << 30}, // which it calls GB
}

func readMegatron(l *log, r io.Reader) error {
	s := newStepLog(l, "Megatron", 1)
	s.convention = "megatron"
	var bridge Value // TFLOP/s of the iteration whose line comes next; Line 0: not said
	err := l.each(r, func(ln line) error {
		m := megatronArgument.FindStringSubmatch(ln.text)
		if m == nil {
			m = neoxWorld.FindStringSubmatch(ln.text)
		}
		if m != nil {
			n, err := l.count(ln.number, m[1]+" of", m[2])
			switch {
			case err != nil:
				return err
			case m[1] == "world_size" || m[1] == "world size":
				s.devicesAre(n, m[1], ln.number)
				return nil
			case m[1] == "train_batch_size":
				return s.batchOf(Value{float64(n), ln.number})
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
		if m = megatronStep.FindStringSubmatch(ln.text); m == nil {
			return nil
		}
		step, err := l.whole(ln.number, m[2])
		if err != nil {
			return err
		}
		flops := bridge
		bridge = Value{}
		if ok, err := s.takes(ln, step); !ok {
			return err
		}
		fields, err := l.fieldsOf(ln.number, m[1]+m[4], "|")
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
		if err := s.number(ln, f.ours, strings.TrimSuffix(strings.TrimSuffix(x, "TFLOPS"), "GB"), f.scale); err != nil {
			return err
		}
	}
	for _, name := range []string{"samples/sec", "samples per second"} {
		x, ok := fields[name]
		if !ok {
			continue
		}
		v, err := s.l.rateAbove0(ln, x)
		if err != nil {
			return err
		}
		if s.lines > s.starting {
			s.samples = append(s.samples, v)
		}
	}
	s.unread(ln, fields, megatronRead)
	for _, name := range []string{"lm loss", "lm_loss"} {
		if x, ok := fields[name]; ok {
			return s.lossOf(ln, "step", float64(step), x)
		}
	}
	return nil
}

// megatronRead reports whether a field is read, or is known and no measure.
func megatronRead(name string) bool {
	return slices.ContainsFunc(megatronFields, func(f stepField) bool { return f.theirs == name }) || megatronOthers.MatchString(name)
}

// megatronOthers matches fields that are read otherwise, or do not measure speed.
var megatronOthers = regexp.MustCompile(`^(?:global batch size|lm[ _]loss|samples/sec|samples per second|actual seqlen|consumed (?:samples|tokens)|.*(?:loss|norm|learning rate|lr|grad|scale|iterations|zeros|curriculum|percent|metrics|elapsed time per iteration).*)$`)

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
