package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A Pack makes one script serve several runs. They are listed in a file next to the script, one Step per line.
// In an array each run is a separate task. Otherwise all runs are steps of one allocation, in the list's order,
// each on the first nodes of the allocation.
type Pack struct {
	Dir   string // absolute; holds the list, and an allocation's claim and exit record
	Runs  int    // lines of the list
	Array bool
	Limit int // maximum of concurrent array tasks; 0 means no limit
}

// ListName is the name of the list in Pack.Dir.
const ListName = "runs.list"

// ListName returns the constant ListName, because templates can only call methods.
func (s Script) ListName() string { return ListName }

// A Step is one run of a Pack: its folder and the part of the allocation that it uses.
type Step struct {
	RunDir       string
	Name         string // name of the step, by which Steps finds it; "" means srun's default
	Nodes        int
	TasksPerNode int
	CPUsPerTask  int
	GPUsPerNode  int
	GPUType      string
	CPUBind      string
	MPI          string
	Time         time.Duration // time limit within the allocation, rounded up to minutes; 0 means none
}

// options returns the srun options that may differ between the runs of a pack.
func (s Step) options() []string {
	list := []string{
		fmt.Sprintf("--nodes=%d", s.Nodes),
		fmt.Sprintf("--ntasks=%d", s.Nodes*s.TasksPerNode),
		fmt.Sprintf("--ntasks-per-node=%d", s.TasksPerNode),
		fmt.Sprintf("--cpus-per-task=%d", s.CPUsPerTask),
	}
	if g := gres(s.GPUsPerNode, s.GPUType); g != "" {
		list = append(list, "--gres="+g)
	}
	if s.CPUBind != "" {
		list = append(list, "--cpu-bind="+s.CPUBind)
	}
	if s.MPI != "" {
		list = append(list, "--mpi="+s.MPI)
	}
	if s.Time > 0 {
		list = append(list, fmt.Sprintf("--time=%d", minutes(s.Time)))
	}
	if s.Name != "" {
		list = append(list, "--job-name="+s.Name)
	}
	return list
}

// List writes the list of a pack: one line per run with the CPUs per task, srun's options, and the run folder,
// separated by tabs. A Step without a RunDir makes an empty line: that index has no run.
func List(steps []Step) ([]byte, error) {
	var b bytes.Buffer
	for i, s := range steps {
		if s.RunDir == "" {
			b.WriteByte('\n')
			continue
		}
		options := s.options()
		for _, o := range options {
			if strings.ContainsFunc(o, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
				return nil, fmt.Errorf("run %d of the list: %q contains a blank; the list uses blanks as separators", i, o)
			}
		}
		if strings.ContainsFunc(s.RunDir, unicode.IsControl) || !filepath.IsAbs(s.RunDir) {
			return nil, fmt.Errorf("run %d of the list: the run folder %q must be an absolute path without control characters", i, s.RunDir)
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\n", s.CPUsPerTask, strings.Join(options, " "), s.RunDir)
	}
	return b.Bytes(), nil
}

// Allocation reports whether the script runs its pack within one allocation.
func (s Script) Allocation() bool { return s.Pack != nil && !s.Pack.Array }

// indices returns the array's index expression, "0-5%2".
func (p Pack) indices() string {
	s := fmt.Sprintf("0-%d", p.Runs-1)
	if p.Limit > 0 {
		s += fmt.Sprintf("%%%d", p.Limit)
	}
	return s
}

// ArrayTask splits the id of a task of a job array, "95_3", into the array's id and the index.
func ArrayTask(id string) (array string, index int, ok bool) {
	array, text, ok := strings.Cut(id, "_")
	index, err := strconv.Atoi(text)
	if !ok || err != nil || index < 0 || strconv.Itoa(index) != text {
		return "", 0, false
	}
	return array, index, true
}

var pendingForm = regexp.MustCompile(`^([0-9]+)_\[([0-9,:-]+)(?:%[0-9]+)?\]$`)

// maxArrayTasks is the largest possible value of Slurm's MaxArraySize.
const maxArrayTasks = 4_000_001

// maxExpanded bounds the expansion of an index list; a study has fewer runs. A longer array belongs to another
// program, and a Job for each of its tasks could take a gigabyte.
const maxExpanded = 1 << 17

// ExpandArray returns one Job per task. Slurm prints waiting tasks of an array in one line, "95_[4-9%2]". A
// list that Slurm has truncated ("…") or that cannot be parsed stays unexpanded.
func ExpandArray(jobs []Job) []Job {
	var all []Job
	for _, j := range jobs {
		m := pendingForm.FindStringSubmatch(j.ID)
		if m == nil {
			all = append(all, j)
			continue
		}
		indices, ok := expandIndices(m[2])
		if !ok {
			all = append(all, j)
			continue
		}
		for _, i := range indices {
			task := j
			task.ID = m[1] + "_" + strconv.Itoa(i)
			all = append(all, task)
		}
	}
	return all
}

// expandIndices parses "0,4-9,12-20:4".
func expandIndices(text string) (list []int, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		bounds, stride, strided := strings.Cut(part, ":")
		low, high, ranged := strings.Cut(bounds, "-")
		if !ranged {
			high = low
		}
		by := 1
		var err error
		if strided {
			by, err = strconv.Atoi(stride)
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err != nil || err1 != nil || err2 != nil || by < 1 || from > to || (to-from)/by >= maxExpanded-len(list) {
			return nil, false
		}
		for i := from; i <= to; i += by {
			list = append(list, i)
		}
	}
	return list, true
}

var maxArraySize = regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d+)\s*$`)

// MaxArraySize asks the controller how many tasks, with indices from 0, a job array may have.
func (c *Client) MaxArraySize(ctx context.Context) (int, error) {
	out, _, err := c.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return 0, unanswered(err)
	}
	n, err := parseMaxArraySize(out)
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		return 0, &UnreachableError{"scontrol", err.Error(), false, err}
	}
	return n, err
}

// parseMaxArraySize parses `scontrol show config`.
func parseMaxArraySize(out []byte) (int, error) {
	m := maxArraySize.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("scontrol show config does not report MaxArraySize")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil || n > maxArrayTasks {
		return 0, fmt.Errorf("scontrol show config: MaxArraySize is %s, which is not a valid size", m[1])
	}
	if n < 2 {
		return 0, &RefusedError{Command: "scontrol", Message: `this cluster allows no job arrays (MaxArraySize in "scontrol show config"); use policy.packing = "job" or "allocation"`}
	}
	return n, nil
}
