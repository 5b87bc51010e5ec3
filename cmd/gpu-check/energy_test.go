package main

import (
	"strings"
	"testing"
)

func TestEnergyRows(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for name, test := range map[string]struct {
		list   []reading
		double bool
		want   string // in the rows, or in the error
		fails  bool
	}{
		// 3000 J in 10 s are 300 W; 3150 / 3000 = 1.05.
		"both":              {[]reading{{"package-0", "RAPL", v(500), nil}, {"GPU 0", "NVML", v(3000), v(3150)}}, false, "| GPU 0 | 3000 J | 3150 J | 300 W | 1.050 | NVML |", false},
		"no counter":        {[]reading{{"GPU 0", "NVML", nil, v(3150)}}, false, "| GPU 0 | none | 3150 J | – | – | NVML |", false},
		"millijoules":       {[]reading{{"GPU 0", "NVML", v(3e6), v(3150)}}, false, "one of them is wrong", true},
		"no GPU":            {[]reading{{"package-0", "RAPL", v(500), nil}}, false, "no energy was read of any GPU", true},
		"a double":          {[]reading{{"GPU 0", "DOUBLE of NVML", v(1), v(1)}}, false, "unset SCALEBENCH_NVML", true},
		"no double":         {[]reading{{"GPU 0", "NVML", v(1), v(1)}}, true, "is not read by the test double", true},
		"a counter at rest": {[]reading{{"GPU 0", "NVML", v(0), v(3000)}}, false, "one of them is wrong", true},
	} {
		rows, err := energyRows(test.list, 10, test.double)
		text := strings.Join(rows, "\n")
		if err != nil {
			text = err.Error()
		}
		if (err != nil) != test.fails || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
