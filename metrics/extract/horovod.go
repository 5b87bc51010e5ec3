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

func readHorovod(l *log, r io.Reader) {
	var from first
	var each, total []Value // rate of one rank and of all ranks: the value and its ±
	l.rules(r,
		rule{horovodModel, func(_ line, m []string) { l.label("workload.model", strings.ToLower(m[1])) }},
		rule{horovodBatch, func(ln line, m []string) { l.label("workload.batch", int64(l.count(ln.number, "a batch of", m[1]))) }},
		rule{horovodEach, func(ln line, m []string) {
			if from.takes(ln) {
				l.once(ln.number, "result", each...)
				each = l.parseAll(ln.number, m[1:]...)
			}
		}},
		rule{horovodTotal, func(ln line, m []string) {
			if from.takes(ln) {
				l.once(ln.number, "total", total...)
				l.workersAre(l.count(ln.number, "a total on", m[1]), "its total", ln.number)
				total = l.parseAll(ln.number, m[2:]...)
			}
		}})
	switch {
	case each == nil && total == nil:
		return
	case total == nil:
		l.fail(each[0].Line, "a rank's rate, but no line with the total: the log was cut off")
	case each == nil:
		l.fail(total[0].Line, "a total, but no line with the rank's rate behind it: the log is incomplete")
	}
	from.note(l)
	l.horovod(each, total)
}

// horovod adds the rates. The total must equal the rate times the number of ranks, up to the
// rounding of both, or the log is damaged.
func (l *log) horovod(each, total []Value) {
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
