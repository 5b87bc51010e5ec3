package extract

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// tfCNNBenchmarks reads the output of tf_cnn_benchmarks of tensorflow/benchmarks. Every worker
// prints a total: its images divided by the wall time of the measured steps, without warm-up. If
// the workers run in lockstep (Horovod, synchronous replicas), the total is multiplied by their
// number.
var tfCNNBenchmarks = Extractor{
	Name:  "tf-cnn-benchmarks",
	Kind:  "train",
	Reads: "total images/sec: X",
	read:  readTFCNN,
}

var (
	tfcnnModel  = regexp.MustCompile(`^Model:\s+(\S+)\s*$`)
	tfcnnMode   = regexp.MustCompile(`^Mode:\s+(?:BenchmarkMode\.)?(\S+)\s*$`)
	tfcnnTotal  = regexp.MustCompile(`^total images/sec: (\d+\.\d\d)\s*$`)
	tfcnnMean   = regexp.MustCompile(`^\d+\s+images/sec: (\d+\.\d) \+/- `)
	tfcnnGlobal = regexp.MustCompile(`^Batch size:\s+(\d+)(?:\.0)? global\s*$`)
	tfcnnDevice = regexp.MustCompile(`^\s+(\d+)(?:\.0)? per device\s*$`)
	tfcnnRule   = regexp.MustCompile(`^-{60,}\s*$`)
)

func readTFCNN(l *log, r io.Reader) {
	var totals []Value
	global, ruled, mean := 0, true, Value{}
	l.rules(r,
		rule{tfcnnTotal, func(ln line, m []string) { totals, ruled = append(totals, l.parse(ln.number, m[1])), false }},
		rule{tfcnnMean, func(ln line, m []string) { mean = l.parse(ln.number, m[1]) }},
		rule{tfcnnModel, func(_ line, m []string) { l.label("workload.model", m[1]) }},
		rule{tfcnnMode, func(ln line, m []string) {
			if !strings.HasPrefix(strings.ToLower(m[1]), "train") {
				l.fail(ln.number, "mode %s: its images/sec are those of an evaluation or of the forward pass alone; only training is read", m[1])
			}
		}},
		rule{tfcnnGlobal, func(ln line, m []string) { global = l.count(ln.number, "a global batch of", m[1]) }},
		rule{tfcnnDevice, func(ln line, m []string) {
			if global == 0 {
				return
			}
			each := l.count(ln.number, "a batch per device of", m[1])
			l.label("workload.batch", int64(each))
			if global%each == 0 {
				l.res.Workers = max(l.res.Workers, global/each)
			}
		}},
		rule{tfcnnRule, func(line, []string) { ruled = true }})
	if totals == nil {
		return
	}
	if !ruled {
		l.note("the dashed line below the last total is missing: the log may be cut off")
	}
	note := "as tf_cnn_benchmarks prints it: one worker's images over the time of the measured steps, times the workers that run in step"
	if len(totals) > 1 {
		byRate := func(a, b Value) int { return cmp.Compare(a.Number, b.Number) }
		least, most := slices.MinFunc(totals, byRate), slices.MaxFunc(totals, byRate)
		low, high := least.Number, most.Number
		if high > sameValue*low {
			l.fail(most.Line, "a total of %g images/s, and %g in line %d: workers in step print the same total, so these are separate trainings. Import them from a file each, with one total and the lines before: %s", high, low, least.Line, oneTotalEach(totals))
		}
		note = fmt.Sprintf("the median of %d totals from %g to %g; each is %s", len(totals), low, high, "one worker's images over the time of the measured steps, times the workers that run in step")
	}
	if workers := max(l.res.Workers, l.o.Workers); mean.Line > 0 && workers > 0 {
		of := math.Round(totals[0].Number / mean.Number) // the workers that run in step
		if of < 1 || of > float64(workers) || !within(totals[0].Number, of*mean.Number, 1.25) {
			l.fail(totals[0].Line, "a total of %g images/s of %s, and their lines state %g: one of the two is damaged, or --workers is wrong", totals[0].Number, number.Count(workers, "worker"), mean.Number)
		}
	}
	l.reduced("throughput", "samples/s", "median", 1, totals, note)
}

// oneTotalEach returns commands that write a file for each training of a log, with its total only.
// Trainings whose totals agree run in step and share a file.
func oneTotalEach(totals []Value) string {
	var commands []string
	for left := totals; len(left) > 0 && len(commands) < 4; {
		alike := func(v Value) bool { return within(v.Number, left[0].Number, sameValue) }
		var drop []string
		for _, v := range slices.DeleteFunc(slices.Clone(totals), alike) {
			drop = append(drop, fmt.Sprintf("%dd", v.Line))
		}
		commands = append(commands, fmt.Sprintf("sed '%s' LOG > %d.log", strings.Join(drop, ";"), len(commands)+1))
		left = slices.DeleteFunc(slices.Clone(left), alike)
	}
	return strings.Join(commands, ", ")
}
