package slurmtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/slurm"
)

// The fake commands replace sbatch, squeue, sacct, scontrol and scancel in tests of the command line that need
// Slurm's answers but no jobs. They have no scheduler. Tests control the answers through files in the folder that
// the environment variable SCALEBENCH_FAKE_SLURM names:
//
//	jobs      written by sbatch, one line per job or array task: ID, submit time,
//	          name, partition
//	log       every call, one per line
//	states    NAME-PATTERN STATE [EXIT [REASON…]], the last match counts; without
//	          one a job is PENDING for Priority
//	partitions  names, one per line; without it scontrol reports no partitions
//	steps     ID NAME of the running job steps
//	energy    PLUGIN, then lines NAME-PATTERN JOULES: the recorded energy of the steps
//	          named like a run; PLUGIN is the whole cluster's
//	refuse    if it exists: sbatch prints its text and exits 1
//	down      if it exists: no command reaches the controller
//	no-accounting  if it exists: sacct has no database
//	garble    a seed, if it exists: answers are truncated, have odd fields and lines
//	          that are not about jobs, and one command in ten fails without a reason
//
// Answers have the format of the real ones (slurm/testdata/transcripts); a test compares them.

// FakeVariable is the environment variable that names the folder of the fake's files.
const FakeVariable = "SCALEBENCH_FAKE_SLURM"

// FakeCommands lists the names of the fake commands.
var FakeCommands = []string{"sbatch", "squeue", "sacct", "scontrol", "scancel"}

// FakeMain runs one of FakeCommands with this process's arguments and environment, and returns the exit status.
func FakeMain(name string) int {
	return run(os.Getenv(FakeVariable), name, os.Args[1:], os.Stdout, os.Stderr)
}

func run(dir, name string, args []string, stdout, stderr io.Writer) (status int) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		fmt.Fprintf(stderr, "fake %s: %s is %q, not a folder\n", name, FakeVariable, dir)
		return 2
	}
	f := &fake{dir, stdout, stderr}
	if err := f.note("log", name+" "+strings.Join(args, " ")); err != nil {
		return f.fail(name, err)
	}
	if f.has("down") {
		word := map[string]string{"sbatch": "sbatch: error: Batch job submission failed: ", "squeue": "slurm_load_jobs error: ",
			"scontrol": "slurm_load_jobs error: ", "scancel": "scancel: error: Kill job error on job id 0: "}[name]
		if name != "sacct" { // sacct asks the database instead
			fmt.Fprintln(stderr, word+"Unable to contact slurm controller (connect failure)")
			return 1
		}
	}
	if f.has("garble") && name != "sbatch" {
		finish, err := f.garble()
		if err != nil {
			return f.fail(name, err)
		}
		defer func() { status = finish(status) }()
	}
	var err error
	switch name {
	case "sbatch":
		return f.sbatch(args)
	case "squeue":
		err = f.squeue(args)
	case "sacct":
		if f.has("no-accounting") {
			fmt.Fprintln(stderr, "Slurm accounting storage is disabled")
			return 1
		}
		err = f.sacct(args)
	case "scontrol":
		return f.scontrol(args)
	case "scancel":
		ids := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--signal=") })
		err = f.note("cancelled", strings.Join(ids, "\n"))
	default:
		err = fmt.Errorf("no fake for it")
	}
	if err != nil {
		return f.fail(name, err)
	}
	return 0
}

type fake struct {
	dir            string
	stdout, stderr io.Writer
}

func (f *fake) fail(name string, err error) int {
	fmt.Fprintf(f.stderr, "fake %s: %v\n", name, err)
	return 2
}

func (f *fake) has(file string) bool {
	_, err := os.Stat(filepath.Join(f.dir, file))
	return err == nil
}

