package extract

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A mark says what kind of summary a row is.
type mark string

const (
	ofParts  mark = "total"  // the sum of other rows, or the run of which other rows are parts
	ofRuns   mark = "mean"   // a mean or median
	ofSpread mark = "spread" // a standard deviation, minimum or maximum
	ofFailed mark = "failed" // a run that failed or has not finished
	ofStep   mark = "step"   // a step of a Slurm job that its other rows describe
)

// summaryWords has, for each word that names a summary row in a table ("mean", "total"), the mark
// that says what kind of summary it is.
var summaryWords = words(map[string]string{
	string(ofParts):  "total totals sum aggregated aggregate overall gesamt summe totale",
	string(ofRuns):   "mean avg average median geomean mittelwert durchschnitt moyenne promedio",
	string(ofSpread): "std stdev stddev min max minimum maximum stderr variance count 25% 50% 75%",
})

// google-benchmark appends these words to the name of a benchmark.
var googleWords = map[string]mark{"mean": ofRuns, "median": ofRuns, "stddev": ofSpread, "cv": ofSpread}

// summaryWord returns the kind of summary that a cell such as "mean" names; "" for other cells.
func summaryWord(cell string) mark {
	if i := strings.LastIndexByte(cell, '_'); i > 0 && googleWords[cell[i+1:]] != "" {
		return googleWords[cell[i+1:]]
	}
	return mark(summaryWords[strings.ToLower(strings.Trim(cell, " :.="))])
}

// marked returns the mark of a row, from any cell that is not in a label column; "" for a row
// that counts as a run.
func (s *survey) marked(row []string, line int) (m mark) {
	for i, cell := range row {
		cell = strings.TrimSpace(cell)
		switch word := summaryWord(cell); {
		case word != "" && s.labelAt[i]:
			s.summed = append(s.summed, surveyed{line: line})
		case word != "":
			return word
		case !s.epochs && !s.labelAt[i] && s.failed[i](cell):
			m = ofFailed
		case jobStep.MatchString(cell):
			return ofStep
		}
	}
	return m
}

