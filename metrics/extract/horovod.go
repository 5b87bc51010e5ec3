package extract

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// horovodSynthetic reads the output of Horovod's examples/*_synthetic_benchmark.py, which all
// print the same lines. They measure on rank 0 only. One iteration gives the mean rate over
// num_batches_per_iter batches. They print the mean over iterations ± 1.96 standard deviations of
// the iterations (not of the mean), and a total: the two numbers multiplied by the number of
// ranks.
var horovodSynthetic = Extractor{
	Name:  "horovod-synthetic",
	Kind:  "train",
	Reads: "Total img/sec on N GPU(s): X +-Y",
	read:  readHorovod,
}

var (
	horovodModel = regexp.MustCompile(`^Model: (\S+)\s*$`)
	horovodBatch = regexp.MustCompile(`^Batch size: (\d+)\s*$`)
	horovodEach  = regexp.MustCompile(`^Img/sec per [A-Za-z]+: (\d+\.\d+) \+-(\d+\.\d+)\s*$`)
	horovodTotal = regexp.MustCompile(`^Total img/sec on (\d+) [A-Za-z]+\(s\): (\d+\.\d+) \+-(\d+\.\d+)\s*$`)
)

// horovodRun is the parser's state while it reads one log of the benchmark.
type horovodRun struct {
	l           *log
	from        first
	each, total []Value // rate of one rank and of all ranks: the value and its ±
}

func readHorovod(l *log, r io.Reader) {
	h := &horovodRun{l: l}
	l.each(r, h.line)
	switch {
	case h.each == nil && h.total == nil:
		return
	case h.total == nil:
		l.fail(h.each[0].Line, "a rank's rate, but no line with the total: the log was cut off")
	case h.each == nil:
		l.fail(h.total[0].Line, "a total, but no line with the rank's rate behind it: the log is incomplete")
	}
	h.from.note(l)
	h.figures()
}

func (h *horovodRun) line(ln line) {
	l := h.l
	if m := horovodModel.FindStringSubmatch(ln.text); m != nil {
		l.label("workload.model", strings.ToLower(m[1]))
	}
	if m := horovodBatch.FindStringSubmatch(ln.text); m != nil {
		n := l.count(ln.number, "a batch of", m[1])
		l.label("workload.batch", int64(n))
		return
	}
	if m := horovodEach.FindStringSubmatch(ln.text); m != nil && h.from.takes(ln) {
		if h.each != nil {
			l.fail(ln.number, "a second result; the first is on line %d. One log is one run: split it", h.each[0].Line)
		}
		l.parseAll(ln.number, &h.each, m[1:]...)
		return
	}
	m := horovodTotal.FindStringSubmatch(ln.text)
	if m == nil || !h.from.takes(ln) {
		return
	}
	if h.total != nil {
		l.fail(ln.number, "a second total; the first is on line %d. One log is one run: split it", h.total[0].Line)
	}
	n := l.count(ln.number, "a total on", m[1])
	l.workersAre(n, "its total", ln.number)
	l.parseAll(ln.number, &h.total, m[2:]...)
}

// figures adds the rates. The total must equal the rate times the number of ranks, up to the
// rounding of both, or the log is damaged.
func (h *horovodRun) figures() {
	l, each, total := h.l, h.each, h.total
	n := float64(l.res.Workers)
	if math.Abs(total[0].Number-n*each[0].Number) > 0.051*(n+1) {
		l.fail(total[0].Line, "a total of %g, where %d ranks at %g make %g: one of the two is damaged",
			total[0].Number, l.res.Workers, each[0].Number, n*each[0].Number)
	}
	note := "as Horovod's benchmark prints it: rank 0's rate, not an aggregate over ranks"
	if l.res.Workers > 1 {
		note = fmt.Sprintf("as Horovod's benchmark prints it: rank 0's rate times %d, not a measured aggregate", l.res.Workers)
	}
	const is = "1.96 σ over the iterations of rank 0; no confidence interval"
	stated := func(name string, v, plusMinus Value, note string) {
		l.add(metrics.Event{Figure: &metrics.Figure{Name: name, Value: v.Number, Unit: "samples/s", PlusMinus: &plusMinus.Number, PlusMinusIs: is, Note: note}}, 1, v)
	}
	stated("throughput", total[0], total[1], note)
	stated("throughput_per_worker", each[0], each[1], "rank 0's, the mean of its iterations")
}

// parseAll parses numbers of a line and appends them to into.
func (l *log) parseAll(ln int, into *[]Value, texts ...string) {
	for _, t := range texts {
		v := l.parse(ln, t)
		*into = append(*into, v)
	}
}
