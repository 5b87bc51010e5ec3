package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// format is the version of the format of gpu-check.json.
const format = 1

// A report is the content of gpu-check.json.
type report struct {
	Format  int    `json:"format"`
	Result  string `json:"result"` // passed, failed or unfinished
	Double  bool   `json:"double,omitempty"`
	Version string `json:"version"` // version of scalebench
	gpucheck.Record
	CuBLAS       string     `json:"cublas"`
	Kernel       string     `json:"kernel"`        // release of the Linux kernel
	DriverModule string     `json:"driver_module"` // the driver's own version, "580.159.04"
	Calls        []call     `json:"calls"`
	Parts        []*outcome `json:"checks"`
}

// A call is one run of gpu-check.
type call struct {
	Began   string  `json:"began"`
	Host    string  `json:"host"`
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit_s,omitempty"` // --time in seconds; 0: no limit
}

// Results of a part.
const (
	pending = "pending"
	passed  = "passed"
	failed  = "failed"
	leftOut = "left out" // does not apply to this machine
	notMade = "not made" // not run, because a part that it needs did not pass
)

// An outcome is the result of one part of the check.
type outcome struct {
	Name     string   `json:"name"`
	Result   string   `json:"result"`
	Why      string   `json:"why,omitempty"` // why it is pending, left out or not made
	Seconds  float64  `json:"seconds"`
	Estimate float64  `json:"estimate_s"`
	Host     string   `json:"host,omitempty"`
	Mark     string   `json:"mark,omitempty"`  // why its timings do not reflect the hardware's speed
	Found    []string `json:"found,omitempty"` // lines of Markdown
	Rates    []rate   `json:"rates,omitempty"`
	Buses    []bus    `json:"collectives,omitempty"`
	Failure  *failure `json:"failure,omitempty"`
}

// done reports whether a later call need not run the part again.
func (o *outcome) done() bool {
	return o.Result == passed || o.Result == failed || o.Result == leftOut
}

// outcome returns the outcome of a part. It adds a pending one if the part is new.
func (r *report) outcome(name string) *outcome {
	i := slices.IndexFunc(r.Parts, func(o *outcome) bool { return o.Name == name })
	if i < 0 {
		r.Parts = append(r.Parts, &outcome{Name: name, Result: pending})
		i = len(r.Parts) - 1
	}
	return r.Parts[i]
}

// count returns the number of parts with the given result.
func (r *report) count(result string) int {
	n := 0
	for _, o := range r.Parts {
		if o.Result == result {
			n++
		}
	}
	return n
}

// judge sets the result of the whole check from the results of its parts.
func (r *report) judge() {
	switch {
	case r.count(failed) > 0:
		r.Result = "failed"
	case r.count(pending)+r.count(notMade) > 0:
		r.Result = "unfinished"
	default:
		r.Result = "passed"
	}
}

func (r *report) exitCode() int {
	return map[string]int{"passed": exitPassed, "failed": exitFailed, "unfinished": exitUnfinished}[r.Result]
}

// summary returns the last line that gpu-check prints: the result, and how many parts passed,
// failed and so on.
func (r *report) summary(path string) string {
	text := fmt.Sprintf("%s: %d passed", r.Result, r.count(passed))
	for _, result := range []string{failed, notMade, pending, leftOut} {
		if n := r.count(result); n > 0 {
			text += fmt.Sprintf(", %d %s", n, result)
		}
	}
	text += "; " + path
	if r.Result == "unfinished" {
		text += "; continue with --resume " + path
	}
	return text
}

// page returns the path of gpu-check.md, which is next to gpu-check.json.
func page(path string) string { return strings.TrimSuffix(path, ".json") + ".md" }

// write writes gpu-check.json and gpu-check.md. It replaces each file in one step.
func (r *report) write(path string) error {
	r.judge()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(sharedfs.Write(path, append(text, '\n'), 0o644), sharedfs.Write(page(path), []byte(r.markdown()), 0o644))
}

// load reads the report of an earlier call, for --resume.
func load(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError(fmt.Sprintf("--resume: %v", err))
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil || r.Format != format {
		return nil, usageError(fmt.Sprintf("--resume %s: not a gpu-check.json of this version (format %d, want %d; %v)", path, r.Format, format, err))
	}
	return &r, nil
}

