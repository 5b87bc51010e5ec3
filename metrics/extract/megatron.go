package extract

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// megatron reads the iteration lines of Megatron-LM and its derivatives: Megatron-DeepSpeed,
// GPT-NeoX, AMD's Primus and NVIDIA's Megatron-Bridge. The last rank prints them. Times are means
// since the previous line.
//
// The derivatives differ in details. GPT-NeoX prints samples/s before the iteration. Primus puts
// the current value and an average into one field, of which the current value is read. Bridge
// prints its FLOP/s on a separate line before the iteration.
var megatron = Extractor{
	Name:  "megatron",
	Kind:  "train",
	Reads: "iteration N/ N | consumed samples: N | elapsed time per iteration (ms): X | … | global batch size: N | lm loss: X | …",
	read:  readMegatron,
}

// megatronValue matches the current value of a field, which may be followed by an average.
var megatronValue = regexp.MustCompile(`^([^/]*?)(?:TFLOPS|GB)?(?: \(avg .*|/.*)?$`)

var megatronLog = stepFormat{
	program: "Megatron", starting: 1, convention: "megatron",
	line:      regexp.MustCompile(`^(?:.*?[\s\]:])?(?P<before>samples/sec: +\S+ \| )?iteration +(?P<step>\d+)/ *\d+ +\|(?P<fields>.+)\|\s*$`),
	separator: "|",
	batch:     "global batch size",
	consumed:  "consumed samples",
	losses:    []string{"lm loss", "lm_loss"},
	fields: []stepField{
		{"elapsed time per iteration (ms)", stepSeconds, 1e-3, megatronValue},
		{"elapsed time per iteration (s)", stepSeconds, 1, megatronValue},   // Megatron-DeepSpeed
		{"compute per GPU (TFLOP/s/GPU)", flopsPerGPU, 1e12, megatronValue}, // Primus from 26.5 on
		{"TFLOPs", flopsPerGPU, 1e12, megatronValue},
		{"tokens per GPU (tokens/s/GPU)", tokensPerGPU, 1, megatronValue},
		{"tokens/s/GPU inst/harmonic mean", tokensPerGPU, 1, megatronValue},
		{"tokens/sec/gpu", tokensPerGPU, 1, megatronValue},
		{"tokens per gpu per second (tgs)", tokensPerGPU, 1, megatronValue},
		{"approx flops per GPU", flopsPerGPU, 1e12, megatronValue},
		{"hip mem usage/free/total/usage_ratio", usedMemory, 1 << 30, megatronValue}, // Primus calls the unit GB
	},
	ignored: regexp.MustCompile(`^(?:throughput per GPU \(TFLOP/s/GPU\)|global batch size|lm[ _]loss|samples/sec|samples per second|actual seqlen|consumed (?:samples|tokens)|.*(?:loss|norm|learning rate|lr|grad|scale|iterations|zeros|curriculum|percent|metrics|elapsed time per iteration).*)$`),
	others: []stepLine{
		{regexp.MustCompile(`^\s*(world_size|seq_length|train_batch_size) \.{3,} ?(\d+)(?:\s*\.*\s*(?:default|updated))?\s*$`), megatronArgument},
		{regexp.MustCompile(`NeoXArgs\.configure_distributed_args\(\) using (world size): (\d+) `), megatronArgument},
		{regexp.MustCompile(`(?:^|\s)\[Rank \d+\] .*memory \(MB\) \| allocated: \d+\.?\d* \| max allocated: (\d+\.?\d*) \| reserved: \d+\.?\d* \| max reserved: (\d+\.?\d*)(?: \||\s*$)`), megatronMemory},
		{regexp.MustCompile(`(?:^|\s)validation loss at iteration +(\d+)( on [a-z]+ set)? +\|(.+)\|\s*$`), megatronEvaluation},
	},
}

// bridgeStep matches Bridge's line with the FLOP/s, which precedes the line of the iteration.
var bridgeStep = regexp.MustCompile(`(?:^|\s)Step Time : \d+\.?\d*s GPU utilization: (\d+\.?\d*)MODEL_TFLOP/s/GPU\s*$`)

func readMegatron(l *log, r io.Reader) {
	f := megatronLog
	var bridge Value // the TFLOP/s of the next iteration; Line 0: not seen
	f.others = append(slices.Clone(f.others), stepLine{bridgeStep, func(_ *stepLog, ln line, m []string) {
		bridge = l.parse(ln.number, m[1])
	}})
	f.more = func(s *stepLog, ln line, _ int, fields parts) {
		flops := bridge
		bridge = Value{}
		s.megatronTokens(ln.number, fields)
		s.megatronSamples(ln.number, fields)
		if strings.Trim(fields["number of skipped iterations"]+fields["number of nan iterations"], "0") != "" {
			s.skipped++
		}
		x, ok := fields["throughput per GPU (TFLOP/s/GPU)"]
		switch {
		case flops.Line > 0:
			s.add(flopsPerGPU, flops, 1e12)
		case ok:
			s.number(ln.number, flopsPerGPU, megatronValue.FindStringSubmatch(x)[1], 1e12)
		}
	}
	f.read(l, r)
}

// megatronArgument records one of the program's arguments that it prints at the start.
func megatronArgument(s *stepLog, ln line, m []string) {
	n := s.l.count(ln.number, m[1]+" of", m[2])
	switch m[1] {
	case "world_size", "world size":
		s.devicesAre(n, m[1], ln.number)
		return
	case "train_batch_size":
		s.batchOf(Value{float64(n), ln.number})
		return
	}
	s.tokensOf(Value{float64(n), ln.number})
}

// megatronMemory records the memory of a rank. A MB is 1024² bytes.
func megatronMemory(s *stepLog, ln line, m []string) {
	s.number(ln.number, allocatedMemory, m[1], 1<<20)
	s.number(ln.number, reservedMemory, m[2], 1<<20)
}

// megatronSamples records the samples/s of all devices.
func (s *stepLog) megatronSamples(ln int, fields parts) {
	for _, name := range []string{"samples/sec", "samples per second"} {
		x, ok := fields[name]
		if !ok {
			continue
		}
		v := s.l.rateAbove0(ln, x)
		if s.lines > s.format.starting {
			s.samples = append(s.samples, v)
		}
	}
}

// megatronTokens sets the tokens per sample if the log does not contain the program's arguments.
// Megatron-DeepSpeed prints the sequence length, or the total tokens and samples, whose quotient
// it is.
func (s *stepLog) megatronTokens(ln int, fields parts) {
	if x, ok := fields["actual seqlen"]; ok {
		s.tokensOf(Value{float64(s.l.count(ln, "an actual seqlen of", x)), ln})
		return
	}
	tokens, err := strconv.ParseInt(fields["consumed tokens"], 10, 64)
	if err != nil || s.tokens.Line > 0 { // some programs write 1.258B
		return
	}
	samples, err := strconv.ParseInt(fields["consumed samples"], 10, 64)
	if err == nil && samples > 0 && tokens >= samples && tokens%samples == 0 {
		s.tokensOf(Value{float64(tokens / samples), ln})
	}
}

// megatronEvaluation records the loss on the validation set. It ignores the loss on the test set
// after training.
func megatronEvaluation(s *stepLog, ln line, m []string) {
	if strings.TrimSpace(m[2]) == "on test set" {
		return
	}
	x, ok := s.l.fieldsOf(ln.number, m[3], "|")["lm loss value"]
	if !ok {
		return
	}
	s.evaluationAt(ln, m[1], x)
}
