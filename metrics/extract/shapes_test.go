package extract

import (
	"slices"
	"strings"
	"testing"
)

// Values close to the limits of the check that a column has one unit: figures may rise by at
// most 50 times the ratio of the workers, and fall to a 50th.
func TestEdgesOfShapes(t *testing.T) {
	perGPU := []string{"workers=w", "tokens_per_second_per_gpu=x"}
	rate, seconds := []string{"workers=w", "throughput=x"}, []string{"workers=w", "train_seconds=x"}
	strong := Options{Scaling: "strong"}
	unit, rises := "are these in one unit?", "as the rate of all devices does: write --map tokens_per_second=x:tokens/s, or, if it is one device's, --map tokens_per_second_per_gpu=x:tokens/s/GPU"
	epochs := []string{"workers=w", "epoch=e"}
	for _, c := range []struct {
		name string
		csv  string
		o    Options
		maps []string
		why  string // "": read
	}{
		{"time falls to a 100th of it on 2", "w,x\n1,100\n2,1\n", Options{}, seconds, ""},
		{"and further", "w,x\n1,100\n2,0.99\n", Options{}, seconds, unit},
		{"time rises 50 times", "w,x\n1,100\n2,5000\n", strong, seconds, ""},
		{"and further", "w,x\n1,100\n2,5001\n", strong, seconds, unit},
		{"rate falls to a 50th", "w,x\n1,100\n2,150\n4,3\n", Options{}, rate, ""},
		{"and further", "w,x\n1,100\n2,150\n4,2.99\n", Options{}, rate, unit},
		{"in any order of rows", "w,x\n4,2.99\n1,100\n2,150\n", Options{}, rate, unit},
		{"a row of 0", "w,x,y\n1,100,1\n2,0,2\n4,190,4\n", Options{}, []string{"workers=w", "train_seconds=x", "throughput=y:samples/s"}, ""},
		{"within the series", "w,x,precision\n1,100,fp32\n2,20000,bf16\n", Options{}, append(rate, "precision=precision"), ""},
		{"of epochs it is not asked", "w,e,x\n1,1,100\n1,2,1\n", Options{}, append(epochs, "epoch_seconds=x"), ""},

		{"a device's tokens rise by 0.8 of the workers", "w,x\n1,100\n2,160\n", Options{}, perGPU, rises},
		{"and less", "w,x\n1,100\n2,159\n", Options{}, perGPU, ""},
		{"by a quarter on 1.5 times the workers", "w,x\n2,100\n3,125\n", Options{}, perGPU, ""},
		{"and more", "w,x\n2,100\n3,126\n", Options{}, perGPU, rises},
		{"on fewer than 1.5 times", "w,x\n4,100\n5,126\n", Options{}, perGPU, ""},
		{"at one count, and not at the next", "w,x\n1,100\n2,200\n4,210\n", Options{}, perGPU, ""},
		{"at the next, and not at one", "w,x\n1,100\n2,101\n4,400\n", Options{}, perGPU, ""},
		{"one count", "w,x\n2,100\n2,160\n", Options{}, perGPU, ""},
		{"medians of a count", "w,x\n1,100\n2,160\n2,100\n2,101\n", Options{}, perGPU, ""},

		{"multiplied, it rises with 0.8 of the square", "w,img/s/gpu\n1,100\n2,160\n", Options{}, []string{"workers=w", "throughput=img/s/gpu"},
			`t.csv: column "img/s/gpu" rises with the workers as the rate of all devices does, but its name says one device: write --map throughput=img/s/gpu:samples/s if it covers all, or --map throughput=img/s/gpu:samples/s/worker if it does not`},
		{"and less", "w,img/s/gpu\n1,100\n2,159\n", Options{}, []string{"workers=w", "throughput=img/s/gpu"}, ""},
		{"and less at four", "w,img/s/gpu\n1,100\n2,200\n4,310\n", Options{}, []string{"workers=w", "throughput=img/s/gpu"}, ""},
		{"of a node", "w,nodes,img/s/node\n1,1,100\n2,2,200\n", Options{}, []string{"workers=w", "nodes=nodes", "throughput=img/s/node"}, "but its name says one node: write --map throughput=img/s/node:samples/s if it covers all, or --map throughput=img/s/node:samples/s/node"},
		{"it falls", "w,img/s/gpu\n1,100\n2,90\n", Options{}, []string{"workers=w", "throughput=img/s/gpu"}, ""},
		{"of all, by its name", "w,total img/s\n1,100\n2,90\n", Options{}, []string{"workers=w", "throughput=total img/s"}, ""},
		{"levels", "w,x\n1,100\n2,90\n", Options{}, rate, "throughput does not rise with the workers (100 at 1, 90 at 2), as one worker's rate does not: if column \"x\" covers one worker, write --map throughput=x:samples/s/worker; if it covers all, --map throughput=x:samples/s"},

		{"the mean of the epochs falls", "w,e,x\n1,1,100\n1,2,100\n2,1,140\n2,2,40\n", Options{}, append(epochs, "epoch_seconds=x"), ""},
		{"in any order", "w,e,x\n1,1,100\n1,2,100\n2,1,40\n2,2,140\n", Options{}, append(epochs, "epoch_seconds=x"), ""},
		{"the mean of three", "w,e,x\n1,1,100\n1,2,100\n1,3,100\n2,1,30\n2,2,30\n2,3,210\n", Options{}, append(epochs, "epoch_seconds=x"), ""}, // 90
		{"the last time elapsed falls", "w,e,x\n1,1,50\n1,2,100\n2,1,60\n2,2,90\n", Options{}, append(epochs, "elapsed=x"), ""},
		{"the last time elapsed does not", "w,e,x\n1,1,50\n1,2,100\n2,1,20\n2,2,95\n", Options{}, append(epochs, "elapsed=x"), "elapsed does not fall with more workers (100 s at 1, 95 s at 2): if the work grew with the workers (weak scaling), write --set workload.scaling=weak"},
		{"the time to an accuracy may rise", "w,e,x,a\n1,1,50,0.5\n1,2,100,0.6\n2,1,20,0.4\n2,2,95,0.5\n", Options{}, append(epochs, "elapsed=x", "accuracy=a:fraction"), ""},
		{"the best rate of the epochs rises", "w,e,x\n1,1,100\n1,2,90\n2,1,90\n2,2,112\n", Options{}, append(epochs, "throughput=x"), ""},
		{"in any order", "w,e,x\n1,1,90\n1,2,100\n2,1,112\n2,2,90\n", Options{}, append(epochs, "throughput=x"), ""},
		{"the best rate does not", "w,e,x\n1,1,100\n1,2,90\n2,1,105\n2,2,110\n", Options{}, append(epochs, "throughput=x"), "throughput does not rise with the workers (100 at 1, 110 at 2)"},

		{"work that grows by half", "w,x,r\n1,100,10\n2,100,15\n", Options{}, append(seconds, "throughput=r:samples/s"), "train_seconds does not fall"},
		{"and more", "w,x,r\n1,100,10\n2,100,15.1\n", Options{}, append(seconds, "throughput=r:samples/s"), ""},
		{"a device's rate does not tell", "w,x,r\n1,100,10\n2,100,15.1\n", Options{}, append(seconds, "tokens_per_second_per_gpu=r"), "train_seconds does not fall"},
		{"rates that do not cover all counts", "w,x,r\n1,100,10\n2,100,\n", Options{}, append(seconds, "throughput=r:samples/s"), "train_seconds does not fall"},
		{"the table says strong", "w,x,scaling\n1,100,strong\n2,100,strong\n", Options{}, seconds, ""},
		{"the table says both", "w,x,scaling\n1,100,strong\n2,100,weak\n", Options{}, seconds, "rows of one series differ in column \"scaling\""},
		{"a label says it", "w,x,s\n1,100,strong\n2,100,strong\n", Options{}, append(seconds, "workload.scaling=s"), ""},

		{"a load's latency rises 500 times", "threads,latency_p95\n8,0.01\n8,5\n", Options{Workers: 1}, nil, ""},
		{"and more", "threads,latency_p95\n8,0.01\n8,5.1\n", Options{Workers: 1}, nil, unit},
		{"falls", "threads,latency_p95\n8,5.1\n8,0.01\n", Options{Workers: 1}, nil, unit},
		{"from row to row", "threads,latency_p95\n8,0.01\n8,1\n8,100\n", Options{Workers: 1}, nil, ""},
		{"at another load", "threads,latency_p95\n8,0.01\n16,5.1\n", Options{Workers: 1}, nil, ""},
	} {
		runs, _, err := readRuns(c.csv, c.o, c.maps...)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v; want %q", c.name, runs, err, c.why)
		}
	}
}