// keepOld renames the files of an earlier check to old-…, so that a new check does not
// overwrite them.
func keepOld(path string) error {
	for _, from := range []string{path, page(path)} {
		if err := os.Rename(from, filepath.Join(filepath.Dir(from), "old-"+filepath.Base(from))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// record writes the page and the results into a checkout of the source code. Doctor then says
// on which GPU the check passed and which parts have not been run.
func record(r *report, checkout string, stdout io.Writer) error {
	switch {
	case r.Double:
		return errors.New("--record: the results are of the test fakes, not of a GPU")
	case r.count(leftOut) > 0 && r.PyTorch == "":
		return errors.New("--record: the checks with PyTorch were left out; install PyTorch for CUDA and run the check again")
	case strings.HasSuffix(r.Commit, "-dirty") || r.Commit == "":
		return fmt.Errorf("--record: commit %q does not name what was checked; commit first, and build the bundle again", r.Commit)
	}
	r.Open = nil
	for _, o := range r.Parts {
		if !o.done() {
			r.Open = append(r.Open, o.Name)
		}
	}
	text, err := json.MarshalIndent(r.Record, "", "  ")
	if err != nil {
		return err
	}
	page, source := filepath.Join(checkout, "launcher/gpucheck/record.md"), filepath.Join(checkout, "launcher/gpucheck/record.json")
	if err := errors.Join(os.WriteFile(page, []byte(r.markdown()), 0o644), os.WriteFile(source, append(text, '\n'), 0o644)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s; commit %s and %s, and correct the sentences about GPUs in docs/gpu.md\n", r.Result, page, source)
	return err
}

// markdown returns the page. If the test fakes were used, its title says so.
func (r *report) markdown() string {
	var b strings.Builder
	title := "# GPU check"
	if r.Double {
		title = "# DOUBLE, not a GPU"
	}
	if r.Result != "passed" {
		title += ": " + r.Result
	}
	fmt.Fprintf(&b, "%s\n\nWhether the GPU engine computes correctly and fast on a GPU, for users who train with `device = \"gpu\"`; docs/gpu.md explains the checks. %d of %s passed.", title, r.count(passed), number.Count(len(r.Parts), "check"))
	if r.Double {
		b.WriteString(" scalebench's test fakes replaced CUDA's libraries: none of these figures were measured on a GPU.")
	}
	b.WriteString("\n\n| | |\n|---|---|\n")
	for _, row := range [][2]string{{"date", r.Date}, {"version", r.Version}, {"commit", "`" + r.Commit + "`"}, {"host", r.hosts()}, {"GPUs", r.GPUs}, {"driver", r.DriverModule}, {"driver's CUDA", r.Driver},
		{"NCCL", r.NCCL}, {"cuBLAS", r.CuBLAS}, {"PyTorch", r.PyTorch}, {"Linux", r.Kernel}} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], cmp.Or(row[1], "–"))
	}
	b.WriteString(r.results())
	for _, o := range r.Parts {
		if o.Failure != nil {
			fmt.Fprintf(&b, "\n## %s failed\n\n%s", o.Name, o.Failure.markdown())
		}
	}
	b.WriteString(r.speed())
	return b.String() + r.findings()
}

// results returns the table of results. The passed parts of a group, such as "kernels", share a
// row.
func (r *report) results() string {
	var b strings.Builder
	b.WriteString("\n| check | result | took |\n|---|---|---|\n")
	for i := 0; i < len(r.Parts); i++ {
		o := r.Parts[i]
		if o.Result != passed {
			took := "–"
			if o.Result == failed {
				took = fmt.Sprintf("%.1f s", o.Seconds)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Name, o.Result, took)
			continue
		}
		group, name, _ := strings.Cut(o.Name, "/")
		seconds := o.Seconds
		for ; i+1 < len(r.Parts) && r.Parts[i+1].Result == passed; i++ {
			next, part, _ := strings.Cut(r.Parts[i+1].Name, "/")
			if next != group {
				break
			}
			name, seconds = name+", "+part, seconds+r.Parts[i+1].Seconds
		}
		fmt.Fprintf(&b, "| %s: %s | passed | %.1f s |\n", group, name, seconds)
	}
	return b.String()
}

// findings returns what the parts found: first a list of the findings of one line, then a section
// for each of the others. How closely the steps agreed, and timings that do not reflect the
// hardware's speed, are only in the JSON file.
func (r *report) findings() string {
	var list, sections strings.Builder
	for _, o := range r.Parts {
		name, found := o.Name, o.Found
		if strings.HasPrefix(name, "steps/") {
			found = nil
		}
		if o.Mark != "" {
			name += " (" + o.Mark + ")"
			found = slices.DeleteFunc(slices.Clone(found), func(line string) bool { return line == "" || strings.HasPrefix(line, "|") })
		}
		if o.Why != "" {
			found = []string{o.Result + ": " + o.Why}
		}
		switch {
		case len(found) == 0:
		case len(found) == 1:
			fmt.Fprintf(&list, "- %s: %s\n", name, strings.TrimPrefix(found[0], "- "))
		default:
			fmt.Fprintf(&sections, "\n## %s\n\n%s\n", name, strings.Join(found, "\n"))
		}
	}
	if list.Len() == 0 {
		return sections.String()
	}
	return "\n## Findings\n\n" + list.String() + sections.String()
}

// hosts returns a list of the hosts on which the calls ran.
func (r *report) hosts() string {
	var list []string
	for _, c := range r.Calls {
		if !slices.Contains(list, c.Host) {
			list = append(list, c.Host)
		}
	}
	return strings.Join(list, ", ")
}
