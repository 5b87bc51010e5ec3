package extract

import (
	"math"
	"strings"
	"testing"
)

// Numbers with units, scopes and separators that many programs do not print. The values are worked
// out by hand; want 0: refused with the text says.
func TestRareForms(t *testing.T) {
	rate := Pattern{Name: "throughput", Pattern: `: (?P<value>[\d.]+)`, Unit: "img/s"}
	named := Pattern{Name: "throughput", Pattern: `: (?P<value>[\d.]+) img`, Unit: "img/s"}
	const vegeta = `{"latencies":{"total":120600000,"mean":40200,"50th":38500,"99th":90400},"bytes_in":{"total":300000},"requests":3000}`
	tail := Pattern{Name: "own_p99", Pattern: `"99th": ?(?P<value>[\d.]+)`, Unit: "s"}
	inNS := Pattern{Name: "own_p99", Pattern: `"99th": ?(?P<value>[\d.]+)`, Unit: "ns"}
	seconds := Pattern{Name: "train_seconds", Pattern: `: (?P<value>[\d.:]+)`, Unit: "s"}
	for _, c := range []struct {
		p    Pattern
		log  string
		want float64
		says string
	}{
		{tail, vegeta, 0, "write unit = \"ns\""},
		{inNS, vegeta, 90.4e-6, ""},
		{tail, `  "99th": 90400000,`, 0, "write unit = \"ns\""},
		{tail, `  "99th": 0.0904,`, 0.0904, ""},
		{seconds, "time: 1d 02:03:04", 93784, ""}, // 86,400 + 7,384
		{seconds, "time: 1 Std. 2 Min.", 3720, ""},
		{seconds, "time: 2 Stunden", 7200, ""},
		{seconds, "time: 2 heures 5 minutes", 7500, ""},
		{seconds, "time: 01:02:03,500", 0, "is only part of a number"},
		{Pattern{Name: "train_seconds", Pattern: `: (?P<value>[\d.]+)`, Unit: "s"}, "time: 01:02:03:500", 0, "is only part of a number"},
		{rate, "rate: 500 Bilder/s pro GPU", 0, "for each device (per GPU)"},
		{rate, "rate: 500 img/s je Karte", 0, "for each device (per Karte)"},
		{rate, "rate: 500 img/s on each GPU", 0, "for each device (per GPU)"},
		{rate, "rate: 500 img/s 每GPU", 0, "for each device (per GPU)"},
		{rate, "rate: 500 img/s a GPU", 0, "for each device (a GPU)"},
		{rate, "rate: 500 img/s @ 1 GPU", 0, "for each device (@ 1 GPU)"},
		{rate, "rate: 500 img s⁻¹ GPU⁻¹", 0, "for each device (GPU⁻¹)"},
		{rate, "rate: 500 img/s (rank avg)", 0, "for each device (rank avg)"},
		{rate, "rate: 500 img/s, averaged over ranks", 500, ""},
		{rate, "my rate: 500 img/s", 0, "for each device (my)"},
		{named, "rate: 500 img/s per socket", 0, `per "socket"`},
		{named, "rate: 500 img/s per interval", 500, ""},
		{rate, "rate: 500 img/epoch", 0, `"img/epoch" after the number`},
		{rate, "rate(k): 1.5 img/s", 0, "states a factor"},
		{rate, "rate: 1.5 Mio img/s", 0, "in thousands or more"},
		{rate, "rate: 1 234,5 img/s", 0, "thousands separators"},
		{rate, "rate: 120 img/s", 120, ""},
		{Pattern{Name: "throughput", Pattern: `sec/kimg (?P<value>[\d.]+)`, Unit: "img/s"}, "tick 1 sec/kimg 4.0", 250, "read in sec/kimg"},
		{rate, "[rank 0] rate: 500 img/s", 500, "only rank 0 states throughput"},
		{rate, "0: rate: 500 img/s", 500, "only rank 0 states throughput"},
		{rate, "0: total rate: 500 img/s", 500, ""},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.log+"\n"), Options{Workers: 8})
		said, got := strings.Join(r.Notes, "\n"), 0.0
		if err != nil {
			said = err.Error()
		}
		for f := range r.Findings() {
			got = f.Event.Figure.Value
		}
		if math.Abs(got-c.want) > 1e-9*c.want || !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s: %g, %q; want %g, %q", c.log, got, said, c.want, c.says)
		}
	}
}
