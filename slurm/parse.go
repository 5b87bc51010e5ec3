package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An UnreadableError reports that Slurm answered, but some lines cannot be parsed. Functions return it together
// with the jobs of all other lines.
type UnreadableError struct{ Lines []Unreadable }

// An Unreadable is one line of an answer, or several if a job's name contains line breaks.
type Unreadable struct {
	Text string
	Err  error // why
}

// Error describes the first line and gives the number of others.
func (e *UnreadableError) Error() string {
	text := e.Lines[0].Err.Error()
	if n := len(e.Lines) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// Of returns the error of a line that has the given name or id as one of its fields, or nil.
func (e *UnreadableError) Of(name, id string) error {
	if e == nil {
		return nil
	}
	for _, l := range e.Lines {
		fields := strings.FieldsFunc(l.Text, func(r rune) bool { return r == '\n' || r == '\x1f' })
		if slices.Contains(fields, name) || slices.Contains(fields, id) {
			return l.Err
		}
	}
	return nil
}

// unreadable returns an error for the lines, or nil without lines.
func unreadable(lines []Unreadable) error {
	if len(lines) == 0 {
		return nil
	}
	return &UnreadableError{lines}
}

// records splits an answer into lines of n fields; the first field is the id of a job or step. Since a job's
// name can contain line breaks, a line with too few fields is joined with the next one.
func records(command string, out []byte, n int) (list [][]string, bad []Unreadable) {
	pending, from := "", 0
	drop := func() {
		if pending != "" {
			bad = append(bad, Unreadable{pending, fmt.Errorf("%s: line %d is not of %d fields, the first a job's id: %.200q", command, from, n, pending)})
		}
		pending = ""
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if strings.Count(pending, separator)+strings.Count(line, separator)+1 > n {
			drop() // the previous line was truncated
		}
		if pending != "" {
			pending += "\n" + line
		} else if line != "" && (!strings.HasPrefix(line, "CLUSTER: ") || strings.Contains(line, separator)) { // squeue -M's header
			pending, from = line, i+1
		}
		switch fields := strings.Split(pending, separator); {
		case pending == "":
		case len(fields) == 1 || !idForm.MatchString(fields[0]):
			drop()
		case len(fields) == n:
			list = append(list, fields)
			pending = ""
		}
	}
	drop()
	return list, bad
}

// idForm matches the id of a job or step: "7", "95_[4-9%2]", "48+0", "7.batch".
var idForm = regexp.MustCompile(`^[0-9]+([_+.][^\n]*)?$`)

// A reader collects the errors in one job's fields.
type reader struct{ problems []error }

func (r *reader) time(field string) time.Time {
	t, err := parseTime(field)
	r.note(err)
	return t
}

func (r *reader) exit(field string) *ExitCode {
	e, err := parseExit(field)
	r.note(err)
	return e
}

func (r *reader) hosts(field string) []string {
	h, err := hosts(field)
	r.note(err)
	return h
}

func (r *reader) note(err error) {
	if err != nil {
		r.problems = append(r.problems, err)
	}
}

// done sets the job's state and returns the errors with the job's id.
func (r *reader) done(command string, j *Job) error {
	j.State = ParseState(j.Word)
	if command != "sacct" {
		j.settle()
	}
	if len(r.problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s, job %.40q: %w", command, j.ID, errors.Join(r.problems...))
}

// ParseQueue parses squeue's answer to Client.Queue. Jobs that cannot be parsed are left out and reported in an
// *UnreadableError.
func ParseQueue(out []byte) ([]Job, error) {
	return parseTable("squeue", out, strings.Count(queueFormat, separator)+1, func(f []string, r *reader) Job {
		return Job{ID: f[0], Name: f[1], Partition: f[2], Word: f[3], Reason: known(f[4]), Nodes: r.hosts(f[5]),
			Submit: r.time(f[6]), Start: r.time(f[7]), End: r.time(f[8]), Comment: known(f[9])}
	})
}

var accountingFields = []string{"JobID", "JobName", "Cluster", "Partition", "State", "Reason", "ExitCode",
	"DerivedExitCode", "NodeList", "Submit", "Start", "End", "Comment"}

// ParseAccounting parses sacct's answer to Client.Accounting. Jobs that cannot be parsed are left out and
// reported in an *UnreadableError.
func ParseAccounting(out []byte) ([]Job, error) {
	return parseTable("sacct", out, len(accountingFields), func(f []string, r *reader) Job {
		return Job{ID: f[0], Name: f[1], Cluster: f[2], Partition: f[3], Word: f[4], Reason: known(f[5]),
			ExitCode: r.exit(f[6]), DerivedExit: r.exit(f[7]), Nodes: r.hosts(f[8]),
			Submit: r.time(f[9]), Start: r.time(f[10]), End: r.time(f[11]), Comment: f[12]}
	})
}

func parseTable(command string, out []byte, fields int, read func([]string, *reader) Job) ([]Job, error) {
	lines, bad := records(command, out, fields)
	var jobs []Job
	for _, f := range lines {
		var r reader
		j := read(f, &r)
		if j.ID == "" || j.Word == "" {
			r.note(fmt.Errorf("no id or no state in %.200q", strings.Join(f, "|")))
		}
		if err := r.done(command, &j); err != nil {
			bad = append(bad, Unreadable{strings.Join(f, separator), err})
			continue
		}
		// sacct prints 0:0 for a job that has no exit code yet.
		if !j.State.Terminal() {
			j.ExitCode, j.DerivedExit = nil, nil
		}
		jobs = append(jobs, j)
	}
	return jobs, unreadable(bad)
}

// A line of scontrol consists of KEY=VALUE separated by spaces, which values may also contain: the name ends at
// UserId, other values end at the next word that looks like a key.
var (
	showHead  = regexp.MustCompile(`^JobId=(\S+) (?:ArrayJobId=(\S+) ArrayTaskId=(\S+) |HetJobId=(\S+) HetJobOffset=(\S+) (?:HetJobIdSet=\S+ )?)?JobName=(.*?) UserId=`)
	showField = regexp.MustCompile(` ([A-Z][A-Za-z:/]*)=`)
)

// ParseShow parses `scontrol show job -o`.
func ParseShow(out []byte) ([]Job, error) {
	var jobs []Job
	var problems []error
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.TrimSpace(line) == "" || line == "No jobs in the system" {
			continue
		}
		j, err := parseShowLine(line)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		jobs = append(jobs, j)
	}
	return jobs, errors.Join(problems...)
}

func parseShowLine(line string) (Job, error) {
	head := showHead.FindStringSubmatchIndex(line)
	if head == nil {
		return Job{}, fmt.Errorf("scontrol show job: not of the form JobId=… JobName=… UserId=…: %.200q", line)
	}
	group := func(i int) string {
		if head[2*i] < 0 {
			return ""
		}
		return line[head[2*i]:head[2*i+1]]
	}
	j := Job{ID: group(1), Name: group(6)}
	if group(2) != "" {
		j.ID = group(2) + "_" + group(3)
	} else if group(4) != "" {
		j.ID = group(4) + "+" + group(5)
	}
	rest := line[head[1]:]
	values := map[string]string{}
	at := showField.FindAllStringSubmatchIndex(rest, -1)
	for i, m := range at {
		end := len(rest)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if key := rest[m[2]:m[3]]; values[key] == "" { // the first counts: a comment may look like a key
			values[key] = strings.TrimSpace(rest[m[1]:end])
		}
	}
	var r reader
	j.Partition, j.Word, j.Reason, j.Comment = values["Partition"], values["JobState"], known(values["Reason"]), known(values["Comment"])
	j.Nodes, j.ExitCode = r.hosts(values["NodeList"]), r.exit(values["ExitCode"])
	j.Submit, j.Start, j.End = r.time(values["SubmitTime"]), r.time(values["StartTime"]), r.time(values["EndTime"])
	if v := values["Restarts"]; v != "" {
		n, err := strconv.Atoi(v)
		r.note(err)
		j.Restarts = &n
	}
	if j.Word == "" {
		r.note(errors.New("no JobState"))
	}
	if err := r.done("scontrol", &j); err != nil {
		return Job{}, err
	}
	if !j.State.Terminal() {
		j.ExitCode = nil
	}
	return j, nil
}
