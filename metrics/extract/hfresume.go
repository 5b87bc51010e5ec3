package extract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// hfParts collects evidence for whether the Trainer's summary covers a resumed training. After a
// resume from a checkpoint the summary is wrong: the Trainer divides the samples of all epochs by
// the time since the resume.
type hfParts struct {
	epochs, losses []float64 // of the lines that state a training loss
	evaluating     float64   // total seconds of evaluations
	why            string    // line in which the log says that the training was resumed; "" if there is none
	examples       float64   // samples of an epoch; 0: not stated
	// planned is the number of epochs of a complete training, computed from the share of the
	// steps that was done at an epoch. If there are several results, it is the smallest; 0:
	// unknown.
	planned float64
	// done is the number of steps that were done, and batch the samples of a step; 0: unknown.
	done, batch float64
}

// progress records that done of total steps were done at an epoch. A progress bar may be older
// than the line with the epoch, which makes the planned epochs too large.
func (h *hfParts) progress(done, total, epoch float64) {
	if x := epoch * total / done; done > 0 && epoch >= roundedEpoch && (h.planned == 0 || x < h.planned) {
		h.planned = x
	}
}

// roundedEpoch is the smallest epoch that is precise enough although it is printed with two
// decimals.
const roundedEpoch = 0.2

// hfTotals holds figures of the Trainer's summary; 0 for one that is missing.
type hfTotals struct{ loss, runtime, samples, steps, epoch float64 }

// mostOfAll is the share of the planned epochs from which on a training counts as complete.
const mostOfAll = 0.97

// stopped returns a reason to distrust the summary if the training ended before its last epoch,
// and "" otherwise. The summary of such a training divides the samples of all planned epochs by
// the shorter time.
func (h *hfParts) stopped(of hfTotals) string {
	early := func(planned float64) string {
		return fmt.Sprintf("it ended at epoch %.4g of %.4g: it stopped early, and divides the samples of all planned steps by its time", of.epoch, planned)
	}
	if of.epoch > 0 && of.epoch < mostOfAll*h.planned {
		return early(h.planned)
	}
	if h.examples > 0 && of.epoch > 0 {
		planned := of.samples * of.runtime / h.examples
		if whole := math.Round(planned); whole > 0 && math.Abs(planned-whole) < 0.01*whole && of.epoch < mostOfAll*whole {
			return early(whole)
		}
	}
	return ""
}

// disagree returns a reason if the summary's rates contradict the steps that were done and their
// samples, and "" otherwise.
func (h *hfParts) disagree(of hfTotals) string {
	if own := h.done / of.runtime; own > 0 && finite(own) && of.steps > 0 && math.Abs(of.steps-own) > 0.03*own+0.0006 {
		return fmt.Sprintf("it states %.4g steps/s, and its %.10g steps in %.4g s are %.4g", of.steps, h.done, of.runtime, own)
	}
	// The last batch of an epoch may be small.
	if own := of.steps * h.batch; own > 0 && of.samples > 0 && !within(of.samples, own+0.001*h.batch, 2) {
		return fmt.Sprintf("it states %.4g samples/s, and its %.4g steps/s of %g samples are %.4g", of.samples, of.steps, h.batch, own)
	}
	return ""
}

// counts returns a reason if the summary's train_samples_per_second does not count samples, and
// "" otherwise. Before transformers 4.6 it counted optimizer steps, and the summary had no
// train_steps_per_second; steps reports whether it has one.
func (of hfTotals) counts(steps bool) string {
	switch {
	case !steps:
		return "it has no train_steps_per_second, so it is of an older transformers, whose train_samples_per_second are steps per second: multiply them by the samples of a step, or read them with [[extract]] and unit = \"steps/s\""
	case of.samples+0.0005 < of.steps-0.0005:
		return fmt.Sprintf("its %.4g samples/s are fewer than its %.4g steps/s", of.samples, of.steps)
	}
	return ""
}

// loss records a training loss. The Trainer prints the mean loss since its previous line.
func (h *hfParts) loss(epoch, loss float64) {
	h.epochs, h.losses = append(h.epochs, epoch), append(h.losses, loss)
}

