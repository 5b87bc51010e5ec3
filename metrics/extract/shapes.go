package extract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// write formats a number for a message.
func write(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// flat is the largest ratio to the value at the smallest worker count at which a figure does not
// seem to change with the workers. Such a rate may be one worker's, and such a time may come from
// weak scaling.
const flat = 1.1

// apartBy is the smallest factor between two values of a column, corrected for the worker
// counts, at which they seem to be in different units.
const apartBy = 50

// shapes checks how each figure changes with the number of workers, and refuses a table if the
// result suggests a wrong mapping.
func (s *survey) shapes() {
	for _, rows := range s.runs(bySeries) {
		for _, ours := range s.figures {
			s.mixed(rows, ours)
			s.flat(rows, ours)
		}
	}
	if s.epochs {
		s.falling()
	}
}

// mixed refuses a table if the values of a column seem to be in two different units.
func (s *survey) mixed(rows []surveyed, ours string) {
	r := s.reads[ours]
	base := tableUnits[ours]
	if r.sure || base == "" || s.epochs {
		return
	}
	i := slices.Index(s.figures, ours)
	refuse := func(a, b surveyed) {
		s.refuse("column %s has %s %s on line %d and %s on line %d: are these in one unit? If they are, write %s; else convert them",
			clip(r.Name), write(a.values[i]), base, a.line, write(b.values[i]), b.line, mapping(ours, r.Name, usual[base]))
	}
	has := slices.DeleteFunc(slices.Clone(rows), func(r surveyed) bool { return !(r.values[i] > 0) || r.workers <= 0 && !s.loads })
	if s.loads { // latency under growing queues has no upper limit
		byPoint := map[int]surveyed{}
		for _, r := range has {
			if before, is := byPoint[r.point]; is && math.Abs(math.Log(r.values[i]/before.values[i])) > math.Log(10*apartBy) {
				refuse(before, r)
				return
			}
			byPoint[r.point] = r
		}
		return
	}
	slices.SortStableFunc(has, func(a, b surveyed) int { return int(a.workers - b.workers) })
	for k := 1; k < len(has); k++ {
		a, b := has[k-1], has[k]
		ratio, more := b.values[i]/a.values[i], b.workers/a.workers
		if base == "s" {
			ratio = 1 / ratio
		}
		if ratio > apartBy*more || ratio < 1.0/apartBy {
			refuse(a, b)
			return
		}
	}
}

// flat refuses a rate that does not rise with the workers, because it may be one
// worker's. It also refuses a time that does not fall, because it may come from weak
// scaling.
func (s *survey) flat(rows []surveyed, ours string) {
	r := s.reads[ours]
	base := tableUnits[ours]
	if s.loads {
		return
	}
	medians := s.medians(s.whole(rows), ours)
	if len(medians) == 1 && medians[0].workers > 1 && !r.sure && r.per == "" && strings.HasSuffix(base, "/s") && ours != tokensPerGPU && shortRate.MatchString(r.Name) {
		s.refuse("it is unclear whether column %s is of one device or of all: write %s or %s", clip(r.Name), mapping(ours, r.Name, usual[base]+"/worker"), mapping(ours, r.Name, usual[base]))
		return
	}
	if len(medians) < 2 || medians[0].value <= 0 {
		return
	}
	first := medians[0]
	levels, rises, rate := true, true, strings.HasSuffix(base, "/s")
	last := first
	for _, m := range medians[1:] {
		better, more := m.value/first.value, m.workers/first.workers
		if !rate {
			better = 1 / better
		}
		levels = levels && better <= flat
		rises = rises && more >= 1.5 && better >= 0.8*more && better > 1.25
		last = m
	}
	at := func(m countedMedian) string { return fmt.Sprintf("%s at %g", write(m.value), m.workers) }
	unit := usual[base]
	switch {
	case r.sure:
	case ours == tokensPerGPU && rises:
		s.refuse("%s rises with the workers (%s, %s), as the rate of all devices does: write %s, or, if it is one device's, %s",
			ours, at(first), at(last), mapping(tokensPerSecond, r.Name, unit), mapping(ours, r.Name, "tokens/s/GPU"))
	case ours == tokensPerGPU || !rate && base != "s":
	case rate && r.per != "" && rises && s.perRises(medians):
		s.refuse("column %s rises with the workers as the rate of all devices does, but its name says one %s: write %s if it covers all, or %s if it does not",
			clip(r.Name), r.per, mapping(ours, r.Name, unit), mapping(ours, r.Name, unit+"/"+map[string]string{number.PerDevice: "worker", number.PerNode: "node"}[r.per]))
	case rate && levels:
		s.refuse("%s does not rise with the workers (%s, %s), as one worker's rate does not: if column %s covers one worker, write %s; if it covers all, %s",
			ours, at(first), at(last), clip(r.Name), mapping(ours, r.Name, unit+"/worker"), mapping(ours, r.Name, unit))
	}
	if timed := ours == "train_seconds" || ours == "epoch_seconds" || ours == "elapsed"; timed && levels && s.scaling(rows) == "" {
		if s.growing(rows, ours) {
			s.weak = true
			return
		}
		if _, judged := s.columns["accuracy"]; judged && ours == "elapsed" {
			return
		}
		s.refuse("%s does not fall with more workers (%s s at %g, %s s at %g): if the work grew with the workers (weak scaling), write --set workload.scaling=weak, and such times are not compared; if it was always the same, --set workload.scaling=strong",
			ours, write(first.value), first.workers, write(last.value), last.workers)
	}
}

// perRises reports whether rates that were multiplied by the number of workers rise with its
// square. They then covered all workers already.
func (s *survey) perRises(medians []countedMedian) bool {
	first := medians[0]
	return !slices.ContainsFunc(medians[1:], func(m countedMedian) bool {
		more := m.workers / first.workers
		return m.value/first.value < 0.8*more*more
	})
}

// whole returns one row per run. For a table of epochs, this row has the mean of epoch_seconds,
// the last elapsed time and the highest rate.
func (s *survey) whole(rows []surveyed) (list []surveyed) {
	if !s.epochs {
		return rows
	}
	for _, epochs := range groupedBy(rows, func(r surveyed) (int, bool) { return r.point, true }) {
		one := epochs[0]
		one.values = slices.Clone(one.values)
		for i, ours := range s.figures {
			var values []float64
			for _, r := range epochs {
				values = append(values, r.values[i])
			}
			how := "last"
			if ours == "epoch_seconds" {
				how = "mean"
			} else if strings.HasSuffix(tableUnits[ours], "/s") {
				how = "max"
			}
			one.values[i] = must(reduceBy(how, values))
		}
		list = append(list, one)
	}
	return list
}

// scaling returns "weak" or "strong" if the user or the table states it, else "".
func (s *survey) scaling(rows []surveyed) string {
	if s.l.o.Scaling != "" {
		s.weak = s.weak || s.l.o.Scaling == "weak"
		return s.l.o.Scaling
	}
	for _, o := range s.others {
		if strings.EqualFold(o.name, "scaling") && len(o.values) == 1 {
			for value := range o.values {
				return value
			}
		}
	}
	if c, is := s.columns["workload.scaling"]; is {
		return c.Name
	}
	return ""
}

// growing reports whether the work of a run, rate × duration, grows with the workers.
func (s *survey) growing(rows []surveyed, times string) bool {
	for _, ours := range s.figures {
		if base := tableUnits[ours]; !strings.HasSuffix(base, "/s") || ours == tokensPerGPU {
			continue
		}
		rates, seconds := s.medians(s.whole(rows), ours), s.medians(s.whole(rows), times)
		if len(rates) != len(seconds) || len(rates) < 2 {
			continue
		}
		k := len(rates) - 1
		if rates[k].value*seconds[k].value > 1.5*rates[0].value*seconds[0].value {
			return true
		}
	}
	return false
}

// accuracyName matches the names of columns that can only be accuracies. They may fall, as those of
// a model that overfits do.
var accuracyName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:acc|accuracy|top[-_ ]?[15])(?:[^a-z]|$)`)

// falling refuses a table if an accuracy falls in every run, as a loss would.
func (s *survey) falling() {
	i := slices.Index(s.figures, "accuracy")
	if i < 0 || s.reads["accuracy"].sure || accuracyName.MatchString(s.reads["accuracy"].Name) {
		return
	}
	runs, from, to := 0, 0.0, 0.0
	for _, rows := range s.runs(byPoint) {
		list := s.figure(rows, "accuracy")
		if len(list) < 3 {
			continue
		}
		if from, to = list[0], list[len(list)-1]; to >= from {
			return
		}
		runs++
	}
	if runs == 0 {
		return
	}
	name := s.reads["accuracy"].Name
	s.refuse("column %s falls over the epochs of every run (from %s to %s in one), as a loss does: write %s, or, if it is an accuracy, %s",
		clip(name), write(from), write(to), mapping("loss", name, ""), mapping("accuracy", name, "fraction"))
}

// A ratedColumn is a column with a rate of all devices or of one device.
type ratedColumn struct {
	name, base string
	scale      float64
	mapped     string // our name to which it is mapped; "": unmapped
	one        bool   // it is the rate of one device
}

// figure returns the figure to which the column is mapped, or which would fit it.
func (c ratedColumn) figure() string {
	if c.mapped != "" {
		return c.mapped
	}
	return map[string]string{"samples/s": "throughput", "tokens/s": tokensPerSecond}[c.base]
}

// rated returns the columns with rates of samples or tokens.
func (s *survey) rated() (list []ratedColumn) {
	for _, name := range s.ordered() {
		c := ratedColumn{name: name}
		for _, ours := range s.figures {
			if s.reads[ours].Name == name {
				c.mapped = ours
			}
		}
		d := unit{}
		if r := s.reads[c.mapped]; c.mapped != "" {
			base := tableUnits[c.mapped]
			d = unit{base: base, scale: r.scale, steps: r.steps, per: r.per}
			if c.mapped == tokensPerGPU {
				d.per = number.PerDevice
			}
			if r.Unit != "" {
				continue // the user has decided
			}
		} else if h := headingOf(name); len(h.dims) > 0 {
			d = h.dims[0]
		}
		c.base, c.scale, c.one = d.base, d.scale, d.per == number.PerDevice
		if !d.steps && d.per != number.PerNode && (d.base == "samples/s" || d.base == "tokens/s") {
			list = append(list, c)
		}
	}
	return list
}

// contradictions fails if a rate of all devices in the table differs from the rate per
// device multiplied by the number of devices.
func (s *survey) contradictions() {
	if s.joined != nil {
		return
	}
	columns := s.rated()
	for _, all := range columns {
		for _, one := range columns {
			if all.one || !one.one || all.base != one.base || all.mapped == "" && one.mapped == "" {
				continue
			}
			s.eachRow(func(t *table, r surveyed) { s.contradict(t, r, all, one) })
		}
	}
}

// globalBatch matches names of columns with the samples per step of all workers.
var globalBatch = regexp.MustCompile(`(?i)(?:global|total|effective)[-_ ]?(?:train[-_ ]?)?(?:batch|bs)`)

// batches fails if a rate of steps is multiplied by a batch that the table contradicts.
func (s *survey) batches() {
	column := slices.IndexFunc(s.others, func(o *other) bool { return o.numeric && globalBatch.MatchString(o.name) })
	if column < 0 {
		return
	}
	name := s.others[column].name
	rate, step := slices.Index(s.figures, metrics.FigureThroughput), slices.Index(s.figures, stepSeconds)
	if rate >= 0 && step >= 0 {
		s.eachRow(func(t *table, r surveyed) {
			if v, ok := t.readable(0, name); ok && v.Number > 0 && !within(r.values[rate]*r.values[step], v.Number, 1.25) {
				s.l.fail(r.line, "%s samples/s and %s s a step make %s samples per step, and column %s has %g: one of the three is wrong",
					write(r.values[rate]), write(r.values[step]), write(r.values[rate]*r.values[step]), clip(name), v.Number)
			}
		})
	}
	if !slices.ContainsFunc(s.figures, func(ours string) bool { return s.reads[ours].steps }) {
		return
	}
	s.eachRow(func(t *table, r surveyed) {
		if v, ok := t.readable(0, name); ok && r.workers > 0 && v.Number != float64(s.l.o.WorkerBatch)*r.workers {
			s.l.fail(r.line, "column %s has %g samples per step, but %d per worker on %g workers are %g: write --worker-batch with the samples of one worker, or import each batch of a worker as a table",
				clip(name), v.Number, s.l.o.WorkerBatch, r.workers, float64(s.l.o.WorkerBatch)*r.workers)
		}
	})
}

// eachRow calls f with each row that counts as a run.
func (s *survey) eachRow(f func(t *table, r surveyed)) {
	again := s.again()
	for _, r := range s.rows {
		row, _ := again.Read() // survey has read it
		if s.left[r.number] != "" {
			continue
		}
		f(&table{l: s.l, at: s.at, reads: s.reads, rows: [][]string{row}, line: []int{r.line}}, r)
	}
}

// contradict compares the two rates in one row. It ignores cells that are not numbers, which
// other checks report.
func (s *survey) contradict(t *table, r surveyed, all, one ratedColumn) {
	a, okA := t.readable(0, all.name)
	b, okB := t.readable(0, one.name)
	n := 0.0
	if r.workers < 1 || !okA || !okB || !(a.Number > 0) || !(b.Number > 0) || try(func() { n = t.counts(0, number.PerDevice) }) != nil {
		return
	}
	row := t.rows[0]
	total, sum := a.Number*all.scale, b.Number*one.scale*n
	if math.Abs(total-sum) <= tolerance*sum+rounding(row[s.at[one.name]], one.scale)*n+rounding(row[s.at[all.name]], all.scale) {
		return
	}
	ours := all.figure()
	s.l.fail(r.line, "columns %s and %s contradict each other: %s of all and %s of each of %g, which are %s together; write %s, or %s, for the one that is right",
		clip(all.name), clip(one.name), write(total), write(b.Number*one.scale), n, write(sum),
		mapping(ours, all.name, usual[all.base]), mapping(ours, one.name, usual[one.base]+"/worker"))
}

// rounding returns the value of one unit in the last digit of a number.
func rounding(text string, scale float64) float64 {
	_, fraction, _ := strings.Cut(strings.TrimSpace(text), ".")
	return math.Pow(10, -float64(len(fraction))) * scale
}

// impossible fails if the values of a row cannot all be right as they are mapped.
func (s *survey) impossible() {
	if s.joined != nil {
		return
	}
	nodes := s.columns["nodes"].Name
	for _, o := range s.others {
		if nodes == "" && o.numeric && countsNodes(o.name) {
			nodes = o.name
		}
	}
	threads, rate := s.columns[measure.Threads].Name, s.columns[measure.Rate].Name
	if nodes == "" && threads == "" && rate == "" && s.l.o.At[measure.Threads] == 0 {
		return
	}
	workers := s.columns["workers"].Name
	s.eachRow(func(t *table, r surveyed) {
		if s.loads {
			s.overload(t, r, threads, rate)
			return
		}
		if v, ok := t.readable(0, nodes); nodes != "" && ok && r.workers > 0 && v.Number > r.workers {
			s.l.fail(r.line, "%g nodes and %g workers: a worker is a process on one node, usually one per GPU; map the column that counts them, --map workers=COLUMN (now %s), or the one that counts nodes, --map nodes=COLUMN (now %s)", v.Number, r.workers, clip(workers), clip(nodes))
		}
	})
}

// mostAnswers is the largest ratio of answers to requests per second that can be explained by
// answers at the edges of the measured interval.
const mostAnswers = 1.05

// overload fails if the figures of a load cannot all be right: there are more answers
// than requests, or the latencies are too long for the rate. With N requests in flight, the mean
// latency is at most N / rate (Little's law); latencyShare has the bounds of percentiles.
func (s *survey) overload(t *table, r surveyed, threads, rate string) {
	answered := slices.Index(s.figures, measure.RequestsPerSecond)
	if answered < 0 || !(r.values[answered] > 0) {
		return
	}
	got := r.values[answered]
	if v, ok := t.readable(0, rate); rate != "" && ok && got > mostAnswers*v.Number*s.reads[measure.Rate].scale && v.Number > 0 {
		s.l.fail(r.line, "%s answers/s at %s requests/s: a service cannot answer more than it is sent; if column %s is not the request rate, leave it out or write %s; if column %s is in another unit, say which, like %s",
			write(got), write(v.Number*s.reads[measure.Rate].scale), clip(rate), labelled(rate), clip(s.reads[measure.RequestsPerSecond].Name), mapping(measure.RequestsPerSecond, s.reads[measure.RequestsPerSecond].Name, "requests/min"))
	}
	inFlight := s.l.o.At[measure.Threads]
	if v, ok := t.readable(0, threads); threads != "" && ok {
		inFlight = v.Number
	}
	if !(inFlight > 0) {
		return
	}
	for i, ours := range s.figures {
		share, is := latencyShare[ours]
		if most := share * inFlight / got; is && r.values[i] > 2*most && !s.reads[ours].sure {
			s.l.fail(r.line, "%s of %s s: with %g requests in flight and %s answers/s it is at most %s s; if column %s is in ms, write %s; if the figures are right, %s",
				ours, write(r.values[i]), inFlight, write(got), write(most), clip(s.reads[ours].Name), mapping(ours, s.reads[ours].Name, "ms"), mapping(ours, s.reads[ours].Name, "s"))
		}
	}
}
