package extract

import (
	"fmt"
	"strings"
	"testing"
)

// ncclText returns a table of nccl-tests on two ranks, with the given rows and "out of
// bounds" line.
func ncclText(head string, rows []string, bounds string) string {
	return "# Using devices\n#   Rank  0 Group  0 Pid  7 on  n1 device  0 [0x07] A100\n#   Rank  1 Group  0 Pid  8 on  n1 device  1 [0x0f] A100\n" +
		head + strings.Join(rows, "\n") + "\n# Out of bounds values : " + bounds + "\n# Avg bus bandwidth    : 1.5\n"
}

const (
	ncclHead = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	ncclOld  = "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
)

// ncclLine returns a row: 65536 bytes in 64 µs are 1.02 GB/s.
func ncclLine(bytes int, kind string, us float64, wrong int) string {
	gb := float64(bytes) / us / 1e3
	return fmt.Sprintf("  %d  %d  %s  %.2f  %.2f  %.2f  %d  %.2f  %.2f  %.2f  0", bytes, bytes/4, kind, us, gb, gb, wrong, us, gb, gb)
}

func TestNCCLTables(t *testing.T) {
	sum, none := "float sum -1", "float none -1"
	for _, tt := range []struct {
		name, text  string
		want, never []string
		notes       []string
		failed      string
	}{
		{"rows of 0 bytes", ncclText(ncclHead, []string{ncclLine(0, none, 5, 0), ncclLine(0, none, 6, 0), ncclLine(65536, none, 64, 0)}, "0 OK"),
			[]string{"7 time 6.4e-05 s bytes 65536 in_place 0", "7 algbw 1020000000 B/s bytes 65536 in_place 1"}, []string{"bytes 0 "}, []string{"2 rows of 0 bytes left out"}, ""},
		{"an old table with a column of errors", ncclText(ncclOld, []string{"  0 0 float sum 14.2 0.00 0.00 0e+00 14.3 0.00 0.00 0e+00", "  134217728 33554432 float sum 8000.0 16.78 16.78 2e-06 8050.0 16.67 16.67 2e-06"}, "0 OK"),
			[]string{"time 0.008 s bytes 134217728 in_place 0", "busbw 16780000000 B/s bytes 134217728 in_place 0"}, nil, []string{"1 row of 0 bytes"}, ""},
		{"every reduction", ncclText(ncclHead, []string{ncclLine(65536, sum, 64, 0), ncclLine(65536, "float prod -1", 128, 0)}, "0 OK"),
			[]string{"5 time 6.4e-05 s bytes 65536 in_place 0 op sum", "6 time 0.000128 s bytes 65536 in_place 0 op prod"}, nil, []string{"rows differ in redop"}, ""},
		{"every type and root of a collective with a name", ncclText("# Collective test starting: reduce_perf\n"+ncclHead, []string{ncclLine(65536, "half sum 0", 64, 0), ncclLine(65536, "float sum 1", 128, 0)}, "0 OK"),
			[]string{"op reduce half root 0", "op reduce float root 1"}, nil, []string{"rows differ in type", "rows differ in root"}, ""},
		{"wrong results", ncclText(ncclHead, []string{ncclLine(65536, sum, 64, 0), ncclLine(131072, sum, 128, 1024)}, "1024 FAILED"),
			[]string{"5 time 6.4e-05 s bytes 65536"}, nil, []string{"the run failed: nccl-tests found wrong results at 131072 bytes (line 6)"}, "found wrong results at 131072 bytes (line 6)"},
		{"out of bounds alone", ncclText(ncclOld, []string{"  1024 256 float sum 60.00 0.02 0.03 2e+01 61.00 0.02 0.03 2e+01"}, "2 FAILED"),
			nil, nil, nil, "nccl-tests says Out of bounds values : 2 FAILED"},
		{"results that were not checked", ncclText(ncclHead, []string{"  65536 16384 float sum -1 64.00 1.02 1.02 N/A 64.00 1.02 1.02 N/A"}, "0 OK"),
			[]string{"time 6.4e-05 s bytes 65536 in_place 0"}, []string{"op"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ncclTests.Extract(strings.NewReader(tt.text), Options{File: "log"})
			if err != nil {
				t.Fatal(err)
			}
			if r.Workers != 2 || !strings.Contains(r.Failed, tt.failed) || (r.Failed == "") != (tt.failed == "") {
				t.Errorf("%d workers, failed: %q", r.Workers, r.Failed)
			}
			lines, notes := found(t, ncclTests, tt.text, Options{})
			all := strings.Join(lines, "\n")
			for _, w := range tt.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not among\n%s", w, all)
				}
			}
			for _, w := range tt.never {
				if strings.Contains(all, w) {
					t.Errorf("%q is among\n%s", w, all)
				}
			}
			for _, w := range tt.notes {
				if !strings.Contains(notes, w) {
					t.Errorf("%q is not said:\n%s", w, notes)
				}
			}
		})
	}
	again := ncclText(ncclHead, []string{ncclLine(65536, sum, 64, 0), ncclLine(65536, sum, 64, 0)}, "0 OK")
	if _, err := ncclTests.Extract(strings.NewReader(again), Options{}); err == nil || !strings.Contains(err.Error(), "a second row for 65536 bytes; one log is one benchmark: split it") {
		t.Error(err)
	}
}

// The stated average is compared with the mean of the rows, those of 0 bytes included.
func TestNCCLAverage(t *testing.T) {
	const head = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	for avg, said := range map[string]bool{"20": false, "21": false, "30": true, "10": true} { // (30 + 50) / 4
		log := head + "0 0 float sum -1 1 0 0 0 1 0 0 0\n1048576 262144 float sum -1 30 35 30 0 30 35 50 0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : " + avg + "\n"
		r, err := ncclTests.Extract(strings.NewReader(log), Options{File: "log"})
		if err != nil || strings.Contains(strings.Join(r.Notes, "\n"), "the average bus bandwidth is stated as "+avg) != said {
			t.Errorf("an average of %s: %q, %v", avg, r.Notes, err)
		}
	}
}
