package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/summary"
)

// generate writes the event files of a run with the given ranks and steps: 50 ms per step with
// 1 % noise, in microseconds, 100 steps per line. With parts, they also have data wait,
// compute and communication.
func generate(b *testing.B, dir string, ranks, steps int, parts bool) []metrics.EventFile {
	b.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	var files []metrics.EventFile
	for rank := range ranks {
		path := filepath.Join(dir, fmt.Sprintf("rank-%05d-0.jsonl", rank))
		file, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(file)
		w.WriteString(lines(start(rank, ranks, 0), metrics.Event{Time: 1, Train: &metrics.Train{GlobalBatch: 32 * ranks}}))
		e := json.NewEncoder(w)
		for first := 0; first < steps; first += 100 {
			s := metrics.Steps{First: first, Tick: 1e-6}
			for range min(100, steps-first) {
				wait, compute, communication := 20+rng.Int64N(60), int64(40000+400*rng.NormFloat64()), int64(9000+300*rng.NormFloat64())
				s.Duration = append(s.Duration, wait+compute+communication+rng.Int64N(50))
				s.Samples = append(s.Samples, 32)
				if parts {
					s.DataWait, s.Compute, s.Communication = append(s.DataWait, wait), append(s.Compute, compute), append(s.Communication, communication)
				}
			}
			if err := e.Encode(stepsEvent(1+0.05*float64(first+100), s)); err != nil {
				b.Fatal(err)
			}
		}
		w.WriteString(lines(metrics.Event{Time: 1e6, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: steps}}))
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		file.Close()
		files = append(files, metrics.EventFile{Path: path, Writer: "rank", Rank: rank})
	}
	return files
}

// peak is the process's largest resident size so far, in MB.
func peak(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1e3
		}
	}
	return 0
}

func BenchmarkIngest(b *testing.B) {
	for _, shape := range []struct {
		ranks, steps int
		parts        bool
	}{{4, 10_000, true}, {64, 100_000, false}, {64, 100_000, true}} {
		name := fmt.Sprintf("%dx%d", shape.ranks, shape.steps)
		if shape.parts {
			name += "-parts"
		}
		b.Run(name, func(b *testing.B) {
			if testing.Short() && shape.ranks > 4 {
				b.Skip("-short")
			}
			files := generate(b, b.TempDir(), shape.ranks, shape.steps, shape.parts)
			run := aRun()
			run.Workers = shape.ranks
			for b.Loop() {
				b.StopTimer()
				s := openStore(b)
				b.StartTimer()
				r, err := s.Ingest(b.Context(), run, files)
				if err != nil || r.Steps != shape.ranks*shape.steps {
					b.Fatal(r, err)
				}
				b.StopTimer()
				if _, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(s.path)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(info.Size())/1e6, "db-MB")
				b.ReportMetric(peak(b), "peak-MB")
				if shape.ranks == 64 {
					b.ReportMetric(10e9, "target-ns/op")
					b.ReportMetric(60, "target-db-MB")
					b.ReportMetric(100, "target-peak-MB")
					timed(b, "unchanged-ms", func() {
						if r, err := s.Ingest(b.Context(), run, files); err != nil || r.Changed {
							b.Fatal(r, err)
						}
					})
					for column, name := range map[string]string{"sum(duration)": "rank-ms", "sum(duration + coalesce(data_wait + compute + communication, 0))": "rank-parts-ms"} {
						timed(b, name, func() {
							var sum float64
							if err := s.read.QueryRow("SELECT total(x) FROM (SELECT " + column + " AS x FROM rank_step WHERE run = 's/p2-r1-a1' AND rank = 7)").Scan(&sum); err != nil || sum < 1 {
								b.Fatal(sum, err)
							}
						})
					}
				}
				s.Close()
				b.StartTimer()
			}
		})
	}
}

func timed(b *testing.B, unit string, f func()) {
	began := time.Now()
	f()
	b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, unit)
}

