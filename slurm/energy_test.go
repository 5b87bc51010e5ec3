package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Output of Slurm 22.05.8 for two jobs on two nodes that drew 100 and 200 W according to
// acct_gather_energy/pm_counters. The counters could not be read for the first job; its TRES had
// energy=18446744073709551614.
const consumed = `1|job.sh|2|22|
1.batch|batch|1|22|
1.0|first|2|11|
2|job.sh|2|21|4513
2.batch|batch|1|21|2111
2.0|first|2|10|3003
2.1|second|2|5|1510
`

func TestParseConsumed(t *testing.T) {
	list, err := parseConsumed([]byte(strings.ReplaceAll(consumed, "|", separator)))
	if err != nil {
		t.Fatal(err)
	}
	joules := func(v float64) *float64 { return &v }
	want := []Consumption{{"1", "job.sh", 2, 22 * time.Second, nil}, {"1.batch", "batch", 1, 22 * time.Second, nil}, {"1.0", "first", 2, 11 * time.Second, nil},
		{"2", "job.sh", 2, 21 * time.Second, joules(4513)}, {"2.batch", "batch", 1, 21 * time.Second, joules(2111)},
		{"2.0", "first", 2, 10 * time.Second, joules(3003)}, {"2.1", "second", 2, 5 * time.Second, joules(1510)}}
	if d := cmp.Diff(want, list); d != "" {
		t.Error(d)
	}
	for field, known := range map[string]bool{"0": false, "18446744073709551614": false, "18446744073709551615": false, "": false, "3.5": true,
		// 100 kW for 11 s on two nodes is 2.2 MJ; lumi-userguide#181 reports absurdly large values.
		"2200000": true, "2200001": false, "99999999999": false} {
		list, err := parseConsumed([]byte(strings.Join([]string{"1.0", "a", "2", "10", field}, separator) + "\n"))
		if err != nil || len(list) != 1 || (list[0].Joules != nil) != known {
			t.Errorf("%q: %+v, %v", field, list, err)
		}
	}
	for _, bad := range []string{"1.0|a|2|10|-5", "1.0|a|2|10|4.51K", "1.0|a|two|10|5", "1.0|a|2||5", "1.0|a|2|10|NaN", "x"} {
		list, err := parseConsumed([]byte(strings.ReplaceAll(bad+"\n2.0|b|1|1|7\n", "|", separator)))
		var odd *UnreadableError
		if !errors.As(err, &odd) || len(odd.Lines) != 1 || len(list) != 1 || *list[0].Joules != 7 {
			t.Errorf("%q: %+v, %v", bad, list, err)
		}
	}
}

func TestParseEnergyPlugin(t *testing.T) {
	for text, want := range map[string]EnergyPlugin{
		"AcctGatherEnergyType    = acct_gather_energy/pm_counters\nAcctGatherNodeFreq      = 1 sec\n": {"acct_gather_energy/pm_counters", "1 sec"},
		"AcctGatherEnergyType    = acct_gather_energy/none\nAcctGatherNodeFreq      = 0 sec\n":        {"", "0 sec"},
		"AcctGatherEnergyType    = (null)\n":                                                          {}, // since 23.02
		"MaxArraySize            = 1001\n":                                                            {},
	} {
		if got := parseEnergyPlugin([]byte(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// Messages of 22.05 for a version without the field, and for a cluster without a database.
func TestConsumedRefused(t *testing.T) {
	for words, want := range map[string]error{
		`sacct: error: Invalid field requested: "ConsumedEnergyRaw"`: errNoEnergy,
		`sacct: fatal: Invalid field requested: "ConsumedEnergyRaw"`: errNoEnergy,
		"Slurm accounting storage is disabled":                       ErrNoAccounting,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "sacct"), []byte("#!/bin/sh\necho '"+words+"' >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		c := &Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
		if _, err := c.Consumed(t.Context(), []string{"7"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// FuzzConsumed checks that every energy is plausible.
func FuzzConsumed(f *testing.F) {
	f.Add(strings.ReplaceAll(consumed, "|", separator))
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := parseConsumed([]byte(text))
		for _, c := range list {
			if c.Joules != nil && !(*c.Joules > 0 && *c.Joules <= mostWatts*float64(c.Nodes)*(c.Elapsed.Seconds()+1)) {
				t.Errorf("%+v: %g J", c, *c.Joules)
			}
		}
	})
}
