package extract

import (
	"strings"
	"testing"
)

// Column names state factors, spreads, ratios, logarithms and numbers of units; values are worked
// out by hand.
func TestColumnNamesThatChangeTheValue(t *testing.T) {
	for _, c := range []struct{ ours, column, cell, want, why string }{
		{"tokens_per_second", "tokens/s (k)", "98.4", "tokens_per_second 98400", ""},
		{"tokens_per_second", "tokens/s [x1000]", "98.4", "tokens_per_second 98400", ""},
		{"tokens_per_second", "tokens/s (in thousands)", "98.4", "tokens_per_second 98400", ""},
		{"tokens_per_second", "Tokens/s (×10³)", "98.4", "tokens_per_second 98400", ""},
		{"tokens_per_second", "tokens/s (1e6)", "1.5", "tokens_per_second 1.5e+06", ""},
		{"tokens_per_second", "x1000 tokens/s", "98.4", "tokens_per_second 98400", ""},
		{"throughput", "throughput (k)", "1.5", "throughput 1500", ""},
		{"throughput", "img/s (M)", "0.25", "throughput 250000", ""},
		{"throughput", "img/s (batch 32)", "640", "throughput 640", ""},
		{"throughput", "rate in thousands", "1.5", "throughput 1500", ""},
		{"throughput", "Bilder/s (Tsd)", "1.5", "throughput 1500", ""},
		{"tokens_per_second", "Mio Token/s", "1.5", "tokens_per_second 1.5e+06", ""},
		{"throughput", "lg(rate)", "2", "", "is a logarithm"},
		{"throughput", "rate vs base", "190", "", "is a ratio to another run"},
		{"throughput", "img s⁻¹", "100", "throughput 100", ""},
		{"throughput", "mean img/s", "100", "throughput 100", ""},
		{"step_seconds", "step time (M)", "3", "", "the factor in the name of column \"step time (M)\" is unclear"},
		{"throughput", "img/s std", "5", "", `is a spread or an interval, judging by its name, and not throughput: map the column with the values; or, if the name is wrong, write --map 'throughput=img/s std:samples/s'`},
		{"accuracy", "accuracy_std", "0.1", "", "is a spread"},
		{"throughput", "throughput 95% CI", "5", "", "is a spread"},
		{"throughput", "std", "5", "", "is a spread"},
		{"throughput", "studio img/s", "5", "throughput 5", ""},
		{"throughput", "speedup", "1.9", "", "is a ratio to another run"},
		{"throughput", "Δ img/s", "1.9", "", "is a ratio to another run or a difference"},
		{"throughput", "img/s %", "1.9", "", "is a percentage"},
		{"throughput", "target img/s", "1.9", "", "is an ideal, which was not measured"},
		{"tokens_per_second", "tokens/s prev", "1.9", "", "is that of another run"},
		{"tokens_per_second", "tokens/s (per user)", "1.9", "", "is the rate of one user"},
		{"throughput", "Speed-up", "1.9", "", "is a ratio"},
		{"throughput", "normalized throughput", "1.9", "", "is a ratio"},
		{"train_seconds", "relative time", "0.9", "", "is a ratio"},
		{"throughput", "log2(img/s)", "9.3", "", "is a logarithm"},
		{"throughput", "log10 throughput", "2.8", "", "is a logarithm"},
		{"throughput", "log_throughput", "6.4", "", "is a logarithm"},
		{"throughput", "train_log/img_s", "6.4", "throughput 6.4", ""},
		{"step_seconds", "s/1000 iters", "312", "", "is for 1000 iters at once"},
		{"step_seconds", "time for 100 steps (s)", "31", "", "is for 100 steps at once"},
		{"throughput", "1000 img/s", "6.4", "", "is for 1000 img at once"},
		{"step_seconds", "time per 1 step (s)", "0.3", "step_seconds 0.3", ""},
		{"train_seconds", "Elapsed", "1:02:03", "train_seconds 3723", ""},
		{"train_seconds", "Elapsed", "1-02:40:00", "train_seconds 96000", ""}, // 26 h 40 min
		{"train_seconds", "time (mm:ss)", "31:30", "train_seconds 1890", ""},
		{"train_seconds", "Elapsed", "31:00", "", "\"31:00\" may be minutes and seconds, or hours and minutes; write 0:31:00 or 31:00:00"},
		{"train_seconds", "time (min)", "0:31:00", "", "the column is in another unit; write --map 'train_seconds=time (min):s'"},
		{"throughput", "img/s", "#DIV/0!", "", "it is a spreadsheet's error; leave the cell empty"},
		{"throughput", "img/s", ">1250", "", "it is a limit and not a value; leave the cell empty"},
		{"throughput", "% of linear", "95", "", "is an ideal, which was not measured"},
		{"throughput", "ideal img/s", "95", "", "is an ideal"},
		{"tokens_per_second", "$/Mtok", "0.4", "", "is a cost"},
		{"tokens_per_second", "tokens/step", "4096", "", "which is not a known unit"},
		{"throughput", "img/J", "4", "", "which is not a known unit"},
		{"throughput", "power (W)", "400", "", "which is not a known unit"},
		{"throughput", "num_images", "4096", "", "is a number of things, judging by its name, and throughput is a rate"},
		{"throughput", "samples", "4096", "", "is a number of things"},
		{"throughput", "throughput images", "4096", "throughput 4096", ""},
		{"throughput", "kimg/h", "3.6", "throughput 1", ""},
		{"throughput", "img/s", "0", "", "If the run failed, leave the cell empty or delete the row"},
	} {
		runs, _, err := readRuns("w;"+c.column+"\n1;"+c.cell+"\n", Options{Decimal: DecimalPoint}, "workers=w", c.ours+"="+c.column)
		if err != nil && c.why != "" && strings.Contains(err.Error(), c.why) {
			continue
		}
		if err != nil || c.why != "" || len(runs) != 1 || runs[0] != c.want {
			t.Errorf("%s %q: %q, %v; want %q %q", c.column, c.cell, runs, err, c.want, c.why)
		}
	}
}

