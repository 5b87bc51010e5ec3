package slurm

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// BenchmarkPlanAndRender goes from a study's text to its batch scripts without writing them. 10,000 points
// should take less than a second, and the time per point should not depend on their number.
func BenchmarkPlanAndRender(b *testing.B) {
	for _, points := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			batches := make([]string, points/10)
			for i := range batches {
				batches[i] = fmt.Sprint(i + 1)
			}
			text := "[study]\nname = \"scale\"\n[workload]\nmodel = \"mlp\"\nepochs = 1\n[data]\nkind = \"synthetic\"\n" +
				"[sweep]\nworkers = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]\nbatch = [" + strings.Join(batches, ", ") + "]\n"
			site := study.DefaultSite()
			for b.Loop() {
				s, err := study.Parse("study.toml", []byte(text), framework.ForStudy())
				if err != nil {
					b.Fatal(err)
				}
				plan, err := s.Plan(site)
				if err != nil || len(plan.Points) != points {
					b.Fatalf("%d points (%v), want %d", len(plan.Points), err, points)
				}
				backend, err := open(launcher.Options{Creator: launcher.Creator{Folder: rundir.OpenStudy("/shared/runs", s.Name), Site: site, Worker: "/shared/scalebench-worker"}})
				if err != nil {
					b.Fatal(err)
				}
				for _, p := range plan.Points {
					if err := backend.Render(io.Discard, p, backend.Draft(p)); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*points), "µs/point")
			if points == 10_000 {
				b.ReportMetric(1e9, "target-ns/op")
			}
		})
	}
}