// A row has the rate of all devices and the rate of one.
func TestEdgesOfTotals(t *testing.T) {
	all := []string{"workers=w", "throughput=img/s"}
	for _, c := range []struct {
		name, csv string
		maps      []string
		why       string
	}{
		// 4 · 100 = 400, a twentieth of it is 20, and the last digits of both count: 4 and 1.
		{"25 more", "w,img/s,img/s/gpu\n4,425,100\n", all, ""},
		{"26 more", "w,img/s,img/s/gpu\n4,426,100\n", all, `t.csv:2: columns "img/s" and "img/s/gpu" contradict each other: 426 of all and 100 of each of 4, which are 400 together; write --map throughput=img/s:samples/s, or --map throughput=img/s/gpu:samples/s/worker, for the one that is right`},
		{"25 less", "w,img/s,img/s/gpu\n4,375,100\n", all, ""},
		{"26 less", "w,img/s,img/s/gpu\n4,374,100\n", all, "contradict each other"},
		{"one decimal: 20.5 more", "w,img/s,img/s/gpu\n4,420.5,100.0\n", all, ""},
		{"20.6 more", "w,img/s,img/s/gpu\n4,420.6,100.0\n", all, "contradict each other"},
		{"in thousands", "w,kimg/s,img/s/gpu\n4,0.425,100\n", []string{"workers=w", "throughput=kimg/s"}, ""},
		{"in thousands, 27 more", "w,kimg/s,img/s/gpu\n4,0.427,100\n", []string{"workers=w", "throughput=kimg/s"}, "contradict each other: 427 of all"},
		{"tokens", "w,tok/s,tok/s/gpu\n4,900,100\n", []string{"workers=w", "tokens_per_second=tok/s"}, "--map tokens_per_second=tok/s:tokens/s, or --map tokens_per_second=tok/s/gpu:tokens/s/worker"},
		{"the one of a device is mapped", "w,tok/s,tok/s/gpu\n4,900,100\n", []string{"workers=w", "tokens_per_second_per_gpu=tok/s/gpu"}, "contradict each other: 900 of all and 100 of each of 4"},
		{"as the user says", "w,img/s,img/s/gpu\n4,900,100\n", []string{"workers=w", "throughput=img/s:samples/s"}, ""},
		{"of different things", "w,img/s,tok/s/gpu\n4,900,100\n", all, ""},
		{"neither is mapped", "w,t,img/s,img/s/gpu\n4,7,900,100\n", []string{"workers=w", "train_seconds=t"}, ""},
		{"of nodes", "w,img/s,img/s/node\n4,900,100\n", all, ""},
		{"a step rate", "w,img/s,it/s/gpu\n4,900,100\n", all, ""},
		{"no total", "w,img/s,img/s/gpu,t\n4,,100,7\n", append(all, "train_seconds=t"), ""},
		{"a total of 0", "w,img/s,img/s/gpu,t\n4,400,0,7\n", append(all, "train_seconds=t"), ""},
		{"not a number", "w,img/s,img/s/gpu\n4,400,n.d.\n", all, ""},
		{"no workers", "w,img/s,img/s/gpu\n,400,100\n", all, ""},
		{"one worker", "w,img/s,img/s/gpu\n1,400,100\n", all, "contradict each other"},
		{"in the second row", "w,img/s,img/s/gpu\n4,400,100\n8,1600,100\n", all, "t.csv:3: "},
		{"in a row that is a mean", "w,x,img/s,img/s/gpu\n4,a,400,100\n4,b,410,102\n4,mean,900,100\n", all, ""},
	} {
		if _, _, err := readRuns(c.csv, Options{}, c.maps...); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v; want %q", c.name, err, c.why)
		}
	}
}

