package export

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/scalebench/scalebench/metrics/store"
)

var otlpFormat = Format{
	Name:   "otlp",
	About:  "OpenTelemetry metrics as OTLP JSON lines (the collector's otlpjsonfile receiver)",
	Suffix: "-otlp.jsonl",
	file:   writeOTLP,
}

// writeOTLP writes a line for each run, whose resource is the run.
func writeOTLP(ctx context.Context, s *Source, w io.Writer) error {
	encode := protojson.MarshalOptions{UseEnumNumbers: true} // as OTLP requires
	return s.each(ctx, func(r *store.RunFacts) error {
		line, err := encode.Marshal(&otlp.MetricsData{ResourceMetrics: []*otlp.ResourceMetrics{otlpRun(s, r)}})
		if err != nil {
			return fmt.Errorf("%s: %w", r.Run, err)
		}
		_, err = w.Write(append(line, '\n'))
		return err
	})
}

func otlpRun(s *Source, r *store.RunFacts) *otlp.ResourceMetrics {
	attributes := map[string]any{"service.name": "scalebench", "scalebench.study": r.Study, "scalebench.run": r.Run, "scalebench.series": r.Series, "scalebench.status": string(r.Status),
		"scalebench.detail": r.Detail, "scalebench.counts": r.Counts, "scalebench.framework": r.Framework, "scalebench.workers": int64(r.Workers), "scalebench.nodes": int64(r.Nodes)}
	for key, v := range r.Parameters {
		attributes["scalebench.parameter."+key] = v
	}
	at := uint64(r.Created.UnixNano())
	gauge := func(name, unit string, value float64, at []*common.KeyValue, when uint64) *otlp.Metric {
		return &otlp.Metric{Name: text(name), Unit: otlpUnit(unit), Data: &otlp.Metric_Gauge{Gauge: &otlp.Gauge{DataPoints: []*otlp.NumberDataPoint{{
			TimeUnixNano: when, Attributes: at, Value: &otlp.NumberDataPoint_AsDouble{AsDouble: value}}}}}}
	}
	// A run without values has this one, so that it is not lost: receivers drop empty resources.
	good := 0.0
	if r.Status.Good() {
		good = 1
	}
	list := []*otlp.Metric{gauge("scalebench.done", "", good, nil, at)}
	for _, v := range r.Results {
		if v.Value != nil {
			list = append(list, gauge("scalebench."+v.Measure, v.Unit, *v.Value, otlpAttributes(v.At), at))
		}
	}
	return &otlp.ResourceMetrics{
		Resource:     &resource.Resource{Attributes: otlpAttributes(attributes)},
		ScopeMetrics: []*otlp.ScopeMetrics{{Scope: &common.InstrumentationScope{Name: text(s.Program)}, Metrics: list}},
	}
}

// otlpUnit returns a unit as UCUM writes it, where scalebench's differs: units that are words are
// annotations in braces.
func otlpUnit(unit string) string {
	switch unit {
	case "":
		return "1"
	case "s", "J", "W", "Hz":
		return unit
	case "B/s":
		return "By/s"
	case "B":
		return "By"
	}
	return "{" + text(unit) + "}"
}

func otlpAttributes(of map[string]any) []*common.KeyValue {
	var list []*common.KeyValue
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list = append(list, &common.KeyValue{Key: text(key), Value: otlpValue(of[key])})
	}
	return list
}

func otlpValue(v any) *common.AnyValue {
	switch v := v.(type) {
	case bool:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v}}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text(plain(v))}}
}