// Rows of runs that failed, of parts of jobs, and of google-benchmark's aggregates are left out.
func TestRowsThatAreNotRuns(t *testing.T) {
	for _, c := range []struct{ name, csv, want, told string }{
		{"sacct", "w|x|State\n1|100|COMPLETED\n2|3|FAILED\n4|50|TIMEOUT\n2|190|COMPLETED\n8|1|CANCELLED by 1001\n", "throughput 100; throughput 190", "left out 3 rows (lines 3–4, 6): the runs failed or have not finished"},
		{"unfinished", "w,x,status\n1,100,done\n2,9,running\n", "throughput 100", "left out 1 row (line 3)"},
		{"exit codes", "w,x,ExitCode\n1,100,0:0\n2,120,1:0\n2,130,0:9\n2,190,0\n", "throughput 100; throughput 190", "left out 2 rows (lines 3–4)"},
		{"failures", "w,x,fail\n1,100,0\n2,120,2\n2,190,0\n", "throughput 100; throughput 190", "left out 1 row (line 3)"},
		{"failed", "w,x,failed\n1,100,false\n2,120,True\n2,190,no\n", "throughput 100; throughput 190", "left out 1 row (line 3)"},
		{"success", "w,x,success\n1,100,true\n2,120,False\n2,190,TRUE\n", "throughput 100; throughput 190", "left out 1 row (line 3)"},
		{"a word in a note", "w,x,note\n1,100,\n2,0,OOM\n2,190,ok\n", "throughput 100; throughput 190", "left out 1 row (line 3)"},
		{"in place of the number", "w,x\n1,100\n2,OOM\n2,190\n", "throughput 100; throughput 190", "left out 1 row (line 3)"},
		{"steps of jobs", "job,w,x\n7,1,100\n7.batch,1,99\n7.extern,1,99\n8,2,190\n", "throughput 100; throughput 190", "left out 2 rows (lines 3–4): they are parts of Slurm jobs"},
		{"google-benchmark", "name,w,x\nBM_x/1,1,100\nBM_x/1,1,104\nBM_x/1_mean,1,102\nBM_x/1_median,1,102\nBM_x/1_stddev,1,2.8\nBM_x/1_cv,1,0.03\n", "throughput 100; throughput 104", "left out 4 rows (lines 4–7): they summarise others"},
		{"only aggregates", "name,w,x\nBM_x/1_mean,1,102\nBM_x/1_stddev,1,2.8\nBM_x/1_cv,1,0.03\n", "throughput 102", "left out 2 rows (lines 3–4): they summarise others"},
		{"an average as a label", "host,w,x\nn1,1,100\nn2,1,104\nAverage,1,102\n", "throughput 100; throughput 104; throughput 102", "a summary's name is a label in line 4: if it summarises other rows, delete it"},
		{"nodes of several devices", "nodes,x,gpus_per_node\n1,100,8\n2,190,8\n", "throughput 100; throughput 190", `workers are nodes here (column "nodes"), with 8 devices each by column "gpus_per_node"`},
		{"names of columns alike", "w,x1,x2\n1,100,101\n", "throughput 100", `not used: "x2", which are named like "x1"; if they are repeats`},
	} {
		maps := []string{"workers=w", "throughput=x:samples/s"}
		if strings.HasPrefix(c.csv, "host") {
			maps = append(maps, "host=host")
		}
		if strings.HasPrefix(c.csv, "nodes") {
			maps[0] = "workers=nodes"
		}
		if strings.Contains(c.csv, "x1") {
			maps[1] = "throughput=x1:samples/s"
		}
		runs, told, err := readRuns(c.csv, Options{}, maps...)
		if got := strings.Join(runs, "; "); err != nil || got != c.want || !strings.Contains(strings.Join(told, "\n"), c.told) {
			t.Errorf("%s: %q, %v, told %q; want %q and %q", c.name, got, err, told, c.want, c.told)
		}
	}
}

