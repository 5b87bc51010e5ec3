package target

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// asNull makes the test binary act as the null server, so that it runs in a separate process, as a real service
// does.
const asNull = "SCALEBENCH_TEST_NULL"

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		serve(how, os.Args[1], os.Args[2])
	}
	if os.Getenv(asNull) != "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			fmt.Printf("http://%s/\n", l.Addr())
			err = Null(l, 100)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// BenchmarkAgainstWrk loads one null server with wrk, with hey and with our closed loop in turn. It prints our
// requests per second divided by theirs, and our P99 divided by hey's: medians of five rounds.
func BenchmarkAgainstWrk(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), asNull+"=1")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	url := strings.TrimSpace(line)
	const connections, length = 16, 3 * time.Second
	for b.Loop() {
		var rates, p99s, cpus, wrks, heys []float64
		for range 5 {
			wrk := sendWrk(b, url, connections, length)
			rate, p99 := sendHey(b, url, connections, length)
			h := &HTTP{URLs: []string{url}}
			r, err := loadtest.Run(context.Background(), loadtest.Options{Dial: h.Dial, InFlight: connections, Duration: length, Window: length / loadtest.Windows, Timeout: time.Minute})
			if err != nil {
				b.Fatal(err)
			}
			total := loadtest.Merge(r.Windows)
			ours, _ := total.Percentile(loadtest.Latency, 0.99)
			rates, wrks, heys = append(rates, total.Rate()), append(wrks, total.Rate()/wrk), append(heys, total.Rate()/rate)
			p99s, cpus = append(p99s, ours/p99), append(cpus, 1e6*r.ClientCPU/total.Rate())
		}
		for unit, list := range map[string][]float64{"requests/s": rates, "of-wrk's-rate": wrks, "of-hey's-rate": heys, "of-hey's-P99": p99s, "µs-CPU/request": cpus} {
			slices.Sort(list)
			b.ReportMetric(list[len(list)/2], unit)
		}
	}
}

func sendWrk(b *testing.B, url string, connections int, length time.Duration) (rate float64) {
	out, err := exec.Command("wrk", "-t1", "-c", strconv.Itoa(connections), "-d", fmt.Sprintf("%.0fs", length.Seconds()), url).Output()
	found := regexp.MustCompile(`Requests/sec: +([\d.]+)`).FindSubmatch(out)
	if err != nil || found == nil {
		b.Fatalf("wrk: %v\n%s", err, out)
	}
	rate, _ = strconv.ParseFloat(string(found[1]), 64)
	return rate
}

func sendHey(b *testing.B, url string, connections int, length time.Duration) (rate, p99 float64) {
	out, err := exec.Command("hey", "-z", length.String(), "-c", strconv.Itoa(connections), "-o", "csv", url).Output()
	if err != nil {
		b.Fatalf("hey: %v\n%s", err, out)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 100 {
		b.Fatalf("hey: %v, %d rows", err, len(rows))
	}
	var times []float64
	for _, row := range rows[1:] { // response-time is the first column
		t, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, t)
	}
	slices.Sort(times)
	return float64(len(times)) / length.Seconds(), times[len(times)*99/100]
}
