package number

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestNumbersForPeople(t *testing.T) {
	for _, test := range []struct {
		name string
		show func(float64) string
		want map[float64]string
	}{
		{"plain", Plain, map[float64]string{0: "0", 12345.6: "12346", 999.6: "1000", 0.000123456: "0.000123", 12.345: "12.3", -0.5: "-0.500", 1e-7: "1.00e-07", math.Inf(1): Absent}},
		{"significant", Significant, map[float64]string{
			0: "0", 1: "1.00", 0.98765: "0.988", 12.345: "12.3", 123.45: "123", 999.6: "1000", 1234.5: "1230",
			9994: "9990", 9996: "10.0k", 12345: "12.3k", 1e6: "1.00M", 2.5e9: "2.50G", 7.77e12: "7.77T", 9.99e14: "999T", 1e15: "1.00e+15", 1e300: "1.00e+300",
			0.00123: "0.00123", 0.000123: "1.23e-04", -45.67: "-45.7", math.NaN(): "–", math.Inf(-1): "–",
		}},
		{"seconds", Seconds, map[float64]string{
			0: "0 s", 0.0000123: "12.3 µs", 0.0123: "12.3 ms", 0.9996: "1.00 s", 1.5: "1.50 s", 75.25: "75.2 s",
			119.4: "119 s", 125: "2m05s", 3599.4: "59m59s", 3599.6: "1h00m", 5025: "1h24m", 90000: "25h00m", -125: "-2m05s",
			math.Inf(1): "–",
		}},
		{"binaryBytes", Bytes, map[float64]string{
			0: "0 B", 1000: "1000 B", 1024: "1.00 KiB", 30730: "30.0 KiB", 1 << 30: "1.00 GiB", 1023.9 * 1024: "1020 KiB", 5e18: "4440 PiB",
		}},
		{"short", func(v float64) string { return Short(v, 4) }, map[float64]string{
			0: "0", 1: "1", 0.1 + 0.2: "0.3", 812.53: "812.5", 1234.5: "1,234", 999.96: "1,000", 1234567: "1,234,567", 1e7: "1e7",
			2.5e-5: "2.5e-5", -1500: "-1,500", 1e300: "1e300", math.Inf(1): "–", math.NaN(): "–",
		}},
		{"short seconds", ShortSeconds, map[float64]string{
			0: "0 s", 0.0000123: "12.3 µs", 0.004: "4 ms", 0.5: "500 ms", 2: "2 s", 61: "61 s", 119.6: "2m00s", 150: "2m30s", 7200: "2h00m", -0.25: "-250 ms",
		}},
		{"short bytes", ShortBytes, map[float64]string{8: "8 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 26: "64 MiB", 1 << 33: "8 GiB"}},
		{"exact", Exact, map[float64]string{0.75: "0.75", 4096: "4096", 1e-9: "1e-09"}},
		{"exact percent", ExactPercent, map[float64]string{0.05: "5 %", 0.0125: "1.25 %", 0.87654: "87.654 %", 0.29: "29 %"}},
		{"exact seconds", ExactSeconds, map[float64]string{
			12.345: "12.345 s", 0.0125: "12.5 ms", 90: "90 s", 125: "2m05s", 5432: "1h30m32s", 5400: "1h30m", 7200: "2h00m", 130.5: "130.5 s",
		}},
		{"percent", Percent, map[float64]string{1: "100 %", 0.953: "95.3 %", 0: "0 %"}},
	} {
		for v, want := range test.want {
			if got := test.show(v); got != want {
				t.Errorf("%s(%v) = %q, want %q", test.name, v, got, want)
			}
		}
	}
}

// The printed value is within half a unit of the third digit.
func FuzzSignificant(f *testing.F) {
	for _, v := range []float64{0, 1, 999.5, 9995, 1e15, -1e-9, 5e-324, 1.7e308} {
		f.Add(v)
	}
	prefixes := map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	f.Fuzz(func(t *testing.T, v float64) {
		s := Significant(v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if s != Absent {
				t.Errorf("significant(%v) = %q", v, s)
			}
			return
		}
		scale := 1.0
		for prefix, p := range prefixes {
			if bare, ok := strings.CutSuffix(s, prefix); ok {
				s, scale = bare, p
			}
		}
		got, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		if diff := math.Abs(got*scale - v); diff > math.Abs(v)*0.00501 {
			t.Errorf("significant(%v) = %q, off by %v", v, Significant(v), diff)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs"} {
		if got := Count(n, "run"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// Values shown together share one unit, with enough digits to tell both ends from 0.
func TestAlike(t *testing.T) {
	for _, test := range []struct {
		of   []float64
		want string
	}{
		{[]float64{119, 120, 131}, "1m59s 2m00s 2m11s"},
		{[]float64{98.3, 96.3, 99.5}, "98.3 s 96.3 s 99.5 s"},
		{[]float64{130, 45, 150}, "130 s 45.0 s 150 s"},
		{[]float64{3700, 3590, 3800}, "61m40s 59m50s 63m20s"},
		{[]float64{7300, 3600, 9000}, "2h02m 1h00m 2h30m"},
		{[]float64{3700, 50, 3800}, "3700 s 50.0 s 3800 s"},
		{[]float64{0.98, 0.95, 1.02}, "0.980 s 0.950 s 1.02 s"},
		{[]float64{0.0011, 0.00098}, "1.10 ms 0.980 ms"},
		{[]float64{130, 0, math.Inf(1)}, "2m10s 0m00s –"},
		{[]float64{0, 0}, "0 s 0 s"},
		{[]float64{-119, 121}, "-1m59s 2m01s"},
		{[]float64{119.9}, Seconds(119.9)},
		{[]float64{3599.6}, Seconds(3599.6)},
	} {
		show := Alike(Seconds, test.of...)
		var got []string
		for _, v := range test.of {
			got = append(got, show(v))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%v: %q, want %q", test.of, text, test.want)
		}
	}
	if got, want := Alike(ShortSeconds, 119, 120)(119), "1m59s"; got != want {
		t.Errorf("short: %q, want %q", got, want)
	}
	if got, want := Alike(ShortSeconds, 0.9, 1.5)(0.9), "0.9 s"; got != want {
		t.Errorf("short: %q, want %q", got, want)
	}
	ofUnit := func(v float64) string { return Significant(v) + " s" } // a number followed by a fixed unit
	if got, want := Alike(ofUnit, 119, 500)(500), "500 s"; got != want {
		t.Errorf("not a length of time: %q, want %q", got, want)
	}
	if got, want := Alike(Percent, 0.1, 0.9)(0.5), "50.0 %"; got != want {
		t.Errorf("a share: %q, want %q", got, want)
	}
}

func TestVerbs(t *testing.T) {
	for n, want := range map[int]string{1: "1 run is, 1 run has, it", 2: "2 runs are, 2 runs have, them", 0: "0 runs are, 0 runs have, them"} {
		if got := Are(n, "run") + ", " + Have(n, "run") + ", " + Them(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestFew(t *testing.T) {
	list := []string{"a", "b", "c", "d"}
	for n, want := range map[int]string{4: "a b c d", 5: "a b c d", 3: "a b c and 1 more", 1: "a and 3 more"} {
		if got := strings.Join(Few(list, n), " "); got != want {
			t.Errorf("Few(%d) = %q, want %q", n, got, want)
		}
	}
	if list[3] != "d" {
		t.Errorf("Few changed its argument: %v", list)
	}
}

// Texts that differ only in numbers become equal.
func TestMasked(t *testing.T) {
	for text, want := range map[string]string{"loss 1.5e-3 at step 120": "loss 0 at step 0", "exit code 3": "exit code 0", "no file": "no file"} {
		if got := Masked(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