// resumed returns a reason if the log shows that the training was resumed, and "" otherwise.
// trainLoss and runtime (in seconds) come from the summary; 0: missing.
func (h *hfParts) resumed(trainLoss, runtime float64) string {
	const all = "it was resumed, and divides the samples of all epochs by the time since then"
	if h.why != "" {
		return h.why + ": " + all
	}
	if runtime > 0 && h.evaluating > runtime {
		return fmt.Sprintf("its evaluations took %.4g s, longer than its train_runtime of %.4g s: %s", h.evaluating, runtime, all)
	}
	n := len(h.epochs)
	if n < 2 {
		return ""
	}
	var each []float64
	for i := 1; i < n; i++ {
		each = append(each, h.epochs[i]-h.epochs[i-1])
	}
	spacing, _ := reduceBy("median", each) // reduceBy fails only without values
	// The Trainer rounds epochs to hundredths.
	if first := h.epochs[0]; spacing > 0 && first > 1.5*spacing+0.01 {
		return fmt.Sprintf("its first loss is at epoch %.4g, and later ones are %.4g apart: %s", first, spacing, all)
	}
	if n < 3 {
		return ""
	}
	// The summary's loss of a resumed training is too small: the Trainer divides the sum of the
	// losses since the resume by the steps of all epochs.
	sum, weight := 0.0, 0.0
	for i, loss := range h.losses {
		w := min(h.epochs[0], spacing)
		if i > 0 {
			w = each[i-1]
		}
		sum, weight = sum+w*loss, weight+w
	}
	if mean := sum / weight; weight > 0 && slices.Min(h.losses) > 0 && trainLoss > 0 && trainLoss < 0.9*mean {
		return fmt.Sprintf("its train_loss of %.4g is not the mean of its losses, %.4g: %s", trainLoss, mean, all)
	}
	return ""
}

// hfSummaries maps the Trainer's names to figures of the whole run. train_tokens_per_second is
// the rate of one GPU in some versions and of all GPUs in others; the log does not say which.
var hfSummaries = []struct{ theirs, ours, unit, note string }{
	{"train_runtime", metrics.FigureTrainSeconds, "s", "the Trainer's whole run time, evaluations and checkpoints included"},
	{"train_samples_per_second", metrics.FigureEndToEnd, "samples/s", "the samples of all epochs over the Trainer's whole run time"},
	{"train_samples_per_second", metrics.FigureThroughput, "samples/s", "over the Trainer's whole run time: warm-up, evaluations and checkpoints included"},
	{"train_tokens_per_second", "train_tokens_per_second", "tokens/s", "over the Trainer's whole run time; of one GPU or of all, depending on the version of transformers"},
}

// summary adds the figures of the whole run. The function number returns a field of the summary
// by the Trainer's name.
func (h *hfParts) summary(l *log, line int, number func(name string) (v Value, ok bool)) {
	var of hfTotals
	steps := false
	for _, f := range []struct {
		name string
		into *float64
	}{{"train_loss", &of.loss}, {"train_runtime", &of.runtime}, {"train_samples_per_second", &of.samples}, {"train_steps_per_second", &of.steps}, {"epoch", &of.epoch}} {
		err := try(func() {
			v, ok := number(f.name)
			*f.into = v.Number
			steps = steps || ok && f.into == &of.steps
		})
		if !(f.name == "train_loss" && err != nil && strings.Contains(err.Error(), "finite")) { // a diverged training prints NaN
			failIf(err)
		}
	}
	why := h.resumed(of.loss, of.runtime)
	rates := cmp.Or(why, of.counts(steps), h.stopped(of), h.disagree(of))
	for _, s := range hfSummaries {
		v, ok := number(s.theirs)
		if !ok {
			continue
		}
		if v.Number < 0 || v.Number == 0 && s.theirs == "train_runtime" {
			l.fail(line, "%s is %g; want more than 0", s.theirs, v.Number)
		}
		if v.Number == 0 {
			l.note("the Trainer states a %s of 0, less than it prints; it is left out", s.theirs)
			continue
		}
		f := metrics.Figure{Name: s.ours, Value: v.Number, Unit: s.unit, Note: s.note}
		if why := map[bool]string{true: why, false: rates}[s.ours == metrics.FigureTrainSeconds]; why != "" {
			f = l.contradicted(f, why)
		}
		l.add(metrics.Event{Figure: &f}, 1, v)
	}
}
