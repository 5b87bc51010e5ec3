package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

func dataCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:        "data",
		Usage:       "make training data",
		Subcommands: []*cli.Command{dataSynthCommand(s), dataTextCommand(s), dataTokensCommand(s)},
	}
}

type dataSynthOptions struct {
	dir         string
	train, test int
	seed        int64
	difficulty  float64
}

func dataSynthCommand(s *session) *cli.Command {
	var o dataSynthOptions
	return &cli.Command{
		Name:      "synth",
		Usage:     "write a learnable data set in CIFAR-10's binary format",
		ArgsUsage: "DIR",
		Description: "The images are noisy patterns in ten classes, made from the seed: the same\n" +
			"options always give the same files. Existing files are never overwritten.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "train", Usage: "`N` training images, spread over five files", Value: dataset.DefaultTrainSamples, Destination: &o.train},
			&cli.IntFlag{Name: "test", Usage: "`N` test images", Value: dataset.DefaultTestSamples, Destination: &o.test},
			&cli.Int64Flag{Name: "seed", Usage: "seed `S` of the patterns and the samples", Value: 1, Destination: &o.seed},
			&cli.Float64Flag{Name: "difficulty", Usage: "`D` from 0 (easy) to below 1: strength of a wrong class's pattern, and of the noise", Value: dataset.DefaultDifficulty, Destination: &o.difficulty},
		},
		Action: func(c *cli.Context) error {
			o.dir = c.Args().First()
			return runDataSynth(s, o)
		},
	}
}

func runDataSynth(s *session, o dataSynthOptions) error {
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{{"--train", o.train, len(dataset.TrainFiles)}, {"--test", o.test, 1}} {
		if n.value < n.least {
			return usagef("%s %d is too few; want %d or more", n.flag, n.value, n.least)
		}
	}
	if !(o.difficulty >= 0 && o.difficulty < 1) {
		return usagef("--difficulty %g is out of range; want from 0 to below 1", o.difficulty)
	}
	if err := dataset.Synthesize(o.dir, dataset.SyntheticOptions{
		TrainSamples: o.train, TestSamples: o.test, Seed: o.seed, Difficulty: &o.difficulty,
	}); err != nil {
		return notMade(err)
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "file"},
		{Key: "samples"},
		{Key: "bytes", Show: number.Bytes},
	}}
	for _, name := range append(dataset.TrainFiles[:len(dataset.TrainFiles):len(dataset.TrainFiles)], dataset.TestFile) {
		path := filepath.Join(o.dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("written, but not found again: %w", err)
		}
		t.Add(path, info.Size()/dataset.RecordBytes, info.Size())
	}
	return s.print(t)
}

// notMade returns why data were not created. Errors other than the file system's concern
// the options, or existing files.
func notMade(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return &usageError{err: err}
}

type dataTextOptions struct {
	dir         string
	train, test int
	seed        int64
}

func dataTextCommand(s *session) *cli.Command {
	var o dataTextOptions
	return &cli.Command{
		Name:      "text",
		Usage:     "write a learnable text for language models",
		ArgsUsage: "DIR",
		Description: "The text is short sentences, made from the seed: the same options always give the\n" +
			"same files, train.txt and test.txt. No model can go below " + fmt.Sprintf("%.2f", dataset.Entropy) + " nats a byte: the\n" +
			"text is random to that degree. Existing files are never overwritten.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "train", Usage: "`N` bytes to learn from", Value: dataset.DefaultTrainBytes, Destination: &o.train},
			&cli.IntFlag{Name: "test", Usage: "`N` bytes to test with", Value: dataset.DefaultTestBytes, Destination: &o.test},
			&cli.Int64Flag{Name: "seed", Usage: "seed `S` of the sentences", Value: 1, Destination: &o.seed},
		},
		Action: func(c *cli.Context) error {
			o.dir = c.Args().First()
			return runDataText(s, o)
		},
	}
}

func runDataText(s *session, o dataTextOptions) error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"--train", o.train}, {"--test", o.test}} {
		if n.value < 1 {
			return usagef("%s %d is too few; want 1 or more", n.flag, n.value)
		}
	}
	if err := dataset.WriteText(o.dir, dataset.TextOptions{TrainBytes: o.train, TestBytes: o.test, Seed: o.seed}); err != nil {
		return notMade(err)
	}
	t := &table.Table{Columns: []table.Column{{Key: "file"}, {Key: "bytes", Show: number.Bytes}}}
	for _, f := range []struct {
		name  string
		bytes int
	}{{dataset.TrainText, o.train + 1}, {dataset.TestText, o.test + 1}} {
		t.Add(filepath.Join(o.dir, f.name), int64(f.bytes))
	}
	return s.print(t)
}

type dataTokensOptions struct {
	from, dir, tokenizer, python string
}

func dataTokensCommand(s *session) *cli.Command {
	var o dataTokensOptions
	return &cli.Command{
		Name:      "tokens",
		Usage:     "encode a text with the tokenizer of a language model",
		ArgsUsage: "TEXT DIR",
		Description: "TEXT is a folder with train.txt and test.txt. Their tokens are written to DIR, for\n" +
			"kind = \"tokens\" in [data]. Python's package tokenizers encodes them. Existing files\n" +
			"are never overwritten.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tokenizer", Usage: "tokenizer.json `FILE` of Hugging Face's tokenizers", Required: true, Destination: &o.tokenizer},
			&cli.StringFlag{Name: "python", Usage: "`INTERPRETER` that has the package tokenizers", Value: trust.DefaultPython, Destination: &o.python},
		},
		Action: func(c *cli.Context) error {
			o.from, o.dir = c.Args().Get(0), c.Args().Get(1)
			return runDataTokens(c.Context, s, o)
		},
	}
}

func runDataTokens(ctx context.Context, s *session, o dataTokensOptions) error {
	files, vocabulary, err := dataset.WriteTokens(ctx, o.dir, o.from, o.tokenizer, o.python)
	if err != nil {
		return notMade(err)
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "file"},
		{Key: "tokens"},
		{Key: "bytes", Show: number.Bytes},
		{Key: "text_bytes_per_token", Head: "bytes of text a token"},
	}, Notes: []string{fmt.Sprintf("The vocabulary has %d tokens: a model for it has vocabulary=%[1]d or more.", vocabulary)}}
	for _, f := range files {
		each := any(nil)
		if f.Tokens > 0 {
			each = float64(f.Text) / float64(f.Tokens)
		}
		t.Add(f.Path, f.Tokens, f.Bytes, each)
	}
	return s.print(t)
}
