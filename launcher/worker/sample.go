package worker

import (
	"os"
	"strconv"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// sampling is a node's sampler and its file; the zero value samples nothing.
type sampling struct {
	sampler *telemetry.Sampler
	file    *os.File
}

const telemetryWriter = "telemetry"

// sample starts the node's sampler in the supervisor of its first rank. A failure is printed and
// the run continues without samples.
func sample(o Options, of metrics.Start, every study.Duration) sampling {
	if every <= 0 || o.World.LocalRank != 0 {
		return sampling{}
	}
	file, err := OpenEvents(o.Run, telemetryWriter, o.World)
	if err != nil {
		Warn(os.Stderr, "no telemetry: "+err.Error())
		return sampling{}
	}
	of.Writer = telemetryWriter
	of.Ranks = o.World.LocalSize
	events, err := metrics.NewWriter(file, of)
	if err != nil {
		file.Close()
		Warn(os.Stderr, "no telemetry: "+err.Error())
		return sampling{}
	}
	return sampling{telemetry.Start(events, telemetry.Options{Every: time.Duration(every), Devices: o.Devices,
		// The node's: several may be one host, where a cluster is tried out.
		Marks: []telemetry.Mark{{Name: framework.RunVariable, Value: o.Run.Path()}, {Name: supervisorVariable},
			{Name: world.NodeVariable, Value: strconv.Itoa(o.World.Node)}}}), file}
}

// end ends it with a last sample.
func (s sampling) end() {
	// A file that is still written to is left open: the process ends soon.
	if s.sampler != nil && s.sampler.Stop() {
		s.file.Close()
	}
}
