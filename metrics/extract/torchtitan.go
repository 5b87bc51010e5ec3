package extract

import (
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// torchtitan reads the lines that torchtitan's MetricsProcessor prints. Its tps is the rate of
// one device in tokens/s: a rank's tokens divided by the time and by the degrees of tensor,
// context and pipeline parallelism. Memory is the peak that was reserved since the previous line.
// LOG_RANK decides which ranks print.
var torchtitan = Extractor{
	Name:  "torchtitan",
	Kind:  "train",
	Reads: "step: N  loss: X  memory: XGiB(X%)  tps: N  tflops: X  mfu: X%",
	read:  titanLog.read,
}

// titanFields matches the fields of a step and of a validation. A line without memory and rate
// was cut off or is another program's. In 2024 tps was called wps.
const titanFields = `step: +(?P<step>\d+)  (?P<fields>loss: .*memory: +\d+\.\d+GiB\(\d+\.\d+%\)\s.*[tw]ps: *\S.*)$`

var titanLog = &stepFormat{
	program: "torchtitan", starting: 1, convention: "torchtitan",
	line: regexp.MustCompile(`(?:^|\s)` + titanFields),
	pair: titanPair,
	fields: []stepField{
		{"memory", reservedMemory, 1 << 30, regexp.MustCompile(`^(\d+\.\d+)GiB\(`)},
		{"tps", tokensPerGPU, 1, nil},
		{"wps", tokensPerGPU, 1, nil},
		{"tflops", flopsPerGPU, 1e12, nil},
		{"mfu", reportedMFU, 0.01, regexp.MustCompile(`^(.*)%$`)}, // N/A if a quantised model has no single peak
	},
	ignored: regexp.MustCompile(`^(?:.*loss.*|.*norm.*|lr)$`),
	others: []stepLine{
		{regexp.MustCompile(`Building \d+-D device mesh with \[[^\]]*\], \[(\d+(?:, \d+)*)\]\s*$`),
			func(s *stepLog, ln line, m []string) { s.mesh(ln.number, strings.Split(m[1], ", ")) }},
		// Expert parallelism subdivides the other dimensions.
		{regexp.MustCompile(`Building device mesh with parallelism: pp=(\d+), dp_replicate=(\d+), dp_shard=(\d+), cp=(\d+), tp=(\d+)(?:,|\s*$)`),
			func(s *stepLog, ln line, m []string) { s.mesh(ln.number, m[1:]) }},
		evaluationLine(regexp.MustCompile(`(?:^|\s)validate step: +(\d+)  loss: +(\S+) .*memory: +\d+\.\d+GiB\(\d+\.\d+%\)\s.*[tw]ps: *\S`)),
	},
	more: titanLoss,
}

var titanPair = regexp.MustCompile(`([a-z_]+): +(\S+)`)

// titanLoss adds the loss of a step. Only ranks of the last pipeline stage have one; others print
// a negative number.
func titanLoss(s *stepLog, ln line, step int, fields parts) {
	if x := fields["loss"]; strings.HasPrefix(x, "-") && !strings.Contains(x, "n") {
		s.l.note("negative losses come from a pipeline stage without a loss and are left out: log the last stage's rank (LOG_RANK; in a study, command.printed_by = \"last\")")
		return
	}
	s.lossOf(ln.number, "step", float64(step), fields["loss"])
}

var grouped = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)

// ungrouped returns a number without thousands separators.
func ungrouped(text string) string {
	if grouped.MatchString(text) {
		return strings.ReplaceAll(text, ",", "")
	}
	return text
}

// mesh sets the number of devices to the product of the mesh's dimensions.
func (s *stepLog) mesh(ln int, degrees []string) {
	devices := 1
	for _, degree := range degrees {
		n := s.l.count(ln, "a mesh dimension of", degree)
		if devices *= n; devices > metrics.MaxRanks {
			s.l.fail(ln, "a mesh of %s; want at most %d devices", clip(strings.Join(degrees, " × ")), metrics.MaxRanks)
		}
	}
	s.devicesAre(devices, "the device mesh", ln)
}
