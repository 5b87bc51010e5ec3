package study

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// This file suggests corrections of misspelt words.

// synonyms are names of other programs for our keys and measures.
var synonyms = map[string]string{
	"lr": "learning_rate", "wd": "weight_decay", "bs": "batch", "batch_size": "batch", "batchsize": "batch", "seqlen": "sequence", "seq_len": "sequence",
	"gpus": "workers", "ngpus": "workers", "ranks": "workers", "procs": "workers", "nproc": "workers", "world_size": "workers", "ntasks": "workers",
	"gpu_per_node": "workers_per_node", "gpus_per_node": "workers_per_node", "ranks_per_node": "workers_per_node", "tasks_per_node": "workers_per_node", "ntasks_per_node": "workers_per_node",
	"cpus_per_task": "cpus_per_worker", "mem": "memory", "timeout": "time", "walltime": "time", "time_limit": "time",
	"runs": "repeats", "reps": "repeats", "repetitions": "repeats", "seeds": "seed", "iterations": "max_steps", "steps": "max_steps", "num_steps": "max_steps",
	"dataset": "path", "data_set": "path", "data_dir": "path", "data_path": "path", "dir": "path", "folder": "path", "root": "path", "dtype": "precision", "network": "model", "cmd": "run", "regex": "pattern", "workdir": "directory", "cwd": "directory", "env": "environment",
	"rps": "requests_per_second", "qps": "requests_per_second", "tps": "tokens_per_second", "tok_per_s": "tokens_per_second", "tok_per_sec": "tokens_per_second", "tok/s": "tokens_per_second", "tokens/s": "tokens_per_second", "img/s": "throughput", "samples/s": "throughput", "req/s": "requests_per_second", "requests/s": "requests_per_second", "img_per_sec": "throughput", "images_per_second": "throughput", "samples_per_second": "throughput",
	"accuracy": "final_accuracy", "acc": "final_accuracy", "val_acc": "final_accuracy", "p50": "latency_p50 step_p50", "p95": "latency_p95 step_p95", "p99": "latency_p99 step_p99",
	"latency": "latency_p50 latency_p95", "duration": "train_seconds run_seconds", "step_time": "step_p50", "energy": "joules_per_sample", "power": "watts",
	"gpu_util": "utilisation", "gpu_utilization": "utilisation", "gpu_utilisation": "utilisation", "utilization": "utilisation", "cpu_util": "cpu_share", "cpu_utilization": "cpu_share",
}

// NearWords returns up to three valid words that word probably means: our names for it,
// then similar words, most similar first. It ignores leading dashes of valid words.
func NearWords(word string, valid []string) []string {
	type scored struct {
		name  string
		score float64
	}
	var list []scored
	if len(word) > 100 { // too long for a typing error, and the time to compare it grows with the square of its length
		return nil
	}
	for _, name := range valid {
		if score := similarity(word, strings.TrimLeft(name, "-")); score > 0 {
			list = append(list, scored{name, score})
		}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	var names []string
	for ours := range strings.FieldsSeq(synonyms[strings.ToLower(word)]) {
		if slices.Contains(valid, ours) {
			names = append(names, ours)
		}
	}
	if dot := strings.LastIndexByte(word, '.'); dot >= 0 { // a path with another program's name for a key
		for ours := range strings.FieldsSeq(synonyms[strings.ToLower(word[dot+1:])]) {
			for _, name := range valid {
				if strings.HasSuffix(name, "."+ours) {
					names = append(names, name)
				}
			}
		}
	}
	for _, s := range list {
		if len(names) < 3 && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// similarity returns the Jaro-Winkler similarity of a word and a valid one; 0 if it is
// unlikely that the valid one is meant. Long words that share a few letters in order are
// similar, too, so the number of edits or a common beginning decides.
func similarity(word, valid string) float64 {
	score := smetrics.JaroWinkler(word, valid, 0.7, 4)
	same := 0
	for same < min(len(word), len(valid)) && word[same] == valid[same] {
		same++
	}
	begins := same >= 3 && 4*same >= 3*min(len(word), len(valid))
	edits := smetrics.WagnerFischer(word, valid, 1, 1, 1)
	if score >= 0.9 || score >= 0.75 && (begins || edits <= max(2, len(word)/3)) {
		return score
	}
	return 0
}

// SpellingHint returns "Did you mean X?", or "" if no valid word is similar.
func SpellingHint(word string, valid []string) string {
	near := NearWords(word, valid)
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}
