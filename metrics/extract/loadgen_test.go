package extract

import (
	"os"
	"strings"
	"testing"
)

// Offline sends all samples in one query, so LoadGen's latencies are the times at which
// samples ended, and are not read. Rates count samples; here a query has two.
func TestLoadGenVariants(t *testing.T) {
	file := func(scenario string, replaced ...string) string {
		text, err := os.ReadFile("testdata/mlperf-loadgen-" + scenario + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(replaced...).Replace(string(text))
	}
	runVariants(t, "mlperf-loadgen", []variant{
		{name: "offline", text: file("offline"), want: []string{" samples_per_second 1890.19 samples/s batch 2200 threads 1"},
			never: []string{"latency", "requests_per_second"}, says: "a sample's latency says when it was ready"},
		{name: "server", text: file("server"), want: []string{" requests_per_second 197.77 requests/s batch 1 rate 200"}},
		{name: "server, two samples a query", text: file("server", "samples_per_query : 1", "samples_per_query : 2"),
			want: []string{" requests_per_second 98.885 requests/s batch 2 rate 200", " samples_per_second 197.77 samples/s batch 2 rate 200"}},
		{name: "several samples", text: file("multistream"), never: []string{"requests_per_second", "samples_per_second"}, says: "its rate is not stated"},
		{name: "another scenario", text: file("server", ": Server", ": Client"), refused: "known are SingleStream, MultiStream, Server and Offline"},
		{name: "no samples per query", text: file("server", "samples_per_query :", "samples_of_query :"), refused: "a summary without samples_per_query"},
		{name: "no target", text: file("server", "target_qps :", "target_of_qps :"), refused: "a summary without target_qps"},
	})
}