// filled returns a database with n finished runs, 300 per study, each with 40
// parameters, two targets and ten evaluations.
func filled(b testing.TB, n int) *Store {
	b.Helper()
	s := openStore(b)
	for i, q := range []string{
		"CREATE TEMP TABLE n (i INTEGER PRIMARY KEY)",
		fmt.Sprintf("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < %d) INSERT INTO n SELECT i FROM c", n),
		"INSERT INTO study (name, id, home, file, arranged) SELECT 'study' || i, i, '', '', 1 FROM n WHERE i <= (SELECT max(i) FROM n) / 300 UNION SELECT 'study0', 0, '', '', 1",
		`INSERT INTO series (id, study, name, axis, base) SELECT i, 'study' || (i / 4), 'native batch=' || (i % 4), 'workers', 1 FROM n WHERE i / 4 <= (SELECT max(i) FROM n) / 300`,
		`INSERT INTO every_run (id, name, study, point, repeat, attempt, kind, framework, workers, beside, nodes, series, status, detail, dir, created, ingested, facts)
			SELECT i, 'study' || (i / 300) || '/p' || (i % 300 / 6) || '-r' || (i % 6 + 1) || '-a1', 'study' || (i / 300), 'p' || (i % 300 / 6), i % 6 + 1, 1, 'train',
			iif(i % 3 = 0, 'pytorch', 'native'), 1 << (i / 6 % 6), 0, 1, 'native batch=' || ((i / 75 + 1) % 4), iif(i % 20 = 0, 'failed', 'done'), '', '/scratch/runs/' || i, 1.7e9 + i, 1.7e9, '' FROM n`,
		"INSERT INTO member (run, series, place, at) SELECT i, i / 75 + 1, 0, 1 << (i / 6 % 6) FROM n WHERE i / 75 + 1 <= (SELECT max(id) FROM series)",
		`INSERT INTO run_parameter (run, key, value, type) SELECT i, 'workload.key' || k.value, iif(k.value % 2, i % 1000, 'value ' || k.value), iif(k.value % 2, 'integer', 'text')
			FROM n, json_each('[10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48]') k`,
		"INSERT INTO run_parameter (run, key, value, type) SELECT i, 'workload.batch', 32 << (i % 5), 'integer' FROM n",
		"INSERT INTO parameter_key SELECT DISTINCT key FROM run_parameter WHERE run = 1",
		`INSERT INTO job (run, cluster, id, name, partition, state, reason, exit_code, nodes, submitted, started, ended)
			SELECT i, 'c', i, 'sb', 'gpu', 'COMPLETED', '', '0:0', '["n1"]', 1.7e9, 1.7e9, 1.7e9 FROM n`,
		fmt.Sprintf(`INSERT INTO result (run, algorithm, restart, world, steps, warmup_steps, steady_steps, samples, epochs, warnings, fingerprint, git_commit, noise_scale_why)
			SELECT i, %d, 0, 4, 1000, 10, 990, 64000, 10, '[]',
			'{"cpu":"AMD EPYC 7B13","data":"0123456789ab","gpu":"NVIDIA A100-SXM4-80GB","driver":"550.90.07","interface":"","nccl":"2.18.5","version.torch":"2.' || (i / 50000) || '"}', '', '' FROM n`, summary.AlgorithmVersion),
		`INSERT INTO measure (id, name, unit, title, better, speeds, reported, target, coordinates) VALUES (1, 'throughput', 'samples/s', 'throughput', 'higher', 1, 0, NULL, '[]'),
			(2, 'end_to_end', 'samples/s', 'end to end', 'higher', 1, 0, NULL, '[]'), (3, 'train_seconds', 's', 'train seconds', 'lower', 1, 0, NULL, '[]'),
			(4, 'to_0.5', 's', 'time to 0.5', 'lower', 1, 0, 0.5, '[]'), (5, 'to_0.6', 's', 'time to 0.6', 'lower', 1, 0, 0.6, '[]')`,
		`INSERT INTO value (run, measure, place, value, missed, why) SELECT i, k.value, 0,
			CASE k.value WHEN 1 THEN 1000 + (i * i * 31 + i * 7919) % 10007 / 130.0 WHEN 2 THEN 900 WHEN 3 THEN 71 ELSE 50 END, 0, ''
			FROM n, json_each('[1,2,3,4,5]') k`,
		`INSERT INTO event_file (id, run, writer, rank, restart, path, inode, size, modified, head, head_size, offset, line, started, world_size)
			SELECT i, i, 'rank', 0, 0, '/scratch/runs/' || i || '/events', i, 1, 1, x'', 0, 1, 1, 1.7e9, 1 FROM n`,
		"INSERT INTO train SELECT i, 1, 1, 4, 50000, 10000, 64, 100, 'aa', '' FROM n",
		"INSERT INTO evaluation (file, line, time, epoch, step, accuracy, samples, seconds, trained) SELECT i, k.value, 10 * k.value, k.value, 100 * k.value, 0.08 * k.value, 10000, 1, 6400 * k.value FROM n, json_each('[1,2,3,4,5,6,7,8,9,10]') k",
	} {
		if _, err := s.write.Exec(q); err != nil {
			b.Fatalf("statement %d: %v", i, err)
		}
	}
	return s
}

