package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// A sharedStudy is a study whose figures several commands show.
type sharedStudy struct {
	name   string
	counts []int
	runs   int
	order  string // "blocks", "plan", or "shuffled"
	step   func(r *rand.Rand, workers, repeat, at, of int) (seconds float64, node string, misses bool)
}

func steady(r *rand.Rand, workers int) float64 {
	return 0.02 * (1 + 0.1*math.Log2(float64(workers))) * math.Exp(0.02*r.NormFloat64())
}

// ingest stores the runs of the study, one after the other in its order.
func (s sharedStudy) ingest(t *testing.T, db *store.Store, dir string) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(len(s.name)), 34))
	type which struct{ workers, repeat int }
	var order []which
	for repeat := range s.runs {
		block := make([]which, len(s.counts))
		for i, k := range r.Perm(len(s.counts)) {
			block[i] = which{s.counts[k], repeat + 1}
		}
		order = append(order, block...)
	}
	switch s.order {
	case "plan":
		order = nil
		for _, workers := range s.counts {
			for repeat := range s.runs {
				order = append(order, which{workers, repeat + 1})
			}
		}
	case "shuffled":
		r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	}
	for at, w := range order {
		step, node, misses := s.step(r, w.workers, w.repeat, at, len(order))
		began := 1795000000 + 600*float64(at)
		point := fmt.Sprintf("native-w%d", w.workers)
		run := metrics.Run{
			ID: fmt.Sprintf("%s/%s-r%d-a1", s.name, point, w.repeat), Study: s.name, Point: point, Repeat: w.repeat, Attempt: 1,
			Kind: "train", Framework: "native", Workers: w.workers, Nodes: 1,
			Parameters: map[string]any{"framework": "native", "workers": int64(w.workers), "workload.batch": int64(32),
				"workload.scaling": "weak", "workload.targets": []any{0.5, 0.75}},
			Status: metrics.Done, Dir: filepath.Join(dir, s.name, point), CreatedUnix: began,
		}
		environment := &metrics.Environment{Hostname: "node1", CPUModel: "Test CPU", CPUs: 4, Versions: map[string]string{"native": "1"}}
		var files []metrics.EventFile
		for rank := range w.workers {
			text := string(rankEvents(rank, w.workers, began, 32, step, environment))
			text = strings.ReplaceAll(text, `"node1"`, `"`+node+`"`)
			if misses {
				text = strings.ReplaceAll(text, "0.75", "0.7")
			}
			path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d-%d.jsonl", s.name, w.workers, w.repeat, rank))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, metrics.EventFile{Path: path, Writer: "rank", Rank: rank})
		}
		if _, err := db.Ingest(context.Background(), run, files); err != nil {
			t.Fatal(err)
		}
	}
}

// sharedStudies cover every way in which a ratio is computed or refused.
var sharedStudies = []sharedStudy{
	{"even", []int{1, 2, 4}, 7, "blocks", func(r *rand.Rand, workers, _, _, _ int) (float64, string, bool) {
		return steady(r, workers), "node1", false
	}},
	{"drift", []int{1, 2, 4}, 8, "blocks", func(r *rand.Rand, workers, _, at, of int) (float64, string, bool) {
		return steady(r, workers) * math.Exp(-0.3*float64(at)/float64(of)), "node1", false
	}},
	{"shuffled", []int{1, 2, 4}, 8, "shuffled", func(r *rand.Rand, workers, _, at, of int) (float64, string, bool) {
		return steady(r, workers) * math.Exp(0.3*float64(at)/float64(of)), "node1", false
	}},
	{"plan", []int{1, 2, 4}, 6, "plan", func(r *rand.Rand, workers, _, at, of int) (float64, string, bool) {
		return steady(r, workers) * math.Exp(-0.3*float64(at)/float64(of)), "node1", false
	}},
	{"blockwise", []int{1, 2}, 8, "blocks", func(r *rand.Rand, workers, repeat, _, _ int) (float64, string, bool) {
		return steady(r, workers) * (1 + 0.1*float64(repeat*5%8)), "node1", false
	}},
	{"miss", []int{1, 2, 4}, 6, "blocks", func(r *rand.Rand, workers, repeat, at, of int) (float64, string, bool) {
		return steady(r, workers) * math.Exp(-0.2*float64(at)/float64(of)), "node1", workers > 1 && repeat == 3
	}},
	{"half", []int{1, 2, 4}, 6, "blocks", func(r *rand.Rand, workers, repeat, _, _ int) (float64, string, bool) {
		return steady(r, workers), "node1", workers == 4 && repeat%2 == 0
	}},
	{"few", []int{1, 2, 4}, 3, "blocks", func(r *rand.Rand, workers, _, _, _ int) (float64, string, bool) {
		return steady(r, workers), "node1", false
	}},
	{"nodes", []int{1, 2, 4}, 9, "blocks", func(r *rand.Rand, workers, repeat, _, _ int) (float64, string, bool) {
		if repeat%3 == 0 {
			return 1.4 * steady(r, workers), "slow", false
		}
		return steady(r, workers), fmt.Sprint("node", repeat%3), false
	}},
}

