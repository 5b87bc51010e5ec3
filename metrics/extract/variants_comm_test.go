package extract

import (
	"fmt"
	"strings"
	"testing"
)

// 1048576 bytes in 60 µs are 17.476 GB/s; over 8 ranks, all_reduce's bus bandwidth is 7/4
// of it, 30.58 GB/s.
func TestNCCLVariants(t *testing.T) {
	ranks := func(n int, form string) (text string) {
		for i := range n {
			text += fmt.Sprintf(form, i, 100+i) + "\n"
		}
		return text
	}
	const (
		head  = "#\n#                                                              out-of-place                       in-place          \n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
		units = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n"
		row   = "     1048576        262144     float     sum      -1    60.00   17.48   30.58       0    60.00   17.48   30.58       0"
		end   = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 30.58 \n#\n"
		form  = "#  Rank %2d Group  0 Pid %6d on n01 device  0 [0x07] NVIDIA H100"
	)
	eight := ranks(8, form)
	plain := eight + head + units + row + "\n" + end
	right := []string{" time 6e-05 s ", " algbw 17480000000 B/s ", " busbw 30580000000 B/s "}
	stamped := func(text string) string {
		var list []string
		for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			list = append(list, "2024-05-01T10:00:00.123456Z "+l)
		}
		return strings.Join(list, "\n") + "\n"
	}
	cpu := strings.NewReplacer("    time ", " cputime ").Replace(plain)
	runVariants(t, "nccl-tests", []variant{
		{name: "as it is", text: plain, want: right},
		{name: "timestamps of -S", text: eight + strings.Replace(head, "#wrong\n", "#wrong           timestamp\n", 1) + units + row + "  2024-05-01 10:00:00\n" + end, want: right},
		{name: "statistics of iterations", text: eight + "#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%\n" +
			"     1048576        262144     float     sum      -1    60.00   17.48   30.58       0    59.00    61.00    61.00     1.00    60.00   17.48   30.58       0    59.00    61.00    61.00     1.00\n" + end, want: right},
		{name: "times of the CPU", text: cpu, refused: "cputime"},
		{name: "times in ms", text: eight + head + strings.ReplaceAll(units, "(us)", "(ms)") + strings.ReplaceAll(row, "60.00", " 0.06") + "\n" + end, refused: "(us)"},
		{name: "times in ms, without units", text: eight + head + strings.ReplaceAll(row, "60.00", " 0.06") + "\n" + end, says: "are not 1048576 bytes"},
		{name: "two groups of four", text: ranks(4, form) + "#  Rank  4 Group  1 Pid 104 on n01 device  0 [0x07] NVIDIA H100\n#  Rank  5 Group  1 Pid 105 on n01 device  0 [0x07] NVIDIA H100\n#  Rank  6 Group  1 Pid 106 on n01 device  0 [0x07] NVIDIA H100\n#  Rank  7 Group  1 Pid 107 on n01 device  0 [0x07] NVIDIA H100\n" +
			head + units + strings.ReplaceAll(row, "30.58", "26.22") + "\n" + end, says: "2 groups"},
		{name: "every process by itself", text: stampedRanks(2, "#  Rank  0 Pid 1 on n01 device  0 [0x07] NVIDIA H100\n"+head+units+strings.ReplaceAll(row, "30.58", " 0.00")+"\n"+end), o: Options{Workers: 2}, says: "the log reports 1 rank, the run has 2 workers"},
		{name: "under kubectl", text: stamped(plain), want: right},
		{name: "mpirun's tags", text: stampedRanks(1, plain), want: right},
		{name: "a row cut by another line", text: eight + head + units + row[:60] + "NCCL INFO x\n" + end, refused: "damaged"},
		{name: "cut off", text: eight + head + units + row + "\n", want: right, says: "cut off"},
		{name: "messages between the rows", text: eight + head + units + "n01:100:100 [0] NCCL INFO Channel 00\n" + row + "\n" + end, want: right},
		{name: "wrong results", text: eight + head + units + strings.Replace(row, "       0 ", "      12 ", 1) + "\n# Out of bounds values : 12 FAILED\n# Avg bus bandwidth    : 30.58 \n", says: "wrong results"},
		{name: "not checked", text: eight + head + units + strings.ReplaceAll(row, "       0", "     N/A") + "\n" + end, want: right},
		{name: "twice in a log", text: plain + plain, refused: "a second table"},
		{name: "bandwidth below what was asked for", text: eight + head + units + row + "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 30.58 FAILED\n#\n", want: right, says: "nine tenths"},
		{name: "only in place", text: eight + head + units + "     1048576        262144     float     sum      -1                                     60.00   17.48   30.58       0\n" + end, refused: "damaged"},
		{name: "another number of ranks than given", text: plain, o: Options{Workers: 4}, want: right, says: "the log reports 8 ranks, the run has 4 workers"},
		// On eight ranks the factors are 1, 7/8 and 14/8. 26.22 / 17.48 is 1.5.
		{name: "a busbw that is no collective's", text: eight + head + units + row + "\n" + strings.NewReplacer("1048576", "1048580").Replace(row) + "\n" + strings.NewReplacer("1048576", "1048592", "30.58", "26.22").Replace(row) + "\n" + end, want: append(right, " stated_busbw 26220000000 B/s "), says: "a busbw of 26.22 GB/s is not 1.75 times the algbw of 17.48 GB/s"},
		{name: "a busbw of fewer ranks", text: eight + head + units + strings.ReplaceAll(row, "30.58", "26.22") + "\n" + end, want: []string{" stated_busbw 26220000000 B/s "}, says: "the algbw of 17.48 GB/s"},
		{name: "a busbw of another collective", text: eight + "# Collective test starting: all_gather_perf\n" + head + units + row + "\n" + end, want: []string{" stated_busbw 30580000000 B/s "}, says: "is not 0.875 times the algbw"},
		{name: "one rank of each process", text: ranks(2, form) + head + units + row + "\n" + end, want: right, says: "the log lists 2 ranks, and its busbw is 1.749 times algbw, as on 8"},
		{name: "large times", text: eight + head + units + "  1073741824     268435456     float     sum      -1  1.2e+06    0.89    1.57       0  1.2e+06    0.89    1.57       0\n" + end, want: []string{" time 1.2 s "}},
	})
}

