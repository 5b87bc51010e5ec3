package extract

import (
	"regexp"
	"slices"
	"strings"
)

var (
	jobID        = regexp.MustCompile(`(?i)^job_?id(?:_?raw)?$`)
	numberedStep = regexp.MustCompile(`^(\d+(?:[_+]\d+)?)\.\d+$`) // 101.0 of job 101
)

// jobSteps marks the rows of Slurm's job steps whose job has a row, too: the time of the job includes theirs. It
// refuses jobs of several steps, because each of these may be a run.
func (s *survey) jobSteps() {
	at := slices.IndexFunc(s.header, func(name string) bool { return jobID.MatchString(strings.TrimSpace(name)) })
	if at < 0 || s.labelAt[at] {
		return
	}
	var ids []string
	jobs := map[string]bool{}
	steps := map[string][]int{} // indices of rows, by the job
	s.eachRow(func(t *table, _ surveyed) {
		id := strings.TrimSpace(t.rows[0][at])
		if m := numberedStep.FindStringSubmatch(id); m != nil {
			steps[m[1]] = append(steps[m[1]], len(ids))
		}
		jobs[id] = true
		ids = append(ids, id)
	})
	for i, id := range ids {
		m := numberedStep.FindStringSubmatch(id)
		if m == nil || !jobs[m[1]] {
			continue
		}
		if of := steps[m[1]]; len(of) > 1 {
			s.refuse("job %s has %d steps and a row of its own (lines %d, %d, …): if each step is a run, delete the rows of jobs; if each job is one, delete those of steps", m[1], len(of), s.rows[of[0]].line, s.rows[of[1]].line)
			return
		}
		s.rows[i].mark = ofStep
	}
}

// steps refuses a table whose rows have a step and no epoch, if the step grows from row to row wherever a point has
// several: they are evaluations of one run, and would count as repeats.
func (s *survey) steps() {
	c, mapped := s.columns["step"]
	if !mapped || s.epochs {
		return
	}
	last, grows, falls := map[int]float64{}, false, false
	s.eachRow(func(t *table, r surveyed) {
		v, ok := t.readable(0, c.Name)
		if !ok {
			return
		}
		before, again := last[r.point]
		grows, falls = grows || again && v.Number > before, falls || again && v.Number <= before
		last[r.point] = v.Number
	})
	if grows && !falls {
		s.refuse("the step grows from row to row in column %s, so the rows are evaluations of one run and not repeats; write %s or, if each row is a run, --label run=COLUMN with a column that numbers the runs",
			clip(c.Name), mapping("epoch", c.Name, ""))
	}
}
