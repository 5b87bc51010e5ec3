package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

func (Train) kind() kind { return train }

var train = kind{
	trains: true, onGPUs: true,
	bounds: []string{"workload.epochs", "workload.max_steps", "workload.max_minutes"},
	data:   true,
	defaults: Workload{Kind: "train", Train: Train{
		Precision:         "fp32",
		Batch:             128,
		Scaling:           "weak",
		LearningRate:      0.1,
		ReferenceBatch:    128,
		ScaleLearningRate: "linear",
		WarmupEpochs:      5,
		Decay:             "none",
		DecayFactor:       0.1,
		Optimizer:         "sgd",
		Momentum:          0.9,
		Beta1:             0.9,
		Beta2:             0.999,
		Epsilon:           1e-8,
		WeightDecay:       1e-4,
		BatchNorm:         "local",
		Augment:           true,
		DecayEpochs:       []int{},
		Targets:           []measure.Target{},
	}},
	rules: map[string]rule{
		"workload.model":               modelNamed,
		"workload.precision":           among("fp32", "tf32", "fp16", "bf16"),
		"workload.batch":               within(1, 1<<24),
		"workload.scaling":             among("weak", "strong"),
		"workload.learning_rate":       above(0),
		"workload.reference_batch":     within(1, 1<<24),
		"workload.scale_learning_rate": among("linear", "sqrt", "none"),
		"workload.warmup_epochs":       atLeast(0),
		"workload.decay":               among("none", "step", "cosine"),
		"workload.decay_epochs":        ascending,
		"workload.decay_factor":        share,
		"workload.optimizer":           among("sgd", "adam", "adamw"),
		"workload.momentum":            fraction,
		"workload.beta1":               fraction,
		"workload.beta2":               fraction,
		"workload.epsilon":             above(0),
		"workload.weight_decay":        atLeast(0),
		"workload.batch_norm":          among("local", "sync"),
		"workload.sequence":            within(0, 1<<24),
		"workload.micro_batch":         within(0, 1<<24),
		"workload.zero":                within(0, 3),
		"workload.shard":               within(0, maxWorkers),
		"workload.mfu":                 convention,
		"workload.peak_tflops":         atLeast(0),
		"workload.sample":              among(append([]string{""}, measure.Samples()...)...),
		"workload.recompute":           among(append([]string{""}, measure.Recomputations()...)...),
		"workload.targets":             targets,
		"workload.epochs":              within(0, 1<<20),
		"workload.max_steps":           within(0, 1<<40),
		"workload.max_minutes":         atLeast(0),
		"workload.until":               among("", "targets"),
	},
	follows: map[string][]string{
		"workload.batch":        {"workload.scaling", "workers"},
		"workload.batch_norm":   {"resources.device"},
		"workload.decay_epochs": {"workload.decay"},
		"workload.sequence":     {"workload.model", "data.kind"},
		"workload.micro_batch":  {"workload.batch", "workload.scaling", "workers", "workload.model", "workload.accumulate"},
		"workload.accumulate":   {"workload.batch", "workload.scaling", "workers", "workload.micro_batch"},
		"workload.shard":        {"workers", "workload.zero"},
	},
	plausible: map[string]any{
		"workload.epochs": 1, "workload.max_steps": 1, "workload.max_minutes": 1.0,
		"workload.targets": []measure.Target{measure.Accuracy(0.5)}, "workload.decay_epochs": []int{1},
	},
	brought: []string{"workload.model", "workload.epochs"},
	expand:  expandTrain,
}

