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

// UnreadableError says that Slurm answered, and that some of its lines cannot be
// read. The jobs of all other lines come with it.
type UnreadableError struct{ Lines []Unreadable }

// Unreadable is one line of an answer, or several where a job's name has line
// breaks.
type Unreadable struct {
	Text string
	Err  error // why
}

// Error is what is wrong with the first line, and how many more there are.
func (e *UnreadableError) Error() string {
	text := e.Lines[0].Err.Error()
	if n := len(e.Lines) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// Of is why an answer about a job cannot be read: a line that has its name or its id
// as one of the fields; nil if there is none.
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

// unreadable is the error for such lines; nil for none.
func unreadable(lines []Unreadable) error {
	if len(lines) == 0 {
		return nil
	}
	return &UnreadableError{lines}
}

// records cuts an answer of a command into lines of n fields, the first a job's or
// a step's id. A field may hold line breaks (a job's name can), so that a short
// line goes on in the next one.
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
			drop() // what came before was cut short
		}
		if pending != "" {
			pending += "\n" + line
		} else if line != "" && (!strings.HasPrefix(line, "CLUSTER: ") || strings.Contains(line, separator)) { // squeue -M's headline
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

// idForm is that of an id: "7", "95_[4-9%2]", "48+0", "7.batch".
var idForm = regexp.MustCompile(`^[0-9]+([_+.][^\n]*)?$`)

// reader collects the problems of one job's fields.
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

// done names the job in what was wrong with it.
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

// ParseQueue reads squeue's answer to Client.Queue. Jobs that cannot be read are
// left out and in the error, an *UnreadableError.
func ParseQueue(out []byte) ([]Job, error) {
	return parseTable("squeue", out, strings.Count(queueFormat, separator)+1, func(f []string, r *reader) Job {
		return Job{ID: f[0], Name: f[1], Partition: f[2], Word: f[3], Reason: known(f[4]), Nodes: r.hosts(f[5]),
			Submit: r.time(f[6]), Start: r.time(f[7]), End: r.time(f[8]), Comment: known(f[9])}
	})
}

var accountingFields = []string{"JobID", "JobName", "Cluster", "Partition", "State", "Reason", "ExitCode",
	"DerivedExitCode", "NodeList", "Submit", "Start", "End", "Comment"}

// ParseAccounting reads sacct's answer to Client.Accounting. Jobs that cannot be
// read are left out and in the error, an *UnreadableError.
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
		// sacct shows an exit code of 0:0 for a job that has none yet.
		if !j.State.Terminal() {
			j.ExitCode, j.DerivedExit = nil, nil
		}
		jobs = append(jobs, j)
	}
	return jobs, unreadable(bad)
}

// A line of scontrol's is KEY=VALUE, separated by spaces, which values hold
// too: the name runs up to UserId, other values up to the next word that looks
// like a key.
var (
	showHead  = regexp.MustCompile(`^JobId=(\S+) (?:ArrayJobId=(\S+) ArrayTaskId=(\S+) |HetJobId=(\S+) HetJobOffset=(\S+) (?:HetJobIdSet=\S+ )?)?JobName=(.*?) UserId=`)
	showField = regexp.MustCompile(` ([A-Z][A-Za-z:/]*)=`)
)

// ParseShow reads `scontrol show job -o`.
func ParseShow(out []byte) ([]Job, error) {
	var jobs []Job
	var problems []error
	for _, line := range strings.Split(string(out), "\n") {
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
