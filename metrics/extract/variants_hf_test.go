package extract

import (
	"strings"
	"testing"
)

// The Trainer runs 800 samples in 8 steps of 100, in 40 s: 20 samples/s.
func TestTrainerVariants(t *testing.T) {
	const (
		first = "{'loss': 2.0, 'grad_norm': 1.5, 'learning_rate': 4e-05, 'epoch': 0.5}\n{'loss': 1.5, 'learning_rate': 3e-05, 'epoch': 1.0}\n"
		last  = "{'loss': 1.0, 'learning_rate': 1e-05, 'epoch': 1.5}\n{'loss': 0.5, 'learning_rate': 0.0, 'epoch': 2.0}\n"
		end   = "{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 0.2, 'train_loss': 1.25, 'epoch': 2.0}\n"
		eval  = "{'eval_loss': 1.25, 'eval_accuracy': 0.75, 'eval_runtime': 2.0, 'eval_samples_per_second': 400.0, 'eval_steps_per_second': 4.0, 'epoch': 1.0}\n"
	)
	rate, stated := []string{" throughput 20 samples/s ", " train_seconds 40 s "}, []string{" stated_throughput 20 samples/s "}
	runVariants(t, "hf-trainer", []variant{
		{name: "as it is", text: first + eval + last + end, want: rate, says: "losses stand at epochs, not at steps"},
		{name: "one step", text: first[:74] + "\n" + strings.Replace(end, "2.0}", "0.5}", 1), says: "losses stand at epochs, not at steps"},
		{name: "losses that are no numbers", text: strings.Replace(first, "'loss': 1.5", "'loss': nan", 1) + last + end, says: "the loss is no finite number in 1 line, from line 2 on, and is one again later"},
		{name: "before 4.6 the rate is of steps", text: first + last + "{'train_runtime': 40.0, 'train_samples_per_second': 0.2, 'epoch': 2.0}\n",
			never: []string{" throughput ", " end_to_end "}, says: "steps"},
		{name: "stopped early, with the header", text: "***** Running training *****\n  Num examples = 400\n  Num Epochs = 2\n  Total optimization steps = 8\n" + first + "{'train_runtime': 20.0, 'train_samples_per_second': 40.0, 'train_steps_per_second': 0.4, 'train_loss': 1.75, 'epoch': 1.0}\n",
			want: []string{" stated_throughput 40 samples/s ", " train_seconds 20 s "}, never: []string{" throughput "}, says: "it ended at epoch 1 of 2"},
		{name: "an evaluation before the training", text: "***** Running Evaluation *****\n  Num examples = 100\n  Batch size = 8\n***** Running training *****\n  Num examples = 400\n  Num Epochs = 2\n" + first + "***** Running Evaluation *****\n  Num examples = 100\n" + last + end, want: rate},
		{name: "stopped early, by Unsloth's header", text: "   \\\\   /|    Num examples = 400 | Num Epochs = 2 | Total steps = 8\n" + first + "{'train_runtime': 20.0, 'train_samples_per_second': 40.0, 'train_steps_per_second': 0.4, 'train_loss': 1.75, 'epoch': 1.0}\n",
			want: []string{" stated_throughput 40 samples/s "}, never: []string{" throughput "}, says: "it ended at epoch 1 of 2"},
		{name: "so many steps of a stream", text: "***** Running training *****\n  Num examples = 800\n  Num Epochs = 9,223,372,036,854,775,807\n  Total optimization steps = 8\n{'loss': 2.0, 'epoch': 0.5}\n{'loss': 1.5, 'epoch': 1.0}\n{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 0.2, 'train_loss': 1.75, 'epoch': 1.0}\n", want: rate},
		{name: "so many steps, less than an epoch", text: "***** Running training *****\n  Num examples = 8,000\n  Num Epochs = 1\n  Total optimization steps = 8\n{'loss': 2.0, 'epoch': 0.05}\n{'loss': 1.5, 'epoch': 0.1}\n{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 0.2, 'train_loss': 1.75, 'epoch': 0.1}\n", want: rate},
		{name: "stopped early, with the bar", text: first + " 50%|█████     | 4/8 [00:20<00:20,  5.00s/it]\r" + "{'train_runtime': 20.0, 'train_samples_per_second': 40.0, 'train_steps_per_second': 0.4, 'train_loss': 1.75, 'epoch': 1.0}\n",
			want: []string{" stated_throughput 40 samples/s "}, never: []string{" throughput "}, says: "it ended at epoch 1 of 2"},
		{name: "a bar from the middle", text: first + " 25%|██▌       | 2/8 [00:10<00:30,  5.00s/it]\n" + "{'loss': 1.0, 'epoch': 1.0}\n" + last + end, want: rate},
		{name: "to the end, with the bar", text: first + last + "100%|██████████| 8/8 [00:40<00:00,  5.00s/it]\r" + "                         \r" + end, want: rate},
		{name: "an evaluation's bar before the end", text: first + last + "100%|██████████| 8/8 [00:40<00:00,  5.00s/it]\n 50%|█████     | 4/8 [00:01<00:01,  5.00it/s]\r" + strings.Replace(eval, "1.0}", "2.0}", 1) + "100%|██████████| 8/8 [00:40<00:00,  5.00s/it]\r" + end, want: rate},
		{name: "numbers in quotes", text: "{'loss': '2.0', 'epoch': '0.5'}\n{'loss': '1.0', 'epoch': '1.0'}\n{'train_runtime': '40.0', 'train_samples_per_second': '20.0', 'train_steps_per_second': '0.2', 'train_loss': '1.5', 'epoch': '1.0'}\n", want: rate},
		{name: "a bar behind the summary", text: first + last + "{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 0.2, 'train_loss': 1.25, 'epoch': 2.0}100%|██████████| 8/8 [00:40<00:00,  5.00s/it]\n", want: rate},
		{name: "logged by Python's logging", text: "2024-05-01 10:00:00,123 - INFO - " + first + "2024-05-01 10:00:40,123 - INFO - " + end, want: rate},
		{name: "under kubectl", text: "2024-05-01T10:00:00.123456789Z " + first[:70] + "\n2024-05-01T10:00:40.123Z " + end, want: rate},
		{name: "under journald", text: "May 01 10:00:40 n01 python[123]: " + end, want: rate},
		{name: "under Ray", text: "(RayTrainWorker pid=123, ip=10.0.0.1) " + end, want: rate},
		{name: "two copies that are not one run", text: "0: " + end + "0: " + end, refused: "a second train_runtime"},
		{name: "two ranks with prefixes", text: "0: " + end + "1: " + end, want: rate, says: "several ranks write the same"},
		{name: "ranks that state different rates", text: "0: " + end + "1: " + strings.Replace(end, "20.0", "35.0", 1), refused: "separate trainings"},
		{name: "ranks that state about the same", text: "0: " + end + "1: " + strings.Replace(end, "20.0", "20.1", 1), want: rate, says: "several ranks write the same"},
		{name: "bars under a prefix", text: "0:  50%|█████     | 4/8 [00:20<00:20,  5.00s/it]\r{'loss': 1.5, 'epoch': 1.0}\n0: 100%|██████████| 8/8 [00:40<00:00,  5.00s/it]\n0: " + end, want: rate},
		{name: "resumed", text: last + end, want: stated, never: []string{" throughput "}, says: "resumed"},
		{name: "resumed, and it says so", text: "  Continuing training from epoch 1\n" + last + end, want: stated, never: []string{" throughput "}},
		{name: "colours", text: "\x1b[32m" + first + "\x1b[0m\x1b[1;32m" + "{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 0.2, 'train_loss': 1.75, 'epoch': 1.0}\x1b[0m\n", want: rate},
		{name: "cut off before its summary", text: first + last, never: []string{" throughput "}},
		{name: "cut off within its summary", text: first + last + end[:60], never: []string{" throughput "}, says: "cut off"},
		{name: "a rate of 0", text: first + last + "{'train_runtime': 40.0, 'train_samples_per_second': 0.0, 'train_steps_per_second': 0.0, 'train_loss': 1.25, 'epoch': 2.0}\n", never: []string{" throughput "}, says: "less than it prints"},
		{name: "rates that are not of one batch", text: first + last + "{'train_runtime': 40.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 40.0, 'train_loss': 1.25, 'epoch': 2.0}\n", never: []string{" throughput "}, want: stated},
	})
	state := func(head, body string) string { return `{` + head + `"log_history": [` + body + `]}` }
	const losses = `{"loss": 2.0, "epoch": 0.5, "step": 2},{"loss": 1.5, "epoch": 1.0, "step": 4},`
	runVariants(t, "hf-trainer-state", []variant{
		{name: "state as it is", text: state(`"epoch": 1.0, "global_step": 4, "max_steps": 4, "num_train_epochs": 1, `, losses+`{"epoch": 1.0, "step": 4, "train_runtime": 40.0, "train_samples_per_second": 20.0, "train_steps_per_second": 0.1, "train_loss": 1.75}`), want: rate},
		{name: "state stopped early", text: state(`"epoch": 1.0, "global_step": 4, "max_steps": 8, "num_train_epochs": 2, `, losses+`{"epoch": 1.0, "step": 4, "train_runtime": 20.0, "train_samples_per_second": 40.0, "train_steps_per_second": 0.4, "train_loss": 1.75}`),
			want: []string{" stated_throughput 40 samples/s ", " train_seconds 20 s "}, never: []string{" throughput "}, says: "it ended at epoch 1 of 2"},
		{name: "state of before 4.6", text: state(``, losses+`{"epoch": 1.0, "step": 4, "train_runtime": 40.0, "train_samples_per_second": 0.1}`), never: []string{" throughput "}, says: "steps"},
		{name: "state of a checkpoint without an end", text: state(`"epoch": 1.0, "global_step": 4, "max_steps": 8, `, `{"eval_accuracy": 0.75, "epoch": 1.0, "step": 4}`), want: []string{"accuracy 0.75"}, never: []string{"throughput"}},
	})
}