// sharedTables are studies that were imported: with the times of the runs, without, and
// of a service.
var sharedTables = map[string]struct {
	table string
	flags []string
}{
	"timed":   {"throughput", []string{"--map", "started=when"}},
	"untimed": {"throughput", nil},
	"service": {"requests_per_second", []string{"--at", "threads=8", "--map", "started=when"}},
}

func sharedTable(name, measure string) string {
	r := rand.New(rand.NewPCG(uint64(len(name)), 9))
	var text strings.Builder
	text.WriteString("workers," + measure + ",when\n")
	at := 0
	for range 8 {
		for _, k := range r.Perm(3) {
			workers := 1 << k
			rate := 100 * math.Pow(float64(workers), 0.8) * math.Exp(0.3*float64(at)/24+0.02*r.NormFloat64())
			fmt.Fprintf(&text, "%d,%.6g,%d\n", workers, rate, 1795000000+600*at)
			at++
		}
	}
	return text.String()
}

// facts are the values of a quantity by output; NaN: the output lacks it.
type facts map[string]map[string]float64

func (f facts) add(quantity, output string, value any) {
	x := math.NaN()
	switch v := value.(type) {
	case float64:
		x = v
	case int64:
		x = float64(v)
	case string:
		if v != "" {
			x, _ = strconv.ParseFloat(v, 64)
		}
	}
	if f[quantity] == nil {
		f[quantity] = map[string]float64{}
	}
	f[quantity][output] = x
}

// differ lists the quantities that differ between outputs.
func (f facts) differ() (list []string) {
	for _, quantity := range slices.Sorted(maps.Keys(f)) {
		said := f[quantity]
		outputs := slices.Sorted(maps.Keys(said))
		for _, o := range outputs[1:] {
			a, b := said[outputs[0]], said[o]
			if math.IsNaN(a) != math.IsNaN(b) || math.Abs(a-b) > 1e-9*math.Abs(a) {
				list = append(list, fmt.Sprintf("%s: %s has %v, %s has %v", quantity, outputs[0], a, o, b))
			}
		}
	}
	return list
}

// shareStudies stores the studies and tables in a database of a new folder. It returns the
// folder, a function that runs a command and returns its output, and the studies' names.
func shareStudies(t *testing.T) (dir string, output func(words ...string) string, studies []string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "db")
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sharedStudies {
		s.ingest(t, db, dir)
		studies = append(studies, s.name)
	}
	if err := db.Arrange(context.Background()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte("[[prices]]\nper = \"node\"\nhour = 3600\ncurrency = \"USD\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	output = func(words ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := invoke(append([]string{"scalebench", "--db", path}, words...), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%v: exit code %d: %s", words, code, errs.String())
		}
		return out.String()
	}
	for _, name := range slices.Sorted(maps.Keys(sharedTables)) {
		one := sharedTables[name]
		file := filepath.Join(dir, name+".csv")
		if err := os.WriteFile(file, []byte(sharedTable(name, one.table)), 0o644); err != nil {
			t.Fatal(err)
		}
		output(append([]string{"import", file, "--from", "csv", "--set", "study=" + name}, one.flags...)...)
	}
	return dir, output, studies
}