var (
	failedWord  = regexp.MustCompile(`(?i)^(?:oom|out[ _]of[ _]memory|fail(?:ed|ure)?|error|crash(?:ed)?|time(?:d[ _]?)?out|killed|cancell?ed(?: by \d+)?|node_fail|boot_fail|deadline|preempted|aborted)\+?$`)
	unfinished  = regexp.MustCompile(`(?i)^(?:running|pending|requeued|suspended|in[ _]progress)$`)
	stateName   = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:state|status|outcome)$`)
	exitName    = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:exit|return)[ _-]?(?:code|status)$`)
	failName    = regexp.MustCompile(`(?i)^\s*(?:fail(?:ed|s|ures?)?|crash(?:ed|es)?)\s*$`)
	successName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:success|succeeded|successful|completed|ok|passed)$`)
	jobStep     = regexp.MustCompile(`^\d+(?:[_+]\d+)?\.(?:batch|extern|interactive)$`)
)

// failedIn returns a function that reports whether a cell of a column says that the run of its row failed or has not
// finished. A column of runs, not of loads, may count failures.
func failedIn(column string, loads bool) func(cell string) bool {
	exit, success, state := exitName.MatchString(column), successName.MatchString(column), stateName.MatchString(column)
	counts := !loads && failName.MatchString(column)
	return func(cell string) bool {
		if counts {
			if n, number := parsed(cell); number && n > 0 || strings.EqualFold(cell, "true") || strings.EqualFold(cell, "yes") {
				return true
			}
		}
		switch {
		case cell == "":
			return false
		case exit:
			return strings.Trim(cell, "0:") != ""
		case success && (cell[0] < '2' || cell[0] > '9'):
			return strings.EqualFold(cell, "false") || strings.EqualFold(cell, "no") || cell == "0"
		case cell[0] <= '9': // a number
			return false
		}
		return failedWord.MatchString(cell) || state && unfinished.MatchString(cell)
	}
}

// tolerance is the largest relative difference between a total and the sum of its rounded parts.
const tolerance = 0.05

// summaries leaves out summary rows. If a summary row is the run and the other rows are its
// parts, it leaves out the parts.
func (s *survey) summaries() {
	onlyMeans := !slices.ContainsFunc(s.rows, func(r surveyed) bool { return r.mark == "" })
	means := slices.ContainsFunc(s.rows, func(r surveyed) bool { return r.mark == ofRuns })
	for _, r := range s.rows {
		if why := notRun(r.mark, onlyMeans && means); why != "" {
			s.leave(why, r)
		}
	}
	for _, group := range groupedBy(s.rows, func(r surveyed) (int, bool) { return r.point, !onlyMeans && notRun(r.mark, false) == "" }) {
		var runs, sums, rest []surveyed
		for _, r := range group {
			switch {
			case r.mark == "":
				runs = append(runs, r)
			case r.mark == ofParts:
				sums = append(sums, r)
			default:
				rest = append(rest, r)
			}
		}
		if len(runs) == 0 {
			if len(sums) > 0 && s.lone(sums) || len(sums) == 0 && s.lone(rest) {
				s.leave(summarise, append(sums, rest...)...)
			}
			continue
		}
		s.leave(summarise, rest...)
		switch {
		case len(sums) == 0:
		case s.l.o.Sum == "" && len(sums) == 1 && len(runs) > 1 && s.adds(runs, sums[0]):
			s.leave("they are parts of the total", runs...)
		default:
			s.leave(summarise, sums...)
		}
	}
	s.unmarkedMeans()
	s.unlikelyRuns()
	s.tell()
}

// leave leaves out rows, which are not runs.
func (s *survey) leave(why string, rows ...surveyed) {
	for _, r := range rows {
		s.left[r.number] = why
	}
}

// tell reports the rows that were left out, by the reason, and rows that may be summaries.
func (s *survey) tell() {
	for _, rows := range groupedBy(s.rows, func(r surveyed) (string, bool) { return s.left[r.number], s.left[r.number] != "" }) {
		s.say("left out %s (%s): %s", number.Count(len(rows), "row"), lines(rows), s.left[rows[0].number])
	}
	if n := len(s.summed); n > 0 && 2*n < len(s.rows) {
		s.say("a summary's name is a label in %s: if it summarises other rows, delete it", lines(s.summed))
	}
}

const summarise = "they summarise others"

// notRun returns why a row with this mark is left out in any table; "" if it is not. In a table of
// means only, deviations are left out, and the means count as runs.
func notRun(m mark, onlyMeans bool) string {
	switch {
	case m == ofFailed:
		return "the runs failed or have not finished"
	case m == ofStep:
		return "they are parts of Slurm jobs"
	case m == ofSpread && onlyMeans:
		return summarise
	}
	return ""
}

// lone reports whether no row states a number of workers.
func (s *survey) lone(rows []surveyed) bool {
	return !slices.ContainsFunc(rows, func(r surveyed) bool { return r.workers > 0 })
}

// adds reports whether the rates of the parts add up to the rates of the whole. Latencies do not add
// up, so a row without a rate is accepted as the whole.
func (s *survey) adds(parts []surveyed, whole surveyed) bool {
	rated := false
	for i, ours := range s.figures {
		if base := tableUnits[ours]; !strings.HasSuffix(base, "/s") {
			continue
		}
		rated = true
		sum := 0.0
		for _, r := range parts {
			sum += r.values[i]
		}
		if !(math.Abs(sum-whole.values[i]) <= tolerance*whole.values[i]) {
			return false
		}
	}
	return rated || s.loads
}

// unmarkedMeans leaves out rows that equal the mean or the median of the other rows of their
// point. To be taken for one, a row must have more digits than the others, or an empty cell where
// the others have values.
func (s *survey) unmarkedMeans() {
	if len(s.figures) == 0 || s.epochs {
		return
	}
	for _, rows := range s.runs(byPoint) {
		if len(rows) < 3 || len(rows) > mostValues {
			continue
		}
		for i, r := range rows {
			others := slices.Delete(slices.Clone(rows), i, i+1)
			decimals, lacks := 0, false
			for _, o := range others {
				decimals = max(decimals, o.decimals)
			}
			for k := range r.empty {
				lacks = lacks || r.empty[k] && !slices.ContainsFunc(others, func(o surveyed) bool { return o.empty[k] })
			}
			if !lacks && r.decimals < decimals+2 || !s.middle(r, others) {
				continue
			}
			s.leave("they are the mean of others", r)
			break
		}
	}
}

// unlikelyRuns warns of rows that are probably not runs: a last row that is the mean or median of
// the others, and rows that repeat others with fewer decimals. In one point that may be chance, so
// it must be so in every point, and in two or more.
func (s *survey) unlikelyRuns() {
	groups := s.runs(byPoint)
	if len(s.figures) == 0 || s.epochs || len(groups) < 2 {
		return
	}
	var means, rounded []surveyed
	isMean, isRounded := true, true
	for _, rows := range groups {
		last, others := rows[len(rows)-1], rows[:len(rows)-1]
		differ := slices.ContainsFunc(rows, func(r surveyed) bool { return r.values[0] != last.values[0] })
		if isMean = isMean && differ && len(others) >= 2 && len(rows) <= mostValues && last.digits >= samePrecision && s.middle(last, others); isMean {
			means = append(means, last)
		}
		again := s.rounded(rows)
		if isRounded = isRounded && again != nil; isRounded {
			rounded = append(rounded, again...)
		}
	}
	if isMean {
		s.say("the last row of each worker count equals the mean or median of its other rows (%s): if it is no run, remove it", lines(means))
	}
	if isRounded {
		s.say("other rows are repeated with fewer decimals, in the same order, in %s: if these are copies, remove them", lines(rounded))
	}
}

// rounded returns the rows of a point that repeat its other rows with fewer decimals, in the same
// order; nil if no row qualifies.
func (s *survey) rounded(rows []surveyed) (again []surveyed) {
	most := 0
	for _, r := range rows {
		most = max(most, r.decimals)
	}
	var exact []surveyed
	for _, r := range rows {
		if r.decimals == most {
			exact = append(exact, r)
		} else {
			again = append(again, r)
		}
	}
	if len(exact) < 2 || len(again)%len(exact) != 0 {
		return nil
	}
	for i, r := range again {
		step := math.Pow(10, -float64(r.decimals)) * s.reads[s.figures[0]].scale
		if !(math.Abs(exact[i%len(exact)].values[0]-r.values[0]) <= 0.51*step) {
			return nil
		}
	}
	return again
}

// middle reports whether every figure of a row is the mean, or every one the median, of the other
// rows.
func (s *survey) middle(r surveyed, others []surveyed) bool {
	for _, how := range []string{"mean", "median"} {
		same := true
		for i, ours := range s.figures {
			x, err := reduceBy(how, s.figure(others, ours))
			step := math.Pow(10, -float64(r.decimals)) * max(s.reads[ours].scale, 1e-12)
			same = same && err == nil && math.Abs(x-r.values[i]) <= max(0.51*step, 1e-9*math.Abs(x))
		}
		if same {
			return true
		}
	}
	return false
}

// Two equal rows are taken for copies if their figures together have at least this many
// significant digits: fullPrecision for any two rows, samePrecision if all rows of a point are
// equal.
const (
	fullPrecision = 6
	samePrecision = 4
)

// copies leaves out rows that were pasted twice: single rows with many equal digits, and whole
// tables.
func (s *survey) copies() {
	if s.epochs {
		return
	}
	var rows []surveyed
	of := map[int]int{} // number of rows per point
	for _, r := range s.rows {
		if s.left[r.number] == "" {
			rows = append(rows, r)
			of[r.point]++
		}
	}
	if period := repeated(rows); period > 0 {
		s.leaveCopies(rows[period:])
		return
	}
	first, equal := map[string]bool{}, map[string]int{}
	for _, r := range rows {
		equal[r.hash]++
	}
	var copies []surveyed
	for _, r := range rows {
		if first[r.hash] && (r.digits >= fullPrecision || r.digits >= samePrecision && equal[r.hash] == of[r.point] && of[r.point] > 2) {
			copies = append(copies, r)
		}
		first[r.hash] = true
	}
	s.leaveCopies(copies)
}

// repeated returns the number of rows after which the table repeats itself up to its end; 0 if it
// does not.
func repeated(rows []surveyed) int {
	same := func(a, b surveyed) bool { return a.whole == b.whole }
	for period := 1; 2*period <= len(rows); period++ {
		if len(rows)%period == 0 && slices.EqualFunc(rows[period:], rows[:len(rows)-period], same) {
			if period == 1 { // all rows are equal, and may be repeats
				return 0
			}
			return period
		}
	}
	return 0
}

// leaveCopies leaves out rows that are copies, given in table order, and reports them.
func (s *survey) leaveCopies(copies []surveyed) {
	if len(copies) == 0 {
		return
	}
	s.leave("a copy", copies...)
	s.say("left out %s (%s): copies of others, digit for digit, and not repeats", number.Count(len(copies), "row"), lines(copies))
}
