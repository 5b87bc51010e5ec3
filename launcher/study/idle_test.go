package study

import (
	"strings"
	"testing"
)

// A key that affects no point is reported where it is set; a key that affects some point is
// accepted. The expectations follow the trainers in launcher/native/train and
// launcher/framework/programs.
func TestIgnoredKeys(t *testing.T) {
	const file = "[study]\nname = \"s\"\n[workload]\nmodel = \"cnn\"\nepochs = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1, 2]\n"
	line := "the command line: "
	for words, want := range map[string]string{
		"momentum=0.8":                                "",
		"optimizer=adam momentum=0.8":                 line + "workload.momentum: would be ignored: optimizer = \"adam\" does not use it (\"sgd\" does)",
		"optimizer=adamw momentum=0.9":                line + "workload.momentum: would be ignored", // the default value, but written explicitly
		"optimizer=adam beta1=0.8":                    "",
		"beta1=0.8":                                   line + "workload.beta1: would be ignored: optimizer = \"sgd\" does not use it (\"adam\" and \"adamw\" do)",
		"beta2=0.8":                                   line + "workload.beta2: would be ignored",
		"epsilon=1e-7":                                line + "workload.epsilon: would be ignored",
		"decay_epochs=[1]":                            line + "workload.decay_epochs: would be ignored: decay = \"none\" does not use it (\"step\" does)",
		"decay=cosine decay_factor=0.2":               line + "workload.decay_factor: would be ignored: decay = \"cosine\" does not use it",
		"decay=step decay_epochs=[1]":                 "",
		"scale_learning_rate=none":                    "",
		"reference_batch=64":                          "",
		"scale_learning_rate=none reference_batch=64": line + "workload.reference_batch: would be ignored: scale_learning_rate = \"none\" does not use it",
		"batch_norm=local":                            "",
		"model=mlp batch_norm=local":                  line + "workload.batch_norm: would be ignored: model = \"mlp\" has no batch normalisation",
		"augment=false":                               "",
		"data.path=.":                                 line + "data.path: would be ignored: data.kind = \"synthetic\" is made in memory",
		"data.kind=cifar10 data.path=.":               "",
		// One affected point suffices, but each value of a swept key must have an effect.
		"sweep.optimizer=[\"sgd\",\"adam\"] momentum=0.8 beta1=0.8":   "",
		"sweep.momentum=[0.8,0.9]":                                    "",
		"sweep.momentum=[0.8] optimizer=adam":                         line + "sweep.momentum: would be ignored: optimizer = \"adam\"",
		"sweep.momentum=[0.8,0.9] optimizer=adam":                     line + "sweep.momentum: is swept, but optimizer = \"adam\" does not use it (\"sgd\" does), so every value would run the same",
		"sweep.momentum=[0.8,0.9] sweep.optimizer=[\"sgd\",\"adam\"]": line + "sweep.momentum: is swept, but optimizer = \"adam\"",
		// Consequences of another mistake are not reported.
		"optimizer=lamb momentum=0.8": line + "workload.optimizer: \"lamb\" is not known; valid: \"sgd\", \"adam\", \"adamw\"",
	} {
		got := ""
		s, err := Parse("s.toml", []byte(file), frameworks, strings.Fields(words)...)
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err != nil {
			got = err.Error()
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s:\n%s\nwant\n%s", words, got, want)
		}
	}
	// In a file, with its line.
	s, err := Parse("s.toml", []byte(strings.Replace(file, "epochs = 3", "epochs = 3\nbeta2 = 0.9", 1)), frameworks)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(DefaultSite()); err == nil || !strings.HasPrefix(err.Error(), "s.toml:6: workload.beta2: would be ignored") {
		t.Errorf("in the file: %v", err)
	}
}

// The same applies to a key without a placeholder in a command, unless another framework of
// the sweep uses it. The data folder is in every command's environment, and targets only
// evaluate its output.
func TestKeysWithoutPlaceholder(t *testing.T) {
	const untold = "would be ignored: no placeholder passes it to the command; leave it out"
	for name, test := range map[string]struct{ change, to, want string }{
		"told":            {"[sweep]", "[workload]\nbatch = 64\n[sweep]", ""},
		"targets":         {"[sweep]", "[workload]\ntargets = [0.5]\n[sweep]", ""},
		"folder":          {"[sweep]", "[data]\npath = \".\"\nstage = true\n[sweep]", ""},
		"resources":       {"[sweep]", "[resources]\ncpus_per_worker = 2\ntime = \"1h\"\n[sweep]", ""},
		"another uses it": {"[sweep]\nframework = [\"command\"]", "[workload]\nmodel = \"cnn\"\nepochs = 1\n[data]\nkind = \"synthetic\"\n[sweep]\nframework = [\"native\", \"command\"]", ""},
		"the default":     {"[sweep]", "[workload]\nlearning_rate = 0.1\n[sweep]", "dir/study.toml:7: workload.learning_rate: " + untold},
		"a model":         {"[sweep]", "[workload]\nmodel = \"gpt2\"\n[sweep]", "dir/study.toml:7: workload.model: " + untold},
		"kind of data":    {"[sweep]", "[data]\nkind = \"synthetic\"\n[sweep]", "dir/study.toml:7: data.kind: " + untold},
		"no placeholder":  {"train --batch {batch}\"\n[sweep]", "train\"\n[workload]\nbatch = 64\n[sweep]", "dir/study.toml:7: workload.batch: would be ignored: [command] does not use it; write {batch} where the program takes it, or leave the key out"},
	} {
		got := ""
		if _, err := planCommand(t, strings.Replace(commanded, test.change, test.to, 1)); err != nil {
			got = err.Error()
		}
		if (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
