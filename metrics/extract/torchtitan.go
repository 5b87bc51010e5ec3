package extract

import (
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// torchtitan reads the lines of torchtitan's MetricsProcessor. Its tps are tokens/s
// of a device: a rank's own tokens over the time and over the degrees of tensor,
// context and pipeline parallelism. Memory is the peak that was reserved since the
// line before. Each rank may print, by LOG_RANK.
var torchtitan = Extractor{
	Name:  "torchtitan",
	Kind:  "train",
	Reads: "step: N  loss: X  memory: XGiB(X%)  tps: N  tflops: X  mfu: X%",
	read:  readTorchtitan,
}

var (
	titanStep   = regexp.MustCompile(`(?:^|\s)(validate )?step: +(\d+)  (loss: .*)$`)
	titanPair   = regexp.MustCompile(`([a-z_]+): +(\S+)`)
	titanMemory = regexp.MustCompile(`^(\d+\.\d+)GiB\(\d+\.\d+%\)$`)
	titanRead   = regexp.MustCompile(`^(?:.*loss.*|.*norm.*|lr|memory|tps|wps|tflops|mfu)$`)
	titanMesh   = regexp.MustCompile(`Building \d+-D device mesh with \[[^\]]*\], \[(\d+(?:, \d+)*)\]\s*$`)
	// Degrees of expert parallelism are within those of the others.
	titanDegrees = regexp.MustCompile(`Building device mesh with parallelism: pp=(\d+), dp_replicate=(\d+), dp_shard=(\d+), cp=(\d+), tp=(\d+)(?:,|\s*$)`)
	grouped      = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)
)

// ungrouped is a number without the commas between its thousands.
func ungrouped(text string) string {
	if grouped.MatchString(text) {
		return strings.ReplaceAll(text, ",", "")
	}
	return text
}

// mesh takes the number of devices, which is the product of the mesh's dimensions.
func (s *stepLog) mesh(ln int, degrees []string) error {
	devices := 1
	for _, degree := range degrees {
		n, err := s.l.count(ln, "a mesh dimension of", degree)
		if err != nil {
			return err
		}
		if devices *= n; devices > metrics.MaxRanks {
			return s.l.errorAt(ln, "a mesh of %s; want at most %d devices", clip(strings.Join(degrees, " × ")), metrics.MaxRanks)
		}
	}
	s.devicesAre(devices, "the device mesh", ln)
	return nil
}

func readTorchtitan(l *log, r io.Reader) error {
	s := newStepLog(l, "torchtitan", 1)
	s.convention = "torchtitan"
	err := l.each(r, func(ln line) error {
		if m := titanMesh.FindStringSubmatch(ln.text); m != nil {
			return s.mesh(ln.number, strings.Split(m[1], ", "))
		}
		if m := titanDegrees.FindStringSubmatch(ln.text); m != nil {
			return s.mesh(ln.number, m[1:])
		}
		m := titanStep.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		fields := parts{}
		for _, pair := range titanPair.FindAllStringSubmatch(m[3], -1) {
			if err := fields.put(l, ln.number, pair[1], pair[2]); err != nil {
				return err
			}
		}
		rate, rated := fields["tps"]
		if !rated {
			rate, rated = fields["wps"] // as it was called in 2024
		}
		memory := titanMemory.FindStringSubmatch(fields["memory"])
		if !rated || memory == nil {
			return nil // a line that was cut, or another program's
		}
		if m[1] != "" {
			return s.evaluationAt(ln, m[2], fields["loss"])
		}
		step, err := l.whole(ln.number, m[2])
		if err != nil {
			return err
		}
		if ok, err := s.takes(ln, step); !ok {
			return err
		}
		if strings.HasPrefix(fields["loss"], "-") && !strings.Contains(fields["loss"], "n") {
			l.note("the losses below 0 are those of a pipeline stage that has none, and are left out: log the last stage's rank (LOG_RANK; in a study, command.printed_by = \"last\")")
		} else if err := s.lossOf(ln.number, "step", float64(step), fields["loss"]); err != nil {
			return err
		}
		s.unread(ln.number, fields, titanRead.MatchString)
		if err := s.number(ln.number, reservedMemory, memory[1], 1<<30); err != nil {
			return err
		}
		if err := s.number(ln.number, tokensPerGPU, ungrouped(rate), 1); err != nil {
			return err
		}
		if x, ok := fields["tflops"]; ok {
			if err := s.number(ln.number, flopsPerGPU, ungrouped(x), 1e12); err != nil {
				return err
			}
		}
		x, ok := strings.CutSuffix(fields["mfu"], "%")
		if !ok { // N/A, where a quantised model has no one peak
			return nil
		}
		return s.number(ln.number, reportedMFU, x, 0.01)
	})
	if err != nil {
		return err
	}
	return s.finish()
}
