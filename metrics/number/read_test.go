package number

import (
	"math"
	"strings"
	"testing"
)

// Expected values are in the base unit, calculated by hand.
func TestRead(t *testing.T) {
	for text, want := range map[string]struct {
		value float64 // in the base unit
		base  string
	}{
		"12.3k tok/s":             {12300, "tokens/s"},
		"1.86M":                   {1.86e6, ""},
		"1,234.5":                 {1234.5, ""},
		"1,234.5 img/s":           {1234.5, "samples/s"},
		"3.2 ms/step":             {312.5, "steps/s"},
		"1.2e+06":                 {1.2e6, ""},
		"98%":                     {0.98, ""},
		"98 %":                    {0.98, ""},
		"0:01:02.5":               {62.5, "s"},
		"03:25<12:00, 2.31s/it":   {205, "s"},
		"1 day, 0:00:55":          {86455, "s"},
		"1-02:03:04":              {93784, "s"},
		"4m05s":                   {245, "s"},
		"1h02m":                   {3720, "s"},
		"1h02m left":              {3720, "s"},
		"1h02":                    {3720, "s"},
		"0:01.23elapsed":          {1.23, "s"},
		"1:02.50":                 {62.5, "s"},
		"1h02x":                   {1, ""},
		"00h:12m:34s":             {754, "s"}, // 720 + 34
		"1:02:03h":                {3723, "s"},
		"1w2d":                    {777600, "s"}, // 9 days
		"1w 2d 3h":                {788400, "s"},
		"2w":                      {1209600, "s"},
		"1 week, 2 days, 3:04:05": {788645, "s"}, // 777,600 + 11,045
		"PT1H2M3S":                {3723, "s"},
		"P1DT2H":                  {93600, "s"},
		"PT90.5S":                 {90.5, "s"},
		"P2W":                     {1209600, "s"},
		"2.1 GiB":                 {2254857830.4, "B"},
		"1.86M/s":                 {1.86e6, "/s"},
		"250us":                   {0.00025, "s"},
		"250 µs":                  {0.00025, "s"},
		"250μs":                   {0.00025, "s"},
		"2.31s/it]":               {1 / 2.31, "steps/s"},
		"1.6it/s, loss=1":         {1.6, "steps/s"},
		"1.1000 s / it)":          {1 / 1.1, "steps/s"},
		"120.0TFLOPS":             {1.2e14, "FLOP/s"},
		"2.5 M tokens/s":          {2.5e6, "tokens/s"},
		"900 tokens per second":   {900, "tokens/s"},
		"6000 img/min":            {100, "samples/s"},
		"15.5K tokens/s/GPU":      {15500, "tokens/s"},
		"12.5 min 10.1 max 15.2":  {12.5, ""}, // "min" means minimum here
		"12.5 ms: 3":              {12.5, ""}, // ms names the next number
		"3 steps 4":               {3, ""},
		"12.5 loss":               {12.5, ""},
		"12.5 M people":           {12.5, ""},
		"12.5 s loss":             {12.5, "s"},
		"40 Gbit/s":               {5e9, "B/s"},
		"12.":                     {12, ""},
		"1,234,567":               {1234567, ""},
		"12:34:56:78":             {12, ""}, // not a duration
		"7ms":                     {0.007, "s"},
		"5 (ms)":                  {0.005, "s"},
		"1.5 sec/batch":           {1 / 1.5, "steps/s"},
		"80 ms/1k":                {0.08, "s"},
		"1.25 ktok/s":             {1250, "tokens/s"},
		"3 s/sec":                 {3, "s"},
	} {
		r, ok := Read(text)
		if !ok {
			t.Errorf("%q is no number", text)
			continue
		}
		got, base := r.Value, ""
		if r.Known {
			base = r.Parsed.Base
			if got *= r.Parsed.Scale; r.Parsed.Inverse {
				got = 1 / got
			}
		}
		if base != want.base || math.Abs(got-want.value) > 1e-9*want.value {
			t.Errorf("%q: %v %s, want %v %s (%+v)", text, got, base, want.value, want.base, r)
		}
	}
	for _, text := range []string{"", "x", "s 12", ":12", "P", "PT", "PID", "-", "1e999"} {
		if r, ok := Read(text); ok {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestIn(t *testing.T) {
	for _, c := range []struct {
		from, to string
		x, want  float64 // 0: cannot be converted
	}{
		{"ms", "s", 4240, 4.24}, {"K", "ms", 4.24, 4240}, {"K", "tokens/s", 989, 989000}, {"M", "ktok/s", 1.86, 1860}, {"M/s", "tokens/s", 1.86, 1.86e6},
		{"it/s", "s/it", 4, 0.25}, {"s/it", "it/s", 1.6, 0.625}, {"ms/it", "s/it", 250, 0.25}, {"it/s", "img/s", 4, 0}, {"s", "tokens/s", 4, 0},
		{"us", "s", 20006, 0.020006}, {"M/s", "s", 1, 0}, {"%", "fraction", 98, 0.98},
	} {
		from, ok := ParseUnit(c.from)
		to, known := ParseUnit(c.to)
		if !ok || !known {
			t.Fatal(c)
		}
		if y, ok := from.In(to, c.x); ok != (c.want != 0) || ok && math.Abs(y-c.want) > 1e-12*c.want {
			t.Errorf("%g %s are %g %s (%v), want %g", c.x, c.from, y, c.to, ok, c.want)
		}
	}
	for _, text := range []string{"", "/", "eq", "kb", "gb", "S", "loss", "s/sec", "per", "()", "a/b/c/d", "m"} {
		if u, ok := ParseUnit(text); ok {
			t.Errorf("%q: %+v", text, u)
		}
	}
}

// A unit has the same meaning alone and at the end of a name.
func TestUnits(t *testing.T) {
	for text, want := range map[string]Unit{
		"frames/s": {Base: "samples/s", Scale: 1}, "kimg/min": {Base: "samples/s", Scale: 1000. / 60}, "queries per second": {Base: "requests/s", Scale: 1},
		"tok/s/gpu": {Base: "tokens/s", Scale: 1, Per: PerDevice}, "samples/s/node": {Base: "samples/s", Scale: 1, Per: PerNode}, "TGS": {Base: "tokens/s", Scale: 1, Per: PerDevice},
		"ms/step": {Base: "steps/s", Scale: 1e-3, Inverse: true}, "s/it": {Base: "steps/s", Scale: 1, Inverse: true}, "seconds per epoch": {Base: "s", Scale: 1},
		"GiB/s": {Base: "B/s", Scale: 1 << 30}, "Gbps": {Base: "B/s", Scale: 0.125e9}, "TFLOPS": {Base: "FLOP/s", Scale: 1e12}, "TFLOP/s/GPU": {Base: "FLOP/s", Scale: 1e12, Per: PerDevice},
		"TFLOPs/s": {Base: "FLOP/s", Scale: 1e12}, "million tokens per day": {Base: "tokens/s", Scale: 1e6 / 86400}, "ms": {Base: "s", Scale: 1e-3}, "%": {Scale: 0.01},
	} {
		u, ok := ParseUnit(text)
		if !ok || u != want {
			t.Errorf("%q: %+v %v, want %+v", text, u, ok, want)
		}
		named := meanings(Divided(Words("mean "+text)), true)
		if len(named) == 0 || named[0] != want && !(len(named) == 2 && named[1] == want) {
			t.Errorf("mean %q: %+v, want %+v", text, named, want)
		}
	}
	for _, text := range []string{"ips", "words/s", "img/step", "12/s", "img_s", "x y", "tokens/s/GPU/node", "gpu", "GPU/s", "s/GPU/s", "/GPU"} {
		if u, ok := ParseUnit(text); ok {
			t.Errorf("%q: %+v", text, u)
		}
	}
}

func TestKeyUnit(t *testing.T) {
	for before, want := range map[string]string{
		"x time_ms=": "s", "elapsed time per iteration (ms): ": "s", "tokens_per_sec_per_gpu: ": "tokens/s", "elapsed_time_per_iteration_ms: ": "s",
		"rate [img/s] ": "samples/s", "it/s=": "steps/s", "time_ms ": "s", `"step_time_ms": `: "s", "speed tokens per second: ": "tokens/s",
		"min: ": "", "time_min=": "", "s/sec=": "", "batch: ": "", "ms: ": "", "images=": "", "took ": "", "step_time=": "",
	} {
		u, _, ok := KeyUnit(before, Unit{})
		if ok != (want != "") || u.Base != want {
			t.Errorf("%q: %+v %v, want %q", before, u, ok, want)
		}
	}
}

// A reading is a prefix of the text, and finite.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"12.3k tok/s", "1,234.5", "0:01:02.5", "1 day, 0:00:55", "4m05s", "2.31s/it]", "98 %", "1e999", "1.5 M tokens/s x", "-3 s / it", "12 (ms)", "3 /s/s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		KeyUnit(text, Unit{})
		r, ok := Read(text)
		if !ok {
			return
		}
		if !strings.HasPrefix(text, r.Number) || r.Number == "" || math.IsInf(r.Value, 0) || math.IsNaN(r.Value) || !strings.Contains(text, r.Unit) || r.Known && !(r.Parsed.Scale > 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// SI prefixes as words or letters; other words are not prefixes.
func TestPrefixes(t *testing.T) {
	for word, want := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "kilo": 1e3, "thousands": 1e3, "million": 1e6, "mega": 1e6, "giga": 1e9, "billion": 1e9, "tera": 1e12, "peta": 1e15, "s": 0, "samples": 0, "": 0} {
		if got := Prefix(word); got != want {
			t.Errorf("%q: %g, want %g", word, got, want)
		}
	}
}