func expandTrain(p *Point) map[string]string {
	wrong := map[string]string{}
	w := &p.Workload.Train
	expandBatch(p, wrong)
	p.LearningRate = w.PeakLearningRate(p.GlobalBatch)
	expandDecoder(p, wrong)
	if why := p.otherSample(); why != "" && wrong["workload.model"] == "" {
		wrong["workload.sample"] = why
	}
	if c, err := measure.FindConvention(w.MFU); w.MFU != "" && err == nil {
		if p.Architecture.Layers == 0 {
			wrong["workload.mfu"] = fmt.Sprintf("the FLOPs of model = %q are not known; name a language model (%s), with its sizes where they are others: \"llama3-8b layers=16\"", w.Model, strings.Join(DecoderNames(), ", "))
		} else if _, err := c.FLOPs(p.Architecture); err != nil {
			wrong["workload.mfu"] = err.Error()
		} else if _, err := c.HardwareFLOPs(p.Architecture, w.Recompute); w.Recompute != "" && err != nil {
			wrong["workload.recompute"] = err.Error()
		}
	}
	if w.PeakTFLOPS > 0 && w.MFU == "" {
		wrong["workload.peak_tflops"] = "an MFU is made of it; set mfu = \"palm\", or leave it out"
	}
	if w.Recompute != "" && w.MFU == "" {
		wrong["workload.recompute"] = "an HFU is made of it; set mfu = \"palm\", or leave it out"
	}
	if w.Epochs == 0 && w.MaxSteps == 0 && w.MaxMinutes == 0 {
		wrong["workload.epochs"] = "the training has no end; set epochs, max_steps or max_minutes (the first one reached ends it)"
	}
	if w.Until == "targets" && len(w.Targets) == 0 {
		wrong["workload.until"] = "\"targets\" needs workload.targets, a list such as [0.75] or [{ loss = 2.0 }]"
	}
	for _, t := range w.Targets {
		if w.Until == "targets" && !t.JudgesEvaluations() {
			wrong["workload.until"] = fmt.Sprintf("\"targets\" ends a run at an accuracy, loss or perplexity, not at %s; leave until out, and set epochs or max_steps (the time to the target is computed afterwards)", t.Of)
		}
	}
	if w.Decay == "step" && len(w.DecayEpochs) == 0 {
		wrong["workload.decay_epochs"] = "decay = \"step\" needs the epochs after which the learning rate drops to decay_factor of what it was, like [80, 120]"
	}
	return wrong
}

// PeakLearningRate is the learning rate after the warm-up for a global batch:
// linear scaling multiplies it by globalBatch/ReferenceBatch (Goyal et al.
// 2017, arXiv:1706.02677), sqrt by the square root of that.
func (t Train) PeakLearningRate(globalBatch int) float64 {
	ratio := float64(globalBatch) / float64(t.ReferenceBatch)
	switch t.ScaleLearningRate {
	case "linear":
		return t.LearningRate * ratio
	case "sqrt":
		return t.LearningRate * math.Sqrt(ratio)
	}
	return t.LearningRate
}

// otherSample returns why the point's samples cannot be what workload.sample declares; ""
// if they can be. If a user's function or program determines the samples, it always
// returns "".
func (p *Point) otherSample() string {
	w := p.Workload.Train
	_, ownModel := ParseFunction(w.Model)
	_, ownData := ParseFunction(p.Data.Kind)
	sequences := p.Architecture.Layers > 0 || p.Data.Sequences()
	ours := p.Command.Folder == "" && !ownModel && !ownData
	switch {
	case w.Sample == measure.Image && p.Architecture.Layers > 0:
		return fmt.Sprintf("model = %q is a language model, and an image is no sample of it; set sample = \"sequence\"", w.Model)
	case w.Sample == measure.Image && w.Sequence > 0:
		return "an image has no tokens; leave sequence out, or set sample = \"sequence\""
	case w.Sample == "" || !ours:
		return ""
	case sequences && w.Sample != measure.Sequence:
		return "our own trainers count sequences of language models, and also tokens/s; set sample = \"sequence\", or leave it out"
	case !sequences && w.Sample != measure.Image:
		return fmt.Sprintf("model = %q is trained on images; set sample = \"image\", or leave it out", w.Model)
	}
	return ""
}

// sampleTokens returns the number of tokens per sample according to the study; 0 if it is
// unknown, or if samples do not consist of tokens.
func (p *Point) sampleTokens() int {
	w := p.Workload.Train
	switch {
	case !p.Workload.Trains():
		return 0
	case w.Sample == measure.Token:
		return 1
	case w.Sample == measure.Sequence:
		return cmp.Or(w.Sequence, p.Architecture.Sequence)
	}
	return 0
}

// recomputes returns which activations the point's program recomputes in the backward
// pass, in the words of package mfu; "" if that is unknown. With checkpointing,
// scalebench's own trainers recompute every layer.
func (p *Point) recomputes() string {
	t := p.Workload.Train
	told := slices.Contains(p.Command.Uses, "workload.checkpointing")
	switch {
	case p.Command.Folder != "" && !told:
		return t.Recompute
	case !t.Checkpointing:
		return measure.None
	case told:
		return cmp.Or(t.Recompute, measure.Full)
	}
	return measure.Full
}

func convention(v any) string {
	if v.(string) == "" {
		return ""
	}
	if _, err := measure.FindConvention(v.(string)); err != nil {
		return err.Error()
	}
	return ""
}

func modelNamed(v any) string {
	if v.(string) == "" {
		return `missing; name a model, like "resnet20", or a function of your own, like "my_model.py:build"`
	}
	return ""
}
