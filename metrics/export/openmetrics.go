package export

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

var openMetricsFormat = Format{
	Name:   "openmetrics",
	About:  "a text file of gauges (Prometheus, node_exporter's textfile collector, VictoriaMetrics)",
	Suffix: ".prom",
	file:   writeOpenMetrics,
}

// families collects samples by metric family, since a family must be in one piece. A file of many
// runs is large and repeats itself, so most of it waits in compressed form.
type families map[string]*family

type family struct {
	samples dto.MetricFamily // those that are not yet in written
	begun   bool             // written begins with the family's header
	written bytes.Buffer     // text, as one DEFLATE stream for each pack
}

func writeOpenMetrics(ctx context.Context, s *Source, w io.Writer) error {
	all := families{}
	packer, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		return err
	}
	const often = 100 // runs
	runs := 0
	err = s.each(ctx, func(r *store.RunFacts) error {
		labels := runLabels(r)
		all.add("scalebench_run_info", "", "a run; its status and, unless it is done, the reason", 1,
			slices.Concat(labels, pairs("kind", r.Kind, "point", r.Point, "detail", r.Detail, "git_commit", r.GitCommit, "tags", r.Tags)))
		all.add("scalebench_run_created_seconds", "seconds", "when the run was created, as seconds since 1970", metrics.Unix(r.Created), labels)
		for _, v := range r.Results {
			measured := slices.Concat(labels, pairs("measure", v.Measure))
			for _, key := range slices.Sorted(maps.Keys(v.At)) {
				measured = append(measured, pairs("at_"+identifier(key), placed(map[string]any{key: v.At[key]})[len(key)+1:])...)
			}
			if v.Reached != nil {
				reached := 0.0
				if *v.Reached {
					reached = 1
				}
				all.add("scalebench_target_reached", "", "1 if the run reached the target", reached, measured)
			}
			if v.Value != nil {
				name, unit := metricName(v.Measure, v.Unit)
				all.add(name, unit, "of one run, in "+unitText(v.Unit), *v.Value, measured)
			}
		}
		if runs++; runs%often == 0 {
			return all.pack(packer, often)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := all.write(w, packer); err != nil {
		return err
	}
	_, err = expfmt.FinalizeOpenMetrics(w)
	return err
}

// add adds a sample to its family.
func (f families) add(name, unit, help string, value float64, labels []*dto.LabelPair) {
	if f[name] == nil {
		f[name] = &family{samples: dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}}
		if unit != "" {
			f[name].samples.Unit = &unit
		}
	}
	list := &f[name].samples.Metric
	*list = append(*list, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}})
}

// pack compresses the samples of families that have at least so many.
func (f families) pack(packer *flate.Writer, least int) error {
	for _, one := range f {
		if len(one.samples.Metric) < least {
			continue
		}
		var text bytes.Buffer
		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, &one.samples); err != nil {
			return err
		}
		if one.begun { // the header is then a single line, the type
			_, _ = text.ReadBytes('\n')
		}
		packer.Reset(&one.written)
		if _, err := text.WriteTo(packer); err != nil {
			return err
		}
		if err := packer.Close(); err != nil {
			return err
		}
		one.begun = true
		one.samples = dto.MetricFamily{Name: one.samples.Name, Type: one.samples.Type}
	}
	return nil
}

// write writes all families, sorted by name, and empties them.
func (f families) write(w io.Writer, packer *flate.Writer) error {
	if err := f.pack(packer, 1); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		for packs := &f[name].written; packs.Len() > 0; {
			if _, err := io.Copy(w, flate.NewReader(packs)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runLabels returns the labels of every sample of a run.
func runLabels(r *store.RunFacts) []*dto.LabelPair {
	return pairs("study", r.Study, "run", r.Run, "series", r.Series, "framework", r.Framework, "workers", strconv.Itoa(r.Workers),
		"nodes", strconv.Itoa(r.Nodes), "status", string(r.Status), "counts", strconv.FormatBool(r.Counts))
}

// pairs returns labels of the names and values, which alternate.
func pairs(list ...string) []*dto.LabelPair {
	var labels []*dto.LabelPair
	for i := 0; i < len(list); i += 2 {
		labels = append(labels, &dto.LabelPair{Name: proto.String(list[i]), Value: proto.String(text(list[i+1]))})
	}
	return labels
}

// unitWords are OpenMetrics' words for units, as they occur before and after a "/".
var unitWords = map[string][2]string{"s": {"seconds", "second"}, "B": {"bytes", "byte"}, "J": {"joules", "joule"}, "W": {"watts", "watt"}}

// metricName returns the name of a measure's family, which ends with its unit, and the unit:
// "scalebench_throughput_samples_per_second" and "samples_per_second".
func metricName(measure, unit string) (name, word string) {
	for i, part := range strings.Split(unit, "/") {
		if words, known := unitWords[part]; known {
			part = words[min(i, 1)]
		}
		if i > 0 {
			word += "_per_"
		}
		word += part
	}
	name, word = "scalebench_"+identifier(measure), identifier(word)
	if word != "" && !strings.HasSuffix(name, "_"+word) {
		name += "_" + word
	}
	return name, word
}

// identifier replaces all characters but ASCII letters, digits and "_" by "_". The label measure
// has the original name.
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || !word(r) {
			return '_'
		}
		return r
	}, s)
}

// unitText names a unit in a sentence.
func unitText(unit string) string {
	if unit == "" {
		return "no unit: a count or a fraction"
	}
	return unit
}