// The benchmark's database has the current schema.
func TestFilled(t *testing.T) {
	s := filled(t, 600)
	obs, _, err := s.Observations(t.Context(), "study1")
	if err != nil || len(obs) != 285 { // of 300, one in 20 failed
		t.Errorf("%d observations, %v", len(obs), err)
	}
	if rows := value(t, s, "SELECT count(*) > 0 FROM scaling WHERE study = 'study1'"); rows != "1" {
		t.Errorf("the view has no rows: %q", rows)
	}
}

func BenchmarkHistory(b *testing.B) {
	if testing.Short() {
		b.Skip("-short")
	}
	const n = 100_000
	s := filled(b, n)
	for name, f := range map[string]Filter{
		"newest-50":       {Limit: 50},
		"all":             {},
		"study":           {Study: "study7"},
		"workers":         {Workers: 32, Limit: 50},
		"rare-status":     {Statuses: []metrics.Status{metrics.Lost}},
		"where-column":    {Where: "throughput > 1070", Limit: 50},
		"where-parameter": {Where: "workload.batch > 64 AND framework = 'native'", Limit: 50},
		"where-none":      {Where: "workload.batch > 6400"},
	} {
		b.Run("Runs/"+name, func(b *testing.B) {
			rows := 0
			for b.Loop() {
				list, err := s.Runs(b.Context(), f)
				if err != nil {
					b.Fatal(err)
				}
				rows = len(list)
			}
			b.ReportMetric(float64(rows), "rows")
			if f.Limit > 0 { // the command line passes this limit
				b.ReportMetric(150e6, "target-ns/op")
			}
		})
	}
	b.Run("Observations", func(b *testing.B) {
		for b.Loop() {
			list, _, err := s.Observations(b.Context(), "study7")
			if err != nil || len(list) != 285 { // 300 less one in 20
				b.Fatal(len(list), err)
			}
		}
		b.ReportMetric(150e6, "target-ns/op")
	})
	// What `scalebench history` does, without printing.
	b.Run("History", func(b *testing.B) {
		for b.Loop() {
			points, prints, err := s.History(b.Context(), Filter{}, find(b, "throughput"))
			if err != nil || len(points) != 50 {
				b.Fatal(len(points), err)
			}
			var first []int64
			for _, p := range points {
				for _, segment := range compare.Trace(p.Samples, prints) {
					first = append(first, segment.Samples[0].Run)
				}
			}
			if marks, err := s.Marks(b.Context(), first); err != nil || len(marks) < 100 { // 50 points on 2 versions
				b.Fatal(len(marks), err)
			}
		}
		b.ReportMetric(300e6, "target-ns/op")
	})
	b.Run("Studies", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Studies(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Show", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Show(b.Context(), "study7/p7-r1-a1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scaling-view", func(b *testing.B) {
		for b.Loop() {
			var rows int
			if err := s.read.QueryRow("SELECT count(*) FROM scaling WHERE study = 'study7'").Scan(&rows); err != nil || rows == 0 {
				b.Fatal(rows, err)
			}
		}
	})
}