// Commands and views that show the same quantity of a study show the same value, or all
// lack it: speedups and their intervals, efficiencies, medians, times to a target.
func TestOutputsAgree(t *testing.T) {
	dir, output, studies := shareStudies(t)
	site := filepath.Join(dir, "site.toml")
	views, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer views.Close()
	rows := func(words ...string) (list []map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(output(append(words, "--format", "json")...)), &list); err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		return list
	}
	f := facts{}
	for _, study := range studies {
		f.scaling(study, rows("scaling", study))
		f.lines(t, study, output("scaling", study, "--format", "csv"))
		f.measure(study, "to_0.75", rows("scaling", study, "--metric", "to_0.75"))
		f.measure(study, "throughput", rows("scaling", study, "--metric", "throughput"))
		f.cost(study, rows("cost", study, "--site", site, "--target", "0.75", "--baseline", "workers=1"))
		f.advice(study, rows("advise", study, "--target", "0.75"))
		f.views(t, study, views)
		f.medians(study, "predict", rows("predict", study, "--workers", "8"))
		f.medians(study, "history", rows("history", study))
		other := "even"
		if study == other {
			other = "shuffled"
		}
		f.medians(study, "compare", rows("compare", study, other))
	}
	for name, one := range sharedTables {
		if one.table == "throughput" {
			f.scaling(name, rows("scaling", name))
			f.lines(t, name, output("scaling", name, "--format", "csv"))
			f.advice(name, rows("advise", name))
			f.medians(name, "predict", rows("predict", name, "--workers", "8", "--scaling", "weak"))
			f.medians(name, "history", rows("history", name))
		}
		f.measure(name, one.table, rows("scaling", name, "--metric", one.table))
		f.views(t, name, views)
	}
	f.report(t, output, dir, studies)
	for _, line := range f.differ() {
		t.Error(line)
	}
	for _, study := range slices.Concat(studies, slices.Collect(maps.Keys(sharedTables))) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(f)), func(q string) bool {
			return strings.HasPrefix(q, study+" 2 speedup of ") && len(f[q]) > 1
		}) {
			t.Errorf("no two outputs show a speedup of %s", study)
		}
	}
}

func (f facts) bounded(quantity, output string, row map[string]any, key string) {
	for _, end := range []string{"", "_low", "_high"} {
		f.add(quantity+end, output, row[key+end])
	}
}

func figureOf(study string, workers any, what string) string {
	return fmt.Sprint(study, " ", workers, " ", what)
}

func (f facts) scaling(study string, list []map[string]any) {
	for _, row := range list {
		for _, key := range []string{"throughput", "speedup", "efficiency"} {
			what := key
			if key != "throughput" {
				what = key + " of throughput"
			}
			f.bounded(figureOf(study, row["workers"], what), "scaling json", row, key)
		}
		targets, _ := row["time_to_accuracy"].(map[string]any)
		if of, has := targets["0.75"].(map[string]any); has {
			f.bounded(figureOf(study, row["workers"], "to_0.75"), "scaling json", of, "seconds")
			f.bounded(figureOf(study, row["workers"], "speedup of to_0.75"), "scaling json", of, "speedup")
		}
	}
}

func (f facts) lines(t *testing.T, study, text string) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatal(err, text)
	}
	for _, line := range lines[1:] {
		row := map[string]any{}
		for i, key := range lines[0] {
			row[key] = line[i]
		}
		for key, what := range map[string]string{"throughput": "throughput", "speedup": "speedup of throughput", "efficiency": "efficiency of throughput",
			"to_0.75_seconds": "to_0.75", "to_0.75_speedup": "speedup of to_0.75"} {
			if _, has := row[key]; has {
				f.bounded(figureOf(study, row["workers"], what), "scaling csv", row, key)
			}
		}
	}
}

func (f facts) measure(study, name string, list []map[string]any) {
	for _, row := range list {
		workers := row["workers"]
		if workers == nil {
			workers = row["replicas"]
		}
		f.bounded(figureOf(study, workers, name), "scaling --metric", row, name)
		f.bounded(figureOf(study, workers, "speedup of "+name), "scaling --metric", row, "speedup")
		f.bounded(figureOf(study, workers, "efficiency of "+name), "scaling --metric", row, "efficiency")
	}
}