// Tables from spreadsheets, Slurm and Markdown have other separators and lines before the header.
func TestFramesOfTables(t *testing.T) {
	for name, csv := range map[string]string{
		"tabs":          "w\tx\n1\t100\n2\t190\n",
		"sacct -P":      "w|x\n1|100\n2|190\n",
		"Markdown":      "| w | x   |\n|---|----:|\n| 1 | 100 |\n| 2 | 190 |\n",
		"a box":         "+---+-----+\n| w | x   |\n+===+=====+\n| 1 | 100 |\n| 2 | 190 |\n+---+-----+\n",
		"Excel's sep":   "sep=;\r\nw;x\r\n1;100\r\n2;190\r\n",
		"comments":      "# 3 May\n#\n\nw,x\n1,100\n2,190\n",
		"a blank first": "\nw,x\n1,100\n2,190\n",
	} {
		runs, _, err := readRuns(csv, Options{}, "workers=w", "throughput=x:samples/s")
		if got := strings.Join(runs, "; "); err != nil || got != "throughput 100; throughput 190" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// The line numbers are those of the file, and a file cut off in its last line is refused.
	for csv, why := range map[string]string{
		"| w | x |\n|---|---|\n| 1 | ? |\n": "t.csv:3: column x",
		"# a\nw,x\n1,?\n":                   "t.csv:3: column x",
		"| w | x |\n|---|---|\n| 1 | 10":    "t.csv:3: the last line has no line end",
		"w x\n--- ---\n1 100 7\n":           `the file has "w x", which is one column: separate columns by commas, semicolons, tabs or | (sacct --parsable2 does)`,
	} {
		if runs, _, err := readRuns(csv, Options{}, "workers=w", "throughput=x:samples/s"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, %v; want %q", csv, runs, err, why)
		}
	}
}

// A mapping that cannot be right is refused, with what to write instead.
func TestMappingsThatContradict(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		o         Options
		maps      []string
		why       string
	}{
		{"a column for two keys", "w,x\n1,100\n", Options{}, []string{"workers=w", "throughput=w"}, `column "w" is mapped to both workers and throughput`},
		{"for two figures", "w,x\n1,100\n", Options{}, []string{"workers=w", "throughput=x", "tokens_per_second=x"}, `column "x" is mapped to both throughput and tokens_per_second`},
		{"a latency for a rate", "r,p95\n1,100\n", Options{Workers: 1}, []string{"rate=r", "latency_p95=r:ms"}, `column "r" is mapped to both latency_p95 and rate`},
		{"devices of one node", "nodes,gpus_per_node,x\n1,8,100\n", Options{}, []string{"workers=gpus_per_node", "throughput=x"}, `column "gpus_per_node" counts the devices of one node, judging by its name: add a column with those of all nodes`},
		{"nodes of unlike size", "nodes,gpus,x\n1,1,100\n1,8,700\n2,16,1300\n", Options{}, []string{"workers=nodes", "throughput=x"}, `column "nodes" is mapped to workers and counts nodes, and by column "gpus" a node has 1 to 8 devices`},
		{"a rate of unclear scope", "gpus,tps\n8,6000\n", Options{}, []string{"workers=gpus", "tokens_per_second=tps"}, "it is unclear whether column \"tps\" is of one device or of all: write --map tokens_per_second=tps:tokens/s/worker"},
		{"replicas of several devices", "dp,tp,x\n1,8,100\n", Options{}, []string{"workers=dp", "throughput=x"}, `column "dp" counts replicas of the model, and column "tp" the devices of each, judging by their names`},
		{"a global batch", "w,global_batch_size,it/s\n1,256,2.5\n2,256,4.8\n", Options{WorkerBatch: 256}, []string{"workers=w", "throughput=it/s"}, `t.csv:3: column "global_batch_size" has 256 samples per step, but 256 per worker on 2 workers are 512`},
		{"rate, step and batch", "w,global batch,img/s,step (s)\n1,256,640,0.4\n2,512,1250,4.1\n", Options{}, []string{"workers=w", "throughput=img/s", "step_seconds=step (s)"}, "t.csv:3: 1250 samples/s and 4.1 s a step make 5125 samples per step, and column \"global batch\" has 512"},
		{"successes for errors", "threads,requests_per_second,success\n8,100,0.95\n", Options{Workers: 1}, []string{"requests_per_second=requests_per_second", "errors=success", "threads=threads"}, "is a share of successes, judging by its name, and errors is its complement"},
		{"JSON", "[{\"w\":1,\"x\":2}]\n", Options{}, []string{"workers=w", "throughput=x"}, "it is JSON or HTML, and not a table in CSV"},
		{"columns of ranks", "w,rank0 img/s,rank1 img/s\n2,50,51\n", Options{}, []string{"workers=w", "throughput=rank0 img/s"}, `columns "rank0 img/s", "rank1 img/s" are of single workers`},
		{"loads without replicas", "threads,latency_p95\n8,0.01\n8,5.1\n", Options{}, nil, "are these in one unit?"},
	} {
		if runs, _, err := readRuns(c.csv, c.o, c.maps...); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v; want %q", c.name, runs, err, c.why)
		}
	}
	for name, c := range map[string]struct {
		csv  string
		maps []string
	}{
		"one GPU a node":        {"n,x\n2,100\n", []string{"workers=n", "nodes=n", "throughput=x"}},
		"the same global batch": {"w,global_batch_size,it/s\n1,256,2.5\n2,512,4.8\n", []string{"workers=w", "throughput=it/s"}},
	} {
		if _, _, err := readRuns(c.csv, Options{WorkerBatch: 256}, c.maps...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