// A worker is on one node; a service answers no more than it is sent; N requests in flight
// take N/rate on average (Little's law).
func TestImpossibleRows(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		o         Options
		maps      []string
		why       string
	}{
		{"as many nodes as workers", "w,nodes,x\n2,2,10\n", Options{}, []string{"workers=w", "throughput=x:samples/s"}, ""},
		{"more nodes", "w,nodes,x\n2,3,10\n", Options{}, []string{"workers=w", "throughput=x:samples/s"}, `t.csv:2: 3 nodes and 2 workers: a worker is a process on one node, usually one per GPU; map the column that counts them, --map workers=COLUMN (now "w"), or the one that counts nodes, --map nodes=COLUMN (now "nodes")`},
		{"a mapped column", "w,n,x\n2,3,10\n", Options{}, []string{"workers=w", "nodes=n", "throughput=x:samples/s"}, "3 nodes and 2 workers"},
		{"an unmapped column", "w,hosts,x\n2,3,10\n", Options{}, []string{"workers=w", "throughput=x:samples/s"}, `--map nodes=COLUMN (now "hosts")`},
		{"words", "w,hosts,x\n2,abc,10\n", Options{}, []string{"workers=w", "throughput=x:samples/s"}, ""},
		{"no workers", "hosts,x\n3,10\n", Options{}, []string{"throughput=x:samples/s"}, ""},

		{"a twentieth more answers", "rate,requests_per_second\n100,105\n", Options{}, nil, ""},
		{"more", "rate,requests_per_second\n100,105.1\n", Options{}, nil, `t.csv:2: 105.1 answers/s at 100 requests/s: a service cannot answer more than it is sent; if column "rate" is not the request rate, leave it out or write --label rate=rate; if column "requests_per_second" is in another unit, say which, like --map requests_per_second=requests_per_second:requests/min`},
		{"a rate per minute", "r,requests_per_second\n6000,105\n", Options{}, []string{"rate=r:requests/min"}, ""},
		{"more than per minute", "r,requests_per_second\n6000,106\n", Options{}, []string{"rate=r:requests/min"}, "106 answers/s at 100 requests/s"},

		// 8 in flight at 10/s: 0.8 s on average, and twice that is accepted.
		{"a mean of 1.6 s", "threads,requests_per_second,latency_mean\n8,10,1.6\n", Options{}, nil, ""},
		{"more", "threads,requests_per_second,latency_mean\n8,10,1.61\n", Options{}, nil, `t.csv:2: latency_mean of 1.61 s: with 8 requests in flight and 10 answers/s it is at most 0.8 s; if column "latency_mean" is in ms, write --map latency_mean=latency_mean:ms; if the figures are right, --map latency_mean=latency_mean:s`},
		{"a median of 3.2 s", "threads,requests_per_second,latency_p50\n8,10,3.2\n", Options{}, nil, ""},
		{"more", "threads,requests_per_second,latency_p50\n8,10,3.21\n", Options{}, nil, "latency_p50 of 3.21 s"},
		{"19 of 20 in 32 s", "threads,requests_per_second,latency_p95\n8,10,32\n", Options{}, nil, ""},
		{"more", "threads,requests_per_second,latency_p95\n8,10,32.1\n", Options{}, nil, "latency_p95 of 32.1 s"},
		{"99 of 100 in 160 s", "threads,requests_per_second,latency_p99\n8,10,160\n", Options{}, nil, ""},
		{"more", "threads,requests_per_second,latency_p99\n8,10,161\n", Options{}, nil, "latency_p99 of 161 s"},
		{"as the user says", "threads,requests_per_second,l\n8,10,161\n", Options{}, []string{"latency_p99=l:s"}, ""},
		{"threads given", "requests_per_second,latency_mean\n10,1.61\n", Options{At: map[string]float64{"threads": 8}}, nil, "with 8 requests in flight"},
		{"no threads", "rate,requests_per_second,latency_mean\n10,10,161\n", Options{}, nil, ""},
		{"no rate", "threads,latency_mean\n8,161\n", Options{}, nil, ""},
		{"a smaller time", "threads,requests_per_second,latency_mean\n8,10,0.1\n", Options{}, nil, ""},
	} {
		if _, _, err := readRuns(c.csv, c.o, c.maps...); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v; want %q", c.name, err, c.why)
		}
	}
}