// cost is at 1 USD a second, on one node each: costs are the times to the target, and the
// normalised time is the inverse of the speedup.
func (f facts) cost(study string, list []map[string]any) {
	for _, row := range list {
		f.add(figureOf(study, row["workers"], "to_0.75"), "cost time", row["time_seconds"])
		f.add(figureOf(study, row["workers"], "to_0.75"), "cost", row["cost"])
		for key, end := range map[string]string{"": "", "_low": "_high", "_high": "_low"} {
			var inverse any
			if x, has := row["time_normalised"+key].(float64); has {
				inverse = 1 / x
			}
			f.add(figureOf(study, row["workers"], "speedup of to_0.75"+end), "cost time_normalised", inverse)
			if x, has := row["cost_normalised"+key].(float64); has {
				inverse = 1 / x
			}
			f.add(figureOf(study, row["workers"], "speedup of to_0.75"+end), "cost cost_normalised", inverse)
		}
	}
}

func (f facts) advice(study string, list []map[string]any) {
	for _, series := range list {
		candidates, _ := series["candidates"].([]any)
		for _, c := range candidates {
			row := c.(map[string]any)
			if row["basis"] != "measured" {
				continue
			}
			for key, what := range map[string]string{"throughput": "throughput", "efficiency": "efficiency of throughput", "train_seconds": "to_0.75"} {
				e, has := row[key].(map[string]any)
				if !has {
					continue
				}
				f.add(figureOf(study, row["workers"], what), "advise", e["value"])
				// For the base, advise gives 100 % as both ends of the interval.
				if e["low"] != nil && !(key == "efficiency" && e["low"] == e["high"]) {
					f.add(figureOf(study, row["workers"], what+"_low"), "advise", e["low"])
					f.add(figureOf(study, row["workers"], what+"_high"), "advise", e["high"])
				}
			}
		}
	}
}

// medians adds the throughput at each count. predict lists it with the measured counts, history
// prints it if nothing changed from the first run to the last, and compare prints it for the
// first of two studies.
func (f facts) medians(study, command string, list []map[string]any) {
	segments := map[any]int{}
	for _, row := range list {
		segments[row["workers"]]++
	}
	for _, row := range list {
		quantity := figureOf(study, row["workers"], "throughput")
		switch command {
		case "predict":
			measured, _ := row["measured"].([]any)
			for _, m := range measured {
				one := m.(map[string]any)
				f.add(figureOf(study, one["workers"], "throughput"), command, one["rate"])
			}
		case "history":
			if segments[row["workers"]] == 1 {
				f.add(quantity, command, row["median"])
			}
		case "compare":
			if row["metric"] == "throughput" {
				f.bounded(quantity, command, map[string]any{"x": row["a"], "x_low": row["a_low"], "x_high": row["a_high"]}, "x")
			}
		}
	}
}

func (f facts) views(t *testing.T, study string, db *sql.DB) {
	t.Helper()
	for view, query := range map[string]string{
		"view curves":  "SELECT measure, at, median, speedup FROM curves WHERE study = ? AND axis = 'workers'",
		"view scaling": "SELECT 'throughput', workers, throughput_median, speedup FROM scaling WHERE study = ?",
	} {
		list, err := db.Query(query, study)
		if err != nil {
			t.Fatal(err)
		}
		for list.Next() {
			var name string
			var at int64
			var median, speedup any
			if err := list.Scan(&name, &at, &median, &speedup); err != nil {
				t.Fatal(err)
			}
			f.add(figureOf(study, at, name), view, median)
			f.add(figureOf(study, at, "speedup of "+name), view, speedup)
		}
		if err := list.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// report adds the values of a report's figures, which are in files next to it.
func (f facts) report(t *testing.T, output func(...string) string, dir string, studies []string) {
	t.Helper()
	for _, study := range studies {
		output("report", study, "-o", filepath.Join(dir, study+".md"))
		text, err := os.ReadFile(filepath.Join(dir, study+"-scaling.json"))
		if err != nil {
			t.Fatal(err)
		}
		var list []map[string]any
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for _, row := range list {
			f.bounded(figureOf(study, row["workers"], "throughput"), "report", row, "throughput")
			f.bounded(figureOf(study, row["workers"], "speedup of throughput"), "report", row, "speedup")
		}
	}
}