func stampedRanks(n int, text string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		for i := range n {
			fmt.Fprintf(&b, "[1,%d]<stdout>:%s\n", i, l)
		}
	}
	return b.String()
}

// Two processes of four devices each; 1048576 bytes in 60 µs.
func TestNCCLJSONVariants(t *testing.T) {
	doc := func(config, devices, times string) string {
		return `{"version": 1, "config": {` + config + `"devices": [` + devices + `]}, "results": [{"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": {` + times + `}, "in_place": null}], "out_of_bounds": {"count": 0, "okay": true}, "average_bus_bandwidth": {"bandwidth": 30.58, "okay": true}}`
	}
	const (
		config  = `"nthreads": 1, "ngpus": 4, `
		devices = `{"rank": 0, "group": 0}, {"rank": 4, "group": 0}`
		times   = `"time": 60.0, "alg_bw": 17.476, "bus_bw": 30.583, "nwrong": 0`
	)
	right := []string{" time 6e-05 s ", " algbw 17476000000 B/s ", " busbw 30583000000 B/s "}
	said := func(ranks string) string { return "the log reports " + ranks + ", the run has 5 workers" }
	o := Options{Workers: 5}
	runVariants(t, "nccl-tests-json", []variant{
		{name: "two processes of four", text: doc(config, devices, times), o: o, want: right, says: said("8 ranks")},
		{name: "one process of eight", text: doc(`"nthreads": 1, "ngpus": 8, `, `{"rank": 0, "group": 0}`, times), o: o, want: right, says: said("8 ranks")},
		{name: "a process a device", text: doc(`"nthreads": 1, "ngpus": 1, `, devices, times), o: o, want: right, says: said("2 ranks")},
		{name: "threads", text: doc(`"nthreads": 4, "ngpus": 2, `, `{"rank": 0, "group": 0}`, times), o: o, want: right, says: said("8 ranks")},
		{name: "groups", text: doc(config, `{"rank": 0, "group": 0}, {"rank": 4, "group": 1}`, times), want: right, says: "2 groups of ranks"},
		{name: "times of the CPU", text: doc(config, devices, strings.Replace(times, `"time"`, `"cpu_time"`, 1)), refused: "without its time"},
		{name: "times in ms", text: doc(config, devices, strings.Replace(times, "60.0", "0.06", 1)), says: "are not 1048576 bytes"},
		{name: "not checked", text: doc(config, devices, strings.Replace(times, `"nwrong": 0`, `"nwrong": null`, 1)), want: right},
		{name: "wrong results", text: doc(config, devices, strings.Replace(times, `"nwrong": 0`, `"nwrong": 5`, 1)), says: "wrong results"},
		{name: "cut off", text: doc(config, devices, times)[:300], refused: "JSON"},
		{name: "no devices", text: strings.Replace(doc(config, "", times), `"devices": []`, `"x": 0`, 1), o: o, want: right},
	})
}
