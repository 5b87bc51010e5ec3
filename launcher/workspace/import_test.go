package workspace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/redact"
)

// readTable imports a table and returns, for each run, its workers and the given figures that it has, and the
// messages to the user.
func readTable(t *testing.T, csv string, args []string) (runs, told []string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(file, []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{}
	for i := 0; i+1 < len(args); i += 2 {
		key := strings.TrimPrefix(args[i], "--")
		if key == "map" || key == "label" { // a later one replaces an earlier one
			ours, _, _ := strings.Cut(args[i+1], "=")
			_, column, _ := strings.Cut(args[i+1], "=")
			for _, unit := range []string{":samples/s", ":tokens/s", ":s", ":fraction"} {
				column = strings.TrimSuffix(column, unit)
			}
			lists[key] = slices.DeleteFunc(lists[key], func(text string) bool {
				before, theirs, _ := strings.Cut(text, "=")
				return before == ours || strings.TrimSuffix(column, "/worker") == theirs
			})
		}
		lists[key] = append(lists[key], args[i+1])
	}
	o := ImportOptions{say: func(text string) { told = append(told, text) }, hide: redact.Key(nil).Value}
	o.From = "csv"
	o.Maps, o.Labels, o.At = lists["map"], lists["label"], lists["at"]
	o.Sets = append(lists["set"], "study=s")
	o.Decimal, o.Sum = strings.Join(lists["decimal"], ""), strings.Join(lists["sum"], "")
	o.Batch, _ = strconv.Atoi(strings.Join(lists["worker-batch"], ""))
	if _, err := extract.ParseDecimal(o.Decimal); err != nil {
		return nil, nil, err
	}
	sets, err := o.given()
	if err != nil {
		return nil, nil, err
	}
	for r, err := range o.each([]string{file}, sets) {
		if err != nil {
			return nil, told, err
		}
		text := fmt.Sprint(r.Run.Workers)
		for _, key := range slices.Sorted(maps.Keys(r.Run.Parameters)) {
			if key != "import.format" && key != "workload.scaling" {
				text += fmt.Sprintf(" %s=%v", key, r.Run.Parameters[key])
			}
		}
		for f := range r.Result.Findings() {
			switch {
			case f.Event.Figure != nil:
				text += fmt.Sprintf(" %s %.6g", f.Event.Figure.Name, f.Event.Figure.Value)
			case f.Event.Evaluation != nil:
				text += fmt.Sprintf(" accuracy %.6g", f.Event.Evaluation.Accuracy)
			}
		}
		runs = append(runs, text)
		for _, note := range r.Result.Notes {
			if !slices.Contains(told, note) {
				told = append(told, note)
			}
		}
	}
	return runs, told, nil
}

// hints returns the arguments that an error suggests.
func hints(err error) (list [][]string) {
	for _, m := range regexp.MustCompile(`--(map|label|set|decimal|sum|worker-batch) ('(?:[^']|'\\'')*'|[^\s,;]+)`).FindAllStringSubmatch(err.Error(), -1) {
		value := strings.ReplaceAll(strings.Trim(m[2], "'"), `'\''`, "'")
		list = append(list, []string{"--" + m[1], value})
	}
	return list
}

// A tableCase is a table from a user.
type tableCase struct {
	name string
	args string // separated by "|"
	csv  string
	runs []string // expected runs; nil if the table must be refused
	told string   // part of the messages; "" for none
	// refused is part of the error. follow is the index of the right suggestion in the error; then is the
	// result of following it.
	refused string
	follow  int
	then    []string
}

func testTables(t *testing.T, list []tableCase) {
	for _, tt := range list {
		t.Run(tt.name, func(t *testing.T) {
			var args []string
			if tt.args != "" {
				args = strings.Split(tt.args, "|")
			}
			runs, told, err := readTable(t, tt.csv, args)
			if tt.refused == "" {
				if err != nil || !slices.Equal(runs, tt.runs) {
					t.Errorf("%v\ngot  %q\nwant %q", err, runs, tt.runs)
				}
				if tt.told == "" && len(told) > 0 || !strings.Contains(strings.Join(told, "\n"), tt.told) {
					t.Errorf("told %q; want %q", told, tt.told)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Fatalf("%v, %q; want an error with %q", err, runs, tt.refused)
			}
			if tt.then == nil {
				return
			}
			list := hints(err)
			if tt.follow >= len(list) {
				t.Fatalf("%v\nnames %q; want one more", err, list)
			}
			runs, _, again := readTable(t, tt.csv, append(args, list[tt.follow]...))
			if again != nil || !slices.Equal(runs, tt.then) {
				t.Errorf("%v\nfollowed %q: %v\ngot  %q\nwant %q", err, list[tt.follow], again, runs, tt.then)
			}
		})
	}
}

// Misleading tables give the right figures, or an error with a suggestion that leads to them.
func TestTablesThatMislead(t *testing.T) {
	const w = "--map|workers=gpus|--map|"
	testTables(t, []tableCase{
		// A device's rate, by its name or by its shape.
		{name: "per GPU by its name", args: w + "throughput=img/sec/GPU", csv: "gpus,img/sec/GPU\n1,641\n4,595\n8,552.4\n",
			runs: []string{"1 throughput 641", "4 throughput 2380", "8 throughput 4419.2"}},
		{name: "per GPU without workers", args: "--set|workers=4|--map|throughput=img/s per device", csv: "n,img/s per device\n1,600\n", runs: []string{"4 throughput 2400"}},
		{name: "per worker, kilo", args: w + "throughput=kimg/s/worker", csv: "gpus,kimg/s/worker\n1,1.5\n4,1.4\n", runs: []string{"1 throughput 1500", "4 throughput 5600"}},
		{name: "per node, workers are GPUs", args: w + "throughput=samples/s/node", csv: "gpus,samples/s/node\n8,800\n16,780\n",
			refused: "is the rate of one node: give the number of nodes with --map nodes=COLUMN or --set nodes=N"},
		{name: "per node, with nodes", args: w + "throughput=samples/s/node", csv: "gpus,nodes,samples/s/node\n8,1,800\n16,2,780\n", runs: []string{"8 throughput 800", "16 throughput 1560"}},
		{name: "per GPU, workers are nodes", args: "--map|workers=nodes|--map|throughput=img/s/gpu", csv: "nodes,img/s/gpu\n1,100\n2,95\n",
			refused: "but column \"nodes\" counts nodes, judging by its name"},
		{name: "per GPU, nodes and GPUs per node", args: "--map|workers=nodes|--map|throughput=img/s/gpu", csv: "nodes,gpus per node,img/s/gpu\n1,4,100\n2,4,95\n",
			runs: []string{"1 throughput 400", "2 throughput 760"}, told: "workers are nodes here (column \"nodes\"), with 4 devices each"},
		{name: "per GPU by its shape", args: w + "throughput=speed", csv: "gpus,speed\n1,641\n4,595\n8,552.4\n",
			refused: "throughput does not rise with the workers (641 at 1, 552.4 at 8)", follow: 0, then: []string{"1 throughput 641", "4 throughput 2380", "8 throughput 4419.2"}},
		{name: "flat, and truly of all", args: w + "throughput=speed", csv: "gpus,speed\n1,641\n4,595\n8,552.4\n",
			refused: "if it covers all", follow: 1, then: []string{"1 throughput 641", "4 throughput 595", "8 throughput 552.4"}},
		{name: "flat img/s", args: w + "throughput=img/s", csv: "gpus,img/s\n2,100.5\n2,101.1\n4,99.8\n4,100.9\n",
			refused: "as one worker's rate does not", follow: 0, then: []string{"2 throughput 201", "2 throughput 202.2", "4 throughput 399.2", "4 throughput 403.6"}},
		{name: "one GPU's tokens as all", args: w + "tokens_per_second=tok/s", csv: "gpus,tok/s\n8,5840\n16,5256\n",
			refused: "tokens_per_second does not rise with the workers", follow: 0, then: []string{"8 tokens_per_second 46720", "16 tokens_per_second 84096"}},
		{name: "all tokens as one GPU's", args: w + "tokens_per_second_per_gpu=tok/s", csv: "gpus,tok/s\n8,15250\n16,30050\n32,57920\n",
			refused: "rises with the workers", follow: 0, then: []string{"8 tokens_per_second 15250", "16 tokens_per_second 30050", "32 tokens_per_second 57920"}},
		{name: "T/s/GPU as all", args: w + "tokens_per_second=Throughput (T/s/GPU)", csv: "gpus,Throughput (T/s/GPU)\n8,1906\n16,1878\n",
			refused: "tokens_per_second_per_gpu", follow: 0, then: []string{"8 tokens_per_second_per_gpu 1906 tokens_per_second 15248", "16 tokens_per_second_per_gpu 1878 tokens_per_second 30048"}},
		{name: "total and per GPU contradict", args: w + "throughput=img/s", csv: "gpus,img/s,img/s/GPU\n1,100,100\n4,390,390\n",
			refused: "contradict each other: 390 of all and 390 of each of 4, which are 1560 together", follow: 1, then: []string{"1 throughput 100", "4 throughput 1560"}},
		{name: "both mapped, and they contradict", args: w + "tokens_per_second=all|--map|tokens_per_second_per_gpu=each", csv: "gpus,all,each\n8,8000,1000\n16,15000,1000\n",
			refused: "contradict each other: 15000 of all and 1000 of each of 16"},
		// Units.
		{name: "ms", args: w + "train_seconds=time (ms)", csv: "gpus,time (ms)\n1,120000\n2,61000\n", runs: []string{"1 train_seconds 120", "2 train_seconds 61"}},
		{name: "hours", args: w + "train_seconds=hours", csv: "gpus,hours\n1,2\n2,1.1\n", runs: []string{"1 train_seconds 7200", "2 train_seconds 3960"}},
		{name: "GPU-hours", args: w + "train_seconds=GPU-hours", csv: "gpus,GPU-hours\n1,2\n2,2.2\n", refused: "column \"GPU-hours\" is in \"GPU-hours\", judging by its name"},
		{name: "tokens as samples", args: w + "throughput=tok/s", csv: "gpus,tok/s\n1,1000\n2,1900\n", refused: "throughput is in samples/s", follow: 0, then: []string{"1 tokens_per_second 1000", "2 tokens_per_second 1900"}},
		{name: "s/it", args: w + "throughput=s/it", csv: "gpus,s/it\n1,0.5\n2,0.25\n", refused: "--worker-batch N", follow: 1, then: []string{"1 step_seconds 0.5", "2 step_seconds 0.25"}},
		{name: "ms/step with the batch", args: w + "throughput=ms/step|--worker-batch|32", csv: "gpus,ms/step\n1,500\n2,625\n", runs: []string{"1 throughput 64", "2 throughput 102.4"}},
		{name: "step time as training time", args: w + "train_seconds=step time", csv: "gpus,step time\n1,0.5\n2,0.3\n", refused: "is the time of one of the steps", follow: 0, then: []string{"1 step_seconds 0.5", "2 step_seconds 0.3"}},
		{name: "an unknown quantity", args: w + "throughput=Zettel/s", csv: "gpus,Zettel/s\n1,10\n2,19\n", refused: "which is not a known unit", follow: 0, then: []string{"1 throughput 10", "2 throughput 19"}},
		{name: "images per minute", args: w + "throughput=images per minute", csv: "gpus,images per minute\n1,600\n2,1140\n", runs: []string{"1 throughput 10", "2 throughput 19"}},
		{name: "s and ms in one column", args: w + "train_seconds=time", csv: "gpus,time\n1,120.5\n2,61.2\n4,31800\n", refused: "are these in one unit?"},
		{name: "s and ms among repeats", args: w + "train_seconds=time", csv: "gpus,time\n1,120.5\n1,121700\n2,61.2\n", refused: "are these in one unit?"},
		{name: "a column of units", args: w + "train_seconds=time", csv: "gpus,time,unit\n1,120,s\n2,61000,ms\n", refused: "in different units (\"ms\", \"s\")"},
		{name: "a column of one unit", args: w + "train_seconds=time", csv: "gpus,time,unit\n1,120000,ms\n2,61000,ms\n", refused: `column "unit" says "ms"`, follow: 0, then: []string{"1 train_seconds 120", "2 train_seconds 61"}},
		{name: "MFU in per cent", args: w + "reported_mfu=MFU", csv: "gpus,MFU\n8,30.55\n16,30.1\n", refused: "is a share", follow: 0, then: []string{"8 reported_mfu 0.3055", "16 reported_mfu 0.301"}},
		// Numbers.
		{name: "semicolons and points", args: w + "throughput=rate", csv: "\ufeffgpus;rate\n1;412\n4;1.598\n8;3.104\n", refused: "1.598 may be 1598", follow: 0, then: []string{"1 throughput 412", "4 throughput 1598", "8 throughput 3104"}},
		{name: "semicolons and points that are decimal", args: w + "throughput=rate", csv: "gpus;rate\n1;1.112\n4;3.598\n8;7.104\n", refused: "1.112 may be 1112", follow: 1, then: []string{"1 throughput 1.112", "4 throughput 3.598", "8 throughput 7.104"}},
		{name: "decimal commas", args: w + "throughput=rate", csv: "gpus;rate\n1;412,5\n4;1.598,2\n8;3.104\n", refused: "3.104 is 3104 if \"412,5\" has a decimal comma", follow: 0, then: []string{"1 throughput 412.5", "4 throughput 1598.2", "8 throughput 3104"}},
		{name: "thousands", args: w + "throughput=rate", csv: "gpus,rate\n1,\"412\"\n4,\"1,598\"\n8,\"3,104\"\n", refused: "has separators: write --decimal point for 1598", follow: 0, then: []string{"1 throughput 412", "4 throughput 1598", "8 throughput 3104"}},
		{name: "apostrophes", args: w + "throughput=rate", csv: "gpus,rate\n1,412.5\n4,1'598.2\n", refused: "--decimal point", follow: 0, then: []string{"1 throughput 412.5", "4 throughput 1598.2"}},
		{name: "no-break spaces", args: w + "throughput=rate", csv: "gpus;rate\n1;412,5\n4;1\u202f598,2\n", refused: "--decimal comma", follow: 0, then: []string{"1 throughput 412.5", "4 throughput 1598.2"}},
		// Rows that are not runs.
		{name: "pasted rows", args: w + "throughput=rate", csv: "gpus,rate\n1,349\n2,601\n1,349\n2,601\n1,349\n2,601\n", told: "left out 4 rows (lines 4–7): copies", runs: []string{"1 throughput 349", "2 throughput 601"}},
		{name: "one pasted row", args: w + "throughput=rate", csv: "gpus,rate\n1,349.127\n1,349.127\n1,351.9\n2,601.5\n", told: "copies of others", runs: []string{"1 throughput 349.127", "1 throughput 351.9", "2 throughput 601.5"}},
		{name: "a mean row", args: w + "throughput=rate", csv: "run,gpus,rate\n1,1,100\n2,1,104\nmean,1,102\n1,2,190\n2,2,196\nmean,2,193\n", told: "left out 2 rows (lines 4, 7)", runs: []string{"1 throughput 100", "1 throughput 104", "2 throughput 190", "2 throughput 196"}},
		{name: "a mean in the workers' column", args: w + "throughput=rate", csv: "gpus,rate\n1,100\n1,104\nAverage,102\n", told: "left out 1 row", runs: []string{"1 throughput 100", "1 throughput 104"}},
		{name: "a mean row without a word", args: w + "throughput=rate", csv: "run,gpus,rate\na,1,100\nb,1,104\n,1,102\nc,2,190\n", told: "the mean of others", runs: []string{"1 throughput 100", "1 throughput 104", "2 throughput 190"}},
		{name: "a mean row by its digits", args: w + "throughput=rate", csv: "gpus,rate\n1,100\n1,104\n1,101\n1,101.6667\n2,190\n", told: "the mean of others", runs: []string{"1 throughput 100", "1 throughput 104", "1 throughput 101", "2 throughput 190"}},
		{name: "a column called statistic", args: w + "throughput=rate", csv: "gpus,statistic,rate\n1,q1,100\n1,q3,110\n2,q1,190\n2,q3,200\n", refused: "statistics of the same runs"},
		{name: "means and deviations", args: w + "throughput=rate", csv: "gpus,stat,rate\n1,mean,100\n1,std,2\n2,mean,190\n2,std,3\n", told: "left out 2 rows (lines 3, 5): they summarise others", runs: []string{"1 throughput 100", "2 throughput 190"}},
		{name: "ranks", args: w + "throughput=rate", csv: "gpus,rank,rate\n2,0,100\n2,1,101\n4,0,90\n4,1,91\n4,2,92\n4,3,93\n", refused: "they are parts of one run", follow: 0, then: []string{"2 throughput 201", "4 throughput 366"}},
		{name: "ranks and a total", args: w + "throughput=rate", csv: "gpus,rank,rate\n2,0,100\n2,1,101\n2,total,201\n4,0,90\n4,1,91\n4,2,92\n4,3,93\n4,total,366\n", told: "parts of the total", runs: []string{"2 throughput 201", "4 throughput 366"}},
		{name: "ranks of two repeats", args: w + "throughput=rate", csv: "gpus,rank,rate\n2,0,100\n2,1,101\n2,0,102\n2,1,103\n", refused: "--sum rank", follow: 0, then: []string{"2 throughput 201", "2 throughput 205"}},
		{name: "endpoints with an aggregate", args: "--map|replicas=n|--map|threads=users|--map|requests_per_second=rps", csv: "n,users,Name,rps\n1,8,/a,30\n1,8,/b,20\n1,8,Aggregated,50\n2,8,/a,50\n2,8,/b,45\n2,8,Aggregated,95\n",
			told: "parts of the total", runs: []string{"1 requests_per_second 50 samples_per_second 50", "2 requests_per_second 95 samples_per_second 95"}},
		{name: "endpoints", args: "--map|replicas=n|--map|threads=users|--map|requests_per_second=rps", csv: "n,users,endpoint,rps\n1,8,/a,30\n1,8,/b,20\n", refused: "they are parts of one run", follow: 0, then: []string{"1 requests_per_second 50 samples_per_second 50"}},
		// Runs of other things.
		{name: "precision among repeats", args: w + "throughput=rate", csv: "gpus,precision,rate\n1,fp32,100\n1,bf16,210\n2,fp32,190\n2,bf16,400\n", refused: `differ in column "precision" ("bf16", "fp32")`, follow: 0,
			then: []string{"1 precision=fp32 throughput 100", "1 precision=bf16 throughput 210", "2 precision=fp32 throughput 190", "2 precision=bf16 throughput 400"}},
		{name: "a GPU type at one count", args: w + "throughput=rate", csv: "gpus,GPU type,rate\n1,V100,100\n2,V100,190\n4,A100,700\n", refused: `differ in column "GPU type"`, follow: 0,
			then: []string{"1 gpu_type=V100 throughput 100", "2 gpu_type=V100 throughput 190", "4 gpu_type=A100 throughput 700"}},
		{name: "two models", args: w + "throughput=rate", csv: "gpus,Model,rate\n1,resnet50,100\n2,resnet50,190\n1,vgg16,40\n2,vgg16,70\n", refused: `differ in column "Model"`, follow: 0,
			then: []string{"1 model=resnet50 throughput 100", "2 model=resnet50 throughput 190", "1 model=vgg16 throughput 40", "2 model=vgg16 throughput 70"}},
		{name: "batches among repeats", args: w + "throughput=rate", csv: "gpus,batch,rate\n1,32,100\n1,64,130\n2,32,190\n2,64,250\n", refused: `differ in column "batch"`, follow: 0,
			then: []string{"1 batch=32 throughput 100", "1 batch=64 throughput 130", "2 batch=32 throughput 190", "2 batch=64 throughput 250"}},
		{name: "a driver at one count", args: w + "throughput=rate", csv: "gpus,driver,rate\n1,535.54,100\n2,535.54,190\n4,550.90,390\n", told: "driver changes with the number of workers (535.54 at 1, 2; 550.90 at 4)",
			runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 390"}},
		{name: "a date at one count", args: w + "throughput=rate", csv: "gpus,date,rate\n1,2024-05-01,100\n2,2024-05-01,190\n4,2024-06-12,390\n", told: "date changes with the number of workers",
			runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 390"}},
		{name: "software at one count", args: w + "throughput=rate", csv: "gpus,torch version,rate\n1,2.1,100\n2,2.1,190\n4,2.4,390\n", told: "torch version changes with the number of workers",
			runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 390"}},
		{name: "repeats on two machines", args: w + "throughput=rate", csv: "gpus,computer,rate\n1,a,100\n1,b,104\n2,a,190\n2,b,194\n", told: "not used: \"computer\"",
			runs: []string{"1 throughput 100", "1 throughput 104", "2 throughput 190", "2 throughput 194"}},
		// Weak scaling by times.
		{name: "weak by train_seconds", args: w + "train_seconds=seconds", csv: "gpus,seconds\n1,120\n2,121\n8,123\n", refused: "does not fall with more workers", follow: 0,
			then: []string{"1 stated_train_seconds 120", "2 stated_train_seconds 121", "8 stated_train_seconds 123"}},
		{name: "no gain, strong", args: w + "train_seconds=seconds", csv: "gpus,seconds\n1,120\n2,121\n8,123\n", refused: "does not fall with more workers", follow: 1,
			then: []string{"1 train_seconds 120", "2 train_seconds 121", "8 train_seconds 123"}},
		{name: "weak by epoch_seconds", args: w + "epoch=ep|--map|epoch_seconds=took", csv: "gpus,ep,took\n1,1,60\n1,2,59\n4,1,62\n4,2,61\n", refused: "epoch_seconds does not fall with more workers", follow: 0,
			then: []string{"1 stated_train_seconds 119", "4 stated_train_seconds 123"}},
		{name: "weak by its own rates", args: w + "train_seconds=seconds|--map|throughput=img/s", csv: "gpus,seconds,img/s\n1,120,100\n2,121,198\n8,123,780\n",
			runs: []string{"1 stated_train_seconds 120 throughput 100", "2 stated_train_seconds 121 throughput 198", "8 stated_train_seconds 123 throughput 780"}},
		// Values that are not accuracies.
		{name: "val_loss as accuracy", args: w + "epoch=ep|--map|accuracy=val_loss", csv: "gpus,ep,val_loss\n1,1,0.9\n1,2,0.5\n1,3,0.3\n", refused: "is a loss or an error, judging by its name", follow: 0, then: []string{"1 loss 0.9 loss 0.5 loss 0.3"}},
		{name: "a falling metric as accuracy", args: w + "epoch=ep|--map|accuracy=metric", csv: "gpus,ep,metric\n1,1,0.9\n1,2,0.5\n1,3,0.3\n", refused: "falls over the epochs of every run", follow: 0, then: []string{"1 loss 0.9 loss 0.5 loss 0.3"}},
		// Impossible values.
		{name: "more nodes than workers", args: "--map|workers=procs|--map|nodes=nodes|--map|throughput=rate", csv: "procs,nodes,gpus,rate\n1,2,8,100\n2,4,16,190\n", refused: "2 nodes and 1 workers"},
		{name: "more answers than asked for", args: "--map|replicas=n|--map|rate=asked|--map|requests_per_second=got", csv: "n,asked,got\n1,100,150\n", refused: "150 answers/s at 100 requests/s"},
		{name: "latency in ms as s", args: "--map|replicas=n|--map|threads=conns|--map|requests_per_second=rps|--map|latency_p95=p95", csv: "n,conns,rps,p95\n1,8,191,99\n", refused: "does not state its unit, and most load generators print ms", follow: 0,
			then: []string{"1 requests_per_second 191 samples_per_second 191 latency_p95 0.099"}},
		{name: "errors from a rate", args: "--map|replicas=n|--map|threads=conns|--map|errors=failed requests/s", csv: "n,conns,failed requests/s\n1,8,0.5\n", refused: "but errors is a share of the requests"},
	})
}

// Correct tables are read without any message.
func TestSoundTables(t *testing.T) {
	const w = "--map|workers=gpus|--map|"
	testTables(t, []tableCase{
		{name: "our own names", csv: "workers,throughput\n1,100\n2,190\n", runs: []string{"1 throughput 100", "2 throughput 190"}},
		{name: "img/s", args: w + "throughput=img/s", csv: "gpus,img/s\n1,101.2\n2,190.3\n4,380.1\n", runs: []string{"1 throughput 101.2", "2 throughput 190.3", "4 throughput 380.1"}},
		{name: "equal whole numbers", args: w + "throughput=img/s", csv: "gpus,img/s\n1,101\n1,101\n1,100\n2,190\n2,191\n2,190\n", runs: []string{"1 throughput 101", "1 throughput 101", "1 throughput 100", "2 throughput 190", "2 throughput 191", "2 throughput 190"}},
		{name: "a plateau", args: w + "throughput=img/s", csv: "gpus,img/s\n1,100\n2,190\n4,350\n8,300\n16,450\n32,640\n", runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 350", "8 throughput 300", "16 throughput 450", "32 throughput 640"}},
		{name: "one count", args: w + "throughput=img/s", csv: "gpus,img/s\n8,100\n8,102\n", runs: []string{"8 throughput 100", "8 throughput 102"}},
		{name: "1 and 256", args: w + "throughput=img/s", csv: "gpus,img/s\n1,100\n256,23000\n", runs: []string{"1 throughput 100", "256 throughput 23000"}},
		{name: "run ids and notes", args: w + "throughput=img/s", csv: "run,gpus,img/s,notes\na1,1,100,\na2,1,104,cold start\nb1,2,190,\nb2,2,192,\n", runs: []string{"1 throughput 100", "1 throughput 104", "2 throughput 190", "2 throughput 192"}},
		{name: "seeds", args: w + "throughput=img/s|--label|seed=seed", csv: "gpus,seed,img/s\n1,1,100\n1,2,104\n2,1,190\n2,2,192\n", runs: []string{"1 seed=1 throughput 100", "1 seed=2 throughput 104", "2 seed=1 throughput 190", "2 seed=2 throughput 192"}},
		{name: "other measurements", args: w + "throughput=img/s", csv: "gpus,img/s,loss,gpu util %,memory GB,watts\n1,100,2.31,97,31.2,380\n1,104,2.29,96,31.3,377\n2,190,2.35,91,31.2,360\n", runs: []string{"1 loss 2.31 throughput 100", "1 loss 2.29 throughput 104", "2 loss 2.35 throughput 190"}},
		{name: "its own speedups", args: w + "throughput=img/s", csv: "gpus,img/s,speedup,efficiency\n1,100,1.00,100\n2,190,1.90,95\n4,360,3.60,90\n", runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 360"}},
		{name: "a global batch that grows", args: w + "throughput=img/s", csv: "gpus,global batch,img/s\n1,32,100\n2,64,190\n4,128,360\n", runs: []string{"1 throughput 100", "2 throughput 190", "4 throughput 360"}},
		{name: "total and per GPU that agree", args: w + "throughput=img/s", csv: "gpus,img/s,img/s/GPU\n1,641,641\n4,2380,595\n8,4419,552.4\n", runs: []string{"1 throughput 641", "4 throughput 2380", "8 throughput 4419"}},
		{name: "llm-foundry", args: "--map|workers=# GPUs|--map|tokens_per_second=Throughput (T/s)|--map|reported_mfu=MFU:%",
			csv:  "Model,SeqLen (T),# GPUs,GPU,MFU,HFU,MicroBatchSize,GradAccum,GlobalBatchSize,Throughput (S/s),Throughput (T/s),Throughput (T/s/GPU),GlobalBatchSize (T),Precision,NumParams\n13b,32768,8,h100_80gb,30.55,40.74,1,3,24,0,15250,1906,786432,amp_bf16,13011240960\n13b,32768,16,h100_80gb,30.10,40.10,1,3,48,0,30050,1878,1572864,amp_bf16,13011240960\n13b,32768,32,h100_80gb,29.00,38.70,1,3,96,1,57920,1810,3145728,amp_bf16,13011240960\n",
			runs: []string{"8 tokens_per_second 15250 reported_mfu 0.3055", "16 tokens_per_second 30050 reported_mfu 0.301", "32 tokens_per_second 57920 reported_mfu 0.29"}},
		{name: "times", args: w + "train_seconds=seconds", csv: "gpus,seconds\n1,120.5\n2,61.2\n4,31.8\n", runs: []string{"1 train_seconds 120.5", "2 train_seconds 61.2", "4 train_seconds 31.8"}},
		{name: "epochs", args: w + "epoch=ep|--map|epoch_seconds=took|--map|accuracy=acc", csv: "gpus,ep,took,acc\n1,1,10,0.4\n1,2,9,0.5\n2,1,6,0.35\n2,2,5,0.58\n", runs: []string{"1 accuracy 0.4 accuracy 0.5 train_seconds 19", "2 accuracy 0.35 accuracy 0.58 train_seconds 11"}},
		{name: "epochs with a phase", args: w + "epoch=ep|--map|epoch_seconds=took|--map|accuracy=acc", csv: "gpus,ep,took,acc,phase,decays\n1,1,10,0.4,warm,0\n1,2,9,0.5,main,0\n1,3,9,0.6,main,1\n2,1,6,0.35,warm,0\n2,2,5,0.58,main,0\n2,3,5,0.6,main,1\n", runs: []string{"1 accuracy 0.4 accuracy 0.5 accuracy 0.6 train_seconds 28", "2 accuracy 0.35 accuracy 0.58 accuracy 0.6 train_seconds 16"}},
		{name: "an accuracy that wavers", args: w + "epoch=ep|--map|accuracy=top1 %", csv: "gpus,ep,top1 %\n1,1,70\n1,2,72\n1,3,71.5\n", runs: []string{"1 accuracy 0.7 accuracy 0.72 accuracy 0.715"}},
		{name: "labels", args: w + "throughput=img/s|--label|precision=precision", csv: "gpus,precision,img/s\n1,fp32,100\n2,fp32,190\n1,bf16,210\n2,bf16,400\n", runs: []string{"1 precision=fp32 throughput 100", "2 precision=fp32 throughput 190", "1 precision=bf16 throughput 210", "2 precision=bf16 throughput 400"}},
		{name: "one precision", args: w + "throughput=img/s", csv: "gpus,precision,GPU,img/s\n1,bf16,A100,210\n2,bf16,A100,400\n", runs: []string{"1 throughput 210", "2 throughput 400"}},
		{name: "times of runs in turns", args: w + "throughput=img/s|--map|started=when", csv: "gpus,when,img/s\n1,2024-05-01T10:00:00Z,100\n2,2024-05-01T10:10:00Z,190\n1,2024-05-01T10:20:00Z,101\n2,2024-05-01T10:30:00Z,191\n", runs: []string{"1 throughput 100", "2 throughput 190", "1 throughput 101", "2 throughput 191"}},
		{name: "dates that all counts share", args: w + "throughput=img/s", csv: "gpus,date,img/s\n1,2024-05-01,100\n2,2024-05-01,190\n1,2024-05-02,101\n2,2024-05-02,191\n", runs: []string{"1 throughput 100", "2 throughput 190", "1 throughput 101", "2 throughput 191"}},
		{name: "semicolons and points of two digits", args: w + "throughput=img/s", csv: "gpus;img/s\n1;100.25\n2;190.125\n", runs: []string{"1 throughput 100.25", "2 throughput 190.125"}},
		{name: "semicolons and decimal commas, declared", args: w + "throughput=img/s|--decimal|comma", csv: "gpus;img/s\n1;100,25\n2;1.190,5\n", runs: []string{"1 throughput 100.25", "2 throughput 1190.5"}},
		{name: "fractions that begin with 0", args: w + "epoch=ep|--map|accuracy=acc", csv: "gpus;ep;acc\n1;1;0.412\n1;2;0.598\n", runs: []string{"1 accuracy 0.412 accuracy 0.598"}},
		{name: "tabs", args: w + "throughput=img/s", csv: "gpus\timg/s\n1\t100.123\n2\t190.456\n", runs: []string{"1 throughput 100.123", "2 throughput 190.456"}},
		{name: "a service", args: "--map|replicas=n|--map|rate=asked|--map|requests_per_second=got|--map|latency_p95=p95 ms|--map|errors=bad %", csv: "n,asked,got,p95 ms,bad %\n1,50,50,12.5,0\n1,100,99,40,1\n2,100,101,12.5,0\n",
			runs: []string{"1 requests_per_second 50 samples_per_second 50 latency_p95 0.0125 errors 0", "1 requests_per_second 99 samples_per_second 99 latency_p95 0.04 errors 0.01", "2 requests_per_second 101 samples_per_second 101 latency_p95 0.0125 errors 0"}},
		{name: "a closed loop", args: "--map|replicas=n|--map|threads=conns|--map|requests_per_second=rps|--map|latency_p50=p50:s|--map|latency_p99=p99:s", csv: "n,conns,rps,p50,p99\n1,8,191,0.038,0.099\n2,8,317,0.022,0.103\n",
			runs: []string{"1 requests_per_second 191 samples_per_second 191 latency_p50 0.038 latency_p99 0.099", "2 requests_per_second 317 samples_per_second 317 latency_p50 0.022 latency_p99 0.103"}},
		{name: "a table of means", args: w + "throughput=img/s", csv: "gpus,stat,img/s\n1,mean,100\n2,mean,190\n", runs: []string{"1 throughput 100", "2 throughput 190"}},
		{name: "nodes and workers", args: w + "throughput=img/s|--map|nodes=nodes", csv: "gpus,nodes,img/s\n8,1,100\n16,2,190\n", runs: []string{"8 throughput 100", "16 throughput 190"}},
	})
}
