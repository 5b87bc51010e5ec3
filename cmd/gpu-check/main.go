// Command gpu-check checks everything that touches a GPU and writes the report:
// what `make gpu-check` starts, in the repository. On a machine without a GPU it
// says so and fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Log: stderr}
	flags := flag.NewFlagSet("gpu-check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Worker, "worker", "bin/scalebench-worker-gpu", "the worker's GPU variant")
	flags.StringVar(&o.Scalebench, "scalebench", "bin/scalebench", "scalebench, next to an ordinary worker")
	flags.StringVar(&o.Python, "python", "python3", "interpreter with PyTorch for CUDA")
	flags.StringVar(&o.Commit, "commit", "", "commit that the programs were built from")
	flags.BoolVar(&o.Double, "double", false, "check the check itself, with the test double; the report goes to standard output")
	flags.BoolVar(&o.NoStudy, "no-study", false, "leave out PyTorch and the study; the report goes to standard output")
	flags.BoolVar(&o.Perturb, "perturb", false, "flip a bit of one result: the check must fail")
	docs := flags.String("docs", "docs", "folder of the report")
	record := flags.String("record", "launcher/gpucheck/record.json", "record that the programs are built with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is one argument too many", flags.Arg(0))
	}
	if o.Commit == "" {
		return errors.New("-commit is not given: the report has to name what was checked")
	}
	programs := []*string{&o.Worker, &o.Scalebench}
	if strings.ContainsRune(o.Python, filepath.Separator) { // else it is looked for in PATH
		programs = append(programs, &o.Python)
	}
	for _, program := range programs {
		path, err := filepath.Abs(*program)
		if err != nil {
			return err
		}
		*program = path
	}
	report, err := runCheck(ctx, o)
	if err != nil {
		return err
	}
	if err := report.failed(); err != nil {
		_, unwritten := io.WriteString(stdout, report.markdown())
		return errors.Join(err, unwritten)
	}
	if report.Double || report.Part {
		_, err := io.WriteString(stdout, report.markdown())
		return err
	}
	text, err := report.json()
	if err != nil {
		return err
	}
	page := filepath.Join(*docs, "gpu-check.md")
	if err := errors.Join(os.WriteFile(page, []byte(report.markdown()), 0o644), os.WriteFile(*record, text, 0o644)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "passed; commit %s and %s, and correct the sentences in the documents that go test ./launcher/gpucheck names\n", page, *record)
	return nil
}
