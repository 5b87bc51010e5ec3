package extract

import (
	"io"
	"regexp"
	"slices"
	"strings"
)

// nemo reads the progress lines of NeMo 2. Iterations count from 0; the time of a
// step is that of the iteration printed. A val_loss is the latest evaluation's, and
// stands in every line from then on.
var nemo = Extractor{
	Name:  "nemo",
	Kind:  "train",
	Reads: "Training epoch N, iteration N/N | … | global_batch_size: N | … | reduced_train_loss: X | train_step_timing in s: X | …",
	read:  readNeMo,
}

var (
	nemoStep = regexp.MustCompile(`(?:^|[\s:\]])Training epoch (\d+), iteration (\d+)/(\d+) \| (.+)$`)
	nemoRead = regexp.MustCompile(`^(?:.*loss.*|.*norm.*|lr|learning_rate|global_step|global_batch_size|consumed_samples|.*grad.*)$`)
)

// nemoFields are what the parts of a line are called, and our figures.
var nemoFields = []stepField{
	{"train_step_timing in s", stepSeconds, 1},
	{"TFLOPS_per_GPU", flopsPerGPU, 1e12},
	{"tokens_per_sec_per_gpu", tokensPerGPU, 1},
	{"max_memory_reserved", reservedMemory, 1},
	{"max_memory_allocated", allocatedMemory, 1},
}

func readNeMo(l *log, r io.Reader) error {
	s := newStepLog(l, "NeMo", 1)
	s.convention = "megatron"
	evaluated := "" // the val_loss as it stands in the lines so far
	err := l.each(r, func(ln line) error {
		m := nemoStep.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		fields, err := l.fieldsOf(ln.number, m[4], "|")
		if err != nil {
			return err
		}
		if _, ok := fields["train_step_timing in s"]; !ok {
			return nil // a line that was cut
		}
		step, err := l.whole(ln.number, m[2])
		if err != nil {
			return err
		}
		if x, ok := fields["global_step"]; ok { // iterations begin again with each epoch
			if step, err = l.whole(ln.number, x); err != nil {
				return err
			}
		}
		if ok, err := s.takes(ln, step); !ok {
			return err
		}
		if x, ok := fields["global_batch_size"]; ok {
			v, err := l.parse(ln.number, x)
			if err != nil {
				return err
			}
			if err := s.batchOf(v); err != nil {
				return err
			}
		}
		for _, f := range nemoFields {
			if x, ok := fields[f.theirs]; ok {
				if err := s.number(ln.number, f.ours, x, f.scale); err != nil {
					return err
				}
			}
		}
		s.unread(ln.number, fields, func(name string) bool {
			return nemoRead.MatchString(name) || slices.ContainsFunc(nemoFields, func(f stepField) bool { return f.theirs == name })
		})
		if x, ok := fields["val_loss"]; ok && x != evaluated {
			evaluated = x
			if err := s.evaluationOf(ln.number, "step", float64(step), x); err != nil {
				return err
			}
		}
		if x, ok := fields["reduced_train_loss"]; ok {
			return s.lossOf(ln.number, "step", float64(step), strings.TrimSpace(x))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.finish()
}