// note appends a line to a file.
func (f *fake) note(file, line string) error {
	w, err := os.OpenFile(filepath.Join(f.dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, line)
	if e := w.Close(); err == nil {
		err = e
	}
	return err
}

func (f *fake) lines(file string) []string {
	b, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func (f *fake) sbatch(args []string) int {
	if b, err := os.ReadFile(filepath.Join(f.dir, "refuse")); err == nil {
		f.stderr.Write(b)
		return 1
	}
	if len(args) == 0 || !slices.Contains(args, "--parsable") {
		return f.fail("sbatch", fmt.Errorf("only sbatch --parsable … SCRIPT is known, not %q", args))
	}
	script, err := os.Open(args[len(args)-1])
	if err != nil {
		fmt.Fprintf(f.stderr, "sbatch: error: Unable to open file %s\n", args[len(args)-1])
		return 1
	}
	defer script.Close()
	name, partition, tasks := filepath.Base(script.Name()), "main", 0
	for s := bufio.NewScanner(script); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "#SBATCH --job-name="); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(s.Text(), "#SBATCH --partition="); ok {
			partition = v
		}
		if v, ok := strings.CutPrefix(s.Text(), "#SBATCH --array=0-"); ok {
			v, _, _ = strings.Cut(v, "%")
			last, err := strconv.Atoi(v)
			if err != nil {
				return f.fail("sbatch", fmt.Errorf("--array: %w", err))
			}
			tasks = last + 1
		}
	}
	lock, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return f.fail("sbatch", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return f.fail("sbatch", err)
	}
	id := 1
	for _, line := range f.lines("jobs") {
		if last, err := strconv.Atoi(line[:strings.IndexAny(line, "_ ")]); err == nil {
			id = last + 1
		}
	}
	ids := []string{strconv.Itoa(id)}
	if tasks > 0 {
		ids = nil
	}
	for task := range tasks {
		ids = append(ids, fmt.Sprintf("%d_%d", id, task))
	}
	for _, each := range ids {
		if err := f.note("jobs", fmt.Sprintf("%s %d %s %s", each, time.Now().Unix(), name, partition)); err != nil {
			return f.fail("sbatch", err)
		}
	}
	fmt.Fprintln(f.stdout, id)
	return 0
}

// A job holds the fields of a job by sacct's names.
type job map[string]string

// jobs lists the jobs that the options --jobs= or --name= select, or else all.
func (f *fake) jobs(args []string) ([]job, error) {
	var list []job
	for _, line := range f.lines("jobs") {
		v := strings.Fields(line)
		if len(v) != 4 {
			return nil, fmt.Errorf("jobs: %q is not ID, submit time, name, partition", line)
		}
		if ids, ok := option(args, "--jobs="); ok && !slices.Contains(strings.Split(ids, ","), v[0]) {
			continue
		}
		if names, ok := option(args, "--name="); ok && !slices.Contains(strings.Split(names, ","), v[2]) {
			continue
		}
		j, err := f.job(v[0], v[1], v[2], v[3])
		if err != nil {
			return nil, err
		}
		// A task that is cancelled while it waits disappears.
		if _, _, task := slurm.ArrayTask(v[0]); task && j["State"] == "CANCELLED" && j["Start"] == "Unknown" {
			continue
		}
		list = append(list, j)
	}
	return list, nil
}

func (f *fake) job(id, submit, name, partition string) (job, error) {
	state, exit, reason := "PENDING", "0:0", "Priority"
	for _, line := range f.lines("states") {
		v := strings.Fields(line)
		if len(v) < 2 {
			continue
		}
		match, err := path.Match(v[0], name)
		if err != nil {
			return nil, fmt.Errorf("states: %q: %w", line, err)
		}
		if match || v[0] == "*" || v[0] == id {
			state, exit, reason = v[1], "0:0", "None"
			if len(v) > 2 {
				exit = v[2]
			}
			if len(v) > 3 {
				reason = strings.Join(v[3:], " ")
			}
		}
	}
	waits := state == "PENDING"
	if slices.Contains(f.lines("cancelled"), id) && !slurm.ParseState(state).Terminal() {
		state, exit, reason = "CANCELLED", "0:15", "None"
	}
	j := job{"JobID": id, "JobName": name, "Cluster": "bench", "Partition": partition, "State": state, "Reason": reason,
		"ExitCode": exit, "DerivedExitCode": exit, "NodeList": "None assigned", "Submit": submit, "Start": "Unknown", "End": "Unknown", "Comment": ""}
	seconds, err := strconv.ParseInt(submit, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("jobs: submit time of %s: %w", id, err)
	}
	if !waits {
		j["NodeList"], j["Start"] = "node1", strconv.FormatInt(seconds+1, 10)
	}
	if slurm.ParseState(state).Terminal() {
		j["End"] = strconv.FormatInt(seconds+61, 10)
	}
	return j, nil
}

func option(args []string, prefix string) (string, bool) {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, prefix); ok {
			return v, true
		}
	}
	return "", false
}

// queueFields maps squeue's format letters to sacct's fields.
var queueFields = map[byte]string{'i': "JobID", 'j': "JobName", 'P': "Partition", 'T': "State", 'r': "Reason",
	'N': "NodeList", 'V': "Submit", 'S': "Start", 'e': "End", 'k': "Comment"}

func (f *fake) squeue(args []string) error {
	if slices.Contains(args, "--steps") {
		for _, line := range f.lines("steps") {
			id, name, _ := strings.Cut(line, " ")
			fmt.Fprintf(f.stdout, "%s\x1f%s\n", id, name)
		}
		return nil
	}
	jobs, err := f.jobs(args)
	if err != nil {
		return err
	}
	if form, ok := option(args, "--Format="); ok {
		if form != "JobArrayID:\x1f,exit_code:\x1f" {
			return fmt.Errorf("--Format=%q is not known", form)
		}
		for _, j := range jobs {
			status, signal, _ := strings.Cut(j["ExitCode"], ":")
			high, err1 := strconv.Atoi(status)
			low, err2 := strconv.Atoi(signal)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			fmt.Fprintf(f.stdout, "%s\x1f%d\x1f\n", j["JobID"], high<<8|low)
		}
		return nil
	}
	format, _ := option(args, "--format=")
	for _, j := range jobs {
		line, err := queueLine(format, j)
		if err != nil {
			return err
		}
		fmt.Fprintln(f.stdout, line)
	}
	return nil
}