// Line numbers in messages: ranges, and at most five.
func TestLinesInMessages(t *testing.T) {
	for want, list := range map[string][]int{
		"line 2": {2}, "lines 2–3": {2, 3}, "lines 2–4, 6": {2, 3, 4, 6}, "lines 2, 4, 6, 8, 10": {2, 4, 6, 8, 10},
		"lines 2, 4, 6, 8, 10, …": {2, 4, 6, 8, 10, 12}, "lines 2, 4, 6, 8, 10–11": {2, 4, 6, 8, 10, 11}, "lines 2, 4, 6, 8, 10–11, …": {2, 4, 6, 8, 10, 11, 13},
	} {
		var rows []surveyed
		for _, line := range list {
			rows = append(rows, surveyed{line: line})
		}
		if got := lines(rows); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}

func TestSignificantDigits(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "100": 1, "101": 3, "0.0120": 2, "1.50e3": 2, "1.5E10": 2, "-12.5": 3, "1,234.5": 5, "90.9": 3} {
		if got := significantDigits(text); got != want {
			t.Errorf("%q: %d digits, want %d", text, got, want)
		}
	}
}

// The roles of columns that are not mapped, by their names.
func TestRoles(t *testing.T) {
	for name, want := range map[string]role{
		"precision": roleSetting, "driver": roleGround, "date": roleGround, "rank": rolePart, "local_rank": rolePart, "seed": roleID, "note": roleID, "unit": roleUnit, "stat": roleStatistic,
		"colour": roleUnclear, "gpu_id": rolePart, "gpu index": rolePart, "device no": rolePart, "replica idx": rolePart, "GPU name": roleSetting, "gpu": roleSetting, "accelerator": roleSetting,
		"id": roleID, "run id": roleID, "time (s)": roleUnclear, "img/s/gpu": roleUnclear, "Card": roleSetting, "GPU driver": roleGround, "gpu seed": roleSetting,
	} {
		if got := roleOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"Batch Size": "--label 'batch_size=Batch Size'", "épreuve": "--label preuve=", "accuracy": "--label the_accuracy=accuracy", "workers": "--label the_workers=workers", "batch": "--label batch=batch", "%": "--label the=%",
	} {
		if got := labelled(name); !strings.HasPrefix(got, want) && !strings.HasPrefix(strings.ReplaceAll(got, "'", ""), want) {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	values := map[string]bool{}
	for i, want := range []string{``, `"a"`, `"a", "b"`, `"a", "b", "c"`, `"a", "b", "c", 1 more`, `"a", "b", "c", 2 more`} {
		if i > 0 {
			values[string(rune('a'+i-1))] = true
		}
		if got := some(values); got != want {
			t.Errorf("%d values: %s, want %s", i, got, want)
		}
	}
}

// Columns that are not mapped: which make rows different series, and the note on the rest.
func TestEdgesOfOtherColumns(t *testing.T) {
	rate := []string{"workers=w", "throughput=x:samples/s"}
	for _, c := range []struct {
		name, csv string
		maps      []string
		says      string // of a remark or a note; "": nothing may be said
		why       string
	}{
		{"numbers of GPUs per node may differ", "w,gpus,x\n4,4,100\n4,2,101\n", rate, "", ""},
		{"settings of different counts", "w,model,x\n1,a,100\n2,b,190\n", rate, "", `rows of one series differ in column "model"`},
		{"numeric settings of different counts", "w,batch,x\n1,32,100\n2,64,190\n", rate, "", ""},
		{"numeric settings of one count", "w,batch,x\n1,32,100\n1,64,190\n", rate, "", "--label batch=batch to make each a separate series"},
		{"steps of a run", "w,step,x\n1,10,100\n1,20,101\n", []string{"workers=w", "throughput=x:samples/s", "tag=step"}, "", ""},
		{"an unnamed number that repeats", "w,level,x\n1,3,100\n1,3,101\n1,4,99\n1,4,98\n", rate, `not used: "level"; rows that differ only in it count as repeats (--label level=level makes a label of it)`, ""},
		{"an unnamed number that does not", "w,level,x\n1,3,100\n1,4,101\n1,5,99\n", rate, "", ""},
		{"fractions", "w,level,x\n1,3.5,100\n1,3.5,101\n1,4.5,99\n1,4.5,98\n", rate, "", ""},
		{"a word at each count", "w,colour,x\n1,red,100\n2,blue,190\n", rate, "", ""},
		{"a measure", "w,p95 (ms),x\n1,a,100\n1,b,101\n", rate, "", ""},

		{"dates at each count", "w,date,x\n1,2026-01-01,100\n2,2026-01-02,190\n", rate, `date changes with the number of workers (2026-01-01 at 1; 2026-01-02 at 2)`, ""},
		{"times of one day", "w,date,x\n1,2026-01-01 10:00,100\n2,2026-01-01T12:00,190\n", rate, "", ""},
		{"days of one count", "w,date,x\n1,2026-01-01,100\n1,2026-01-02,101\n", rate, "", ""},
		{"drivers of one count", "w,driver,x\n1,535,100\n1,550,101\n", rate, "driver changes with the number of workers (535 at 1; 550 at 1)", ""},
		{"a driver that all counts have", "w,driver,x\n1,535,100\n2,535,190\n2,550,191\n", rate, "", ""},
		{"no driver that all have", "w,driver,x\n1,535,100\n2,535,190\n2,550,191\n4,550,300\n", rate, "(535 at 1, 2; 550 at 2, 4)", ""},
		{"six drivers", "w,driver,x\n1,1,100\n2,2,190\n4,3,300\n8,4,500\n16,5,900\n32,6,1700\n", rate, "(1 at 1; 2 at 2; 3 at 4; 4 at 8; and 2 more)", ""},
		{"four drivers", "w,driver,x\n1,1,100\n2,2,190\n4,3,300\n8,4,500\n", rate, "(1 at 1; 2 at 2; 3 at 4; 4 at 8)", ""},

		{"units of a table", "w,unit,x\n1,ms,100\n2,s,0.09\n", []string{"workers=w", "train_seconds=x"}, "", "numbers are in different units"},
		{"a unit of the table", "w,unit,x\n1,ms,100\n2,ms,55\n", []string{"workers=w", "train_seconds=x"}, "", `t.csv: column "unit" says "ms", and column "x" would be read in s; write --map train_seconds=x:ms`},
		{"as the user says", "w,unit,x\n1,ms,100\n2,ms,55\n", []string{"workers=w", "train_seconds=x:ms"}, "", ""},
		{"the same unit", "w,unit,x\n1,s,100\n2,s,55\n", []string{"workers=w", "train_seconds=x"}, "", ""},
		{"a unit of something else", "w,unit,x\n1,GB,100\n2,GB,55\n", []string{"workers=w", "train_seconds=x"}, "", ""},
		{"percent", "w,unit,x\n1,%,50\n2,%,55\n", []string{"workers=w", "accuracy=x"}, "", `would be read in fractions; write --map accuracy=x:%`},

		{"parts", "w,rank,x\n2,0,100\n2,1,101\n", rate, "", `t.csv: rows differ only in column "rank" ("0", "1"), so they are parts of one run and not repeats; write --sum rank to add up their rates, or --label rank=rank to keep them apart`},
		{"one part of each", "w,rank,x\n1,0,100\n2,1,190\n", rate, "", ""},
		{"statistics by their names", "w,kind of row,x\n1,p50,100\n1,median,101\n1,a,3\n", rate, "", ""},
		{"statistics of one column", "w,which,x\n1,mean,100\n1,median,101\n", rate, `not used: "which"`, "statistics of the same runs and not repeats; write --label which=which to keep them apart, or delete all but one of each"},
	} {
		_, told, err := readRuns(c.csv, Options{}, c.maps...)
		all := strings.Join(told, "\n")
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		} else if !strings.Contains(all, c.says) || c.says == "" && slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "repeats") || strings.Contains(s, "changes") }) {
			t.Errorf("%s: told %q, want %q", c.name, told, c.says)
		}
	}
}
