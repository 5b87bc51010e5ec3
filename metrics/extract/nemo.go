package extract

import (
	"io"
	"regexp"
)

// nemo reads the progress lines of NeMo 2. Iterations are numbered from 0. The step time is that
// of the printed iteration. After an evaluation, every line repeats its val_loss, so only the
// first one counts.
var nemo = Extractor{
	Name:  "nemo",
	Kind:  "train",
	Reads: "Training epoch N, iteration N/N | … | global_batch_size: N | … | reduced_train_loss: X | train_step_timing in s: X | …",
	read:  readNeMo,
}

var nemoLog = stepFormat{
	program: "NeMo", starting: 1, convention: "megatron",
	line:      regexp.MustCompile(`(?:^|[\s:\]])Training epoch \d+, iteration (?P<step>\d+)/\d+ \| (?P<fields>.+)$`),
	separator: "|",
	needs:     []string{"train_step_timing in s"},
	step:      "global_step", // the number of the iteration restarts with each epoch
	batch:     "global_batch_size",
	consumed:  "consumed_samples",
	losses:    []string{"reduced_train_loss"},
	fields: []stepField{
		{"train_step_timing in s", stepSeconds, 1, nil},
		{"TFLOPS_per_GPU", flopsPerGPU, 1e12, nil},
		{"tokens_per_sec_per_gpu", tokensPerGPU, 1, nil},
		{"max_memory_reserved", reservedMemory, 1, nil},
		{"max_memory_allocated", allocatedMemory, 1, nil},
	},
	ignored: regexp.MustCompile(`^(?:.*loss.*|.*norm.*|lr|learning_rate|global_step|global_batch_size|consumed_samples|.*grad.*)$`),
}

func readNeMo(l *log, r io.Reader) {
	f, evaluated := nemoLog, "" // the val_loss of the latest line
	f.more = func(s *stepLog, ln line, step int, fields parts) {
		x, ok := fields["val_loss"]
		if !ok || x == evaluated {
			return
		}
		evaluated = x
		s.evaluationOf(ln.number, "step", float64(step), x)
	}
	f.read(l, r)
}