func queueLine(format string, j job) (string, error) {
	// squeue's words for missing values differ from sacct's.
	nothing := map[string]string{"NodeList None assigned": "", "Start Unknown": "N/A", "End Unknown": "N/A", "Comment ": "(null)"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		field, ok := queueFields[format[i]]
		if !ok {
			return "", fmt.Errorf("%%%c in --format is not known", format[i])
		}
		value := j[field]
		if word, ok := nothing[field+" "+value]; ok {
			value = word
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

func (f *fake) sacct(args []string) error {
	jobs, err := f.jobs(args)
	if err != nil {
		return err
	}
	fields, _ := option(args, "--format=")
	delimiter, ok := option(args, "--delimiter=")
	if !ok {
		delimiter = "|"
	}
	whole := slices.Contains(args, "--allocations")
	for _, j := range jobs {
		rows := []job{j}
		if !whole {
			rows = f.withSteps(j)
		}
		for _, row := range rows {
			line, err := accountingLine(strings.Split(fields, ","), delimiter, row)
			if err != nil {
				return err
			}
			fmt.Fprintln(f.stdout, line)
		}
	}
	return nil
}

// withSteps returns a job's line followed by lines for its batch script and the run's step, both 60 s long. The
// job's energy is the step's.
func (f *fake) withSteps(j job) []job {
	end := strings.LastIndex(j["JobName"], "-") // STUDY/RUN-RANDOM
	step := path.Base(j["JobName"][:max(end, 0)])
	joules := ""
	for i, line := range f.lines("energy") {
		if v := strings.Fields(line); i > 0 && len(v) == 2 {
			if match, err := path.Match(v[0], step); err == nil && match {
				joules = v[1]
			}
		}
	}
	row := func(id, name, joules string) job {
		return job{"JobID": j["JobID"] + id, "JobName": name, "NNodes": "1", "ElapsedRaw": "60", "ConsumedEnergyRaw": joules}
	}
	return []job{row("", j["JobName"], joules), row(".batch", "batch", ""), row(".0", step, joules)}
}

func accountingLine(fields []string, delimiter string, j job) (string, error) {
	var values []string
	for _, field := range fields {
		value, ok := j[field]
		if !ok {
			return "", fmt.Errorf("the field %q is not known", field)
		}
		values = append(values, value)
	}
	return strings.Join(values, delimiter), nil
}

func (f *fake) scontrol(args []string) int {
	if slices.Equal(args, []string{"show", "partition", "--oneliner"}) {
		for _, name := range f.lines("partitions") {
			fmt.Fprintf(f.stdout, "PartitionName=%s AllowGroups=ALL State=UP Nodes=node1 MaxTime=UNLIMITED\n", name)
		}
		return 0
	}
	if slices.Equal(args, []string{"show", "config"}) {
		fmt.Fprintln(f.stdout, "MaxArraySize            = 1001")
		if lines := f.lines("energy"); len(lines) > 0 {
			fmt.Fprintf(f.stdout, "AcctGatherEnergyType    = %s\nAcctGatherNodeFreq      = 30 sec\n", lines[0])
		}
		return 0
	}
	if len(args) != 4 || args[0] != "show" || args[1] != "job" || args[2] != "-o" {
		return f.fail("scontrol", fmt.Errorf("only scontrol show job -o ID is known, not %q", args))
	}
	jobs, err := f.jobs([]string{"--jobs=" + args[3]})
	if err != nil {
		return f.fail("scontrol", err)
	}
	if len(jobs) == 0 {
		fmt.Fprintln(f.stderr, "slurm_load_jobs error: Invalid job id specified")
		return 1
	}
	j := jobs[0]
	nodes := j["NodeList"]
	if nodes == "None assigned" {
		nodes = ""
	}
	fmt.Fprintf(f.stdout, "JobId=%s JobName=%s UserId=user(1000) GroupId=user(1000) JobState=%s Reason=%s Dependency=(null) Requeue=0 Restarts=0 ExitCode=%s SubmitTime=%s StartTime=%s EndTime=%s Partition=%s NodeList=%s \n",
		j["JobID"], j["JobName"], j["State"], j["Reason"], j["ExitCode"], j["Submit"], j["Start"], j["End"], j["Partition"], nodes)
	return 0
}
