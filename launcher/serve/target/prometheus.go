package target

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// Scrape reads the metrics of a server in Prometheus' text format. It also returns the text.
func Scrape(ctx context.Context, url string, headers map[string]string) (loadtest.ServerMetrics, []byte, error) {
	text, err := Get(ctx, url, headers)
	if err != nil {
		return nil, nil, err
	}
	values, err := parseMetrics(text)
	if err != nil {
		return nil, text, fmt.Errorf("%s: %w", url, err)
	}
	return values, text, nil
}

// parseMetrics parses Prometheus' text format. Of histograms and summaries it keeps name_sum and name_count.
func parseMetrics(text []byte) (loadtest.ServerMetrics, error) {
	parser := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not metrics in Prometheus' text format: %w", err)
	}
	values := loadtest.ServerMetrics{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				values.Add(name, m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				values.Add(name, m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				values.Add(name+"_sum", m.GetHistogram().GetSampleSum())
				values.Add(name+"_count", float64(m.GetHistogram().GetSampleCount()))
			case dto.MetricType_SUMMARY:
				values.Add(name+"_sum", m.GetSummary().GetSampleSum())
				values.Add(name+"_count", float64(m.GetSummary().GetSampleCount()))
			default:
				values.Add(name, m.GetUntyped().GetValue())
			}
		}
	}
	return values, nil
}
