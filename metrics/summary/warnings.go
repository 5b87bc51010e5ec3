package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// warnings returns the doubts about a run that do not show in its results.
func warnings(in Input) []string {
	var list []string
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }

	if len(in.Restarts) > 1 {
		warn("the run was started %d times; the results are those of restart %d", len(in.Restarts), in.Restart)
	}
	if in.World != 0 && in.World != in.Workers {
		warn("the ranks report a world size of %d, the plan asks for %s", in.World, number.Count(in.Workers, "worker"))
	}
	for _, r := range in.Ranks {
		if r.World != 0 && r.World != in.World {
			warn("rank %d reports a world size of %d, others %d: check that all ranks belong to one run", r.Rank, r.World, in.World)
		}
	}
	if len(in.Ranks) > 0 {
		n, missing, twice := absent(in)
		if n > 0 {
			warn("%d of %s recorded nothing (%s), so no step counts as complete",
				n, number.Count(in.World, "rank"), firstFew(missing))
		}
		if twice {
			warn("two files report for one rank, so no step counts as complete")
		}
	}
	if n := len(in.Steps); n > 0 {
		if span := in.Steps[n-1].Index - in.Steps[0].Index + 1; span != n || in.Steps[0].Index != 0 {
			warn("%d of the first %d steps are missing for at least one rank",
				in.Steps[n-1].Index+1-n, in.Steps[n-1].Index+1)
		}
	}
	if in.BadLines > 0 {
		warn("%s could not be read; see the bad lines of the run", number.Count(in.BadLines, "event line"))
	}
	return slices.Concat(list, models(in.Ranks), crowding(in.Places))
}

// models returns warnings if ranks did not train the same model.
func models(ranks []Rank) (list []string) {
	for _, end := range []struct {
		which string
		of    func(*Rank) string
	}{
		{"began", func(r *Rank) string {
			if r.Train == nil {
				return ""
			}
			return r.Train.ParameterSHA256
		}},
		{"ended", func(r *Rank) string {
			if r.Stop == nil {
				return ""
			}
			return r.Stop.ParameterSHA256
		}},
	} {
		seen := map[string]bool{}
		for i := range ranks {
			if h := end.of(&ranks[i]); h != "" {
				seen[h] = true
			}
		}
		if len(seen) > 1 {
			list = append(list, fmt.Sprintf("the ranks %s with %d different sets of parameters: they did not train one model", end.which, len(seen)))
		}
	}
	return list
}

// absent returns the number n of ranks that no file covers, and the first few of them. It lists
// only a few, because a damaged file can report any world size. twice is true if two files cover
// the same rank.
func absent(in Input) (n int, missing []int, twice bool) {
	next := 0 // the first rank not covered so far
	gap := func(until int) {
		n += max(0, until-next)
		for rank := next; rank < until && len(missing) <= fewRanks; rank++ {
			missing = append(missing, rank)
		}
	}
	for _, r := range in.Ranks {
		twice = twice || r.Rank < next
		gap(r.Rank)
		next = max(next, r.Rank+max(1, r.Ranks))
	}
	gap(in.World)
	return n, missing, twice
}

// crowding returns warnings about ranks that share a resource which each should have alone.
func crowding(places []Place) []string {
	type shared struct{ host, what string }
	cpus := map[shared]int{}    // number of CPUs in a CPU set
	count := map[shared]int{}   // number of ranks on it
	threads := map[shared]int{} // number of their compute threads, one if a rank does not say
	gpus := map[shared]int{}    // number of ranks on a GPU
	for _, p := range places {
		e := p.Environment
		if e == nil {
			continue
		}
		host, ranks := cmp.Or(e.Hostname, p.Host), max(1, p.Ranks)
		if e.CPUs > 0 {
			set := shared{host, e.CPUSet}
			cpus[set] = e.CPUs
			count[set] += ranks
			threads[set] += max(ranks, e.Threads)
		}
		// If a rank sees several GPUs, it selects one by its local rank, which is unknown here.
		if len(e.GPUs) == 1 && e.GPUs[0].UUID != "" {
			gpus[shared{host, e.GPUs[0].UUID}] += ranks
		}
	}
	var list []string
	for set, n := range count {
		if threads[set] > cpus[set] {
			compute := "compute"
			if n == 1 {
				compute = "computes"
			}
			list = append(list, fmt.Sprintf("%s on %s %s with %s on %s", number.Count(n, "rank"), set.host, compute, number.Count(threads[set], "thread"), number.Count(cpus[set], "CPU")))
		}
	}
	for gpu, n := range gpus {
		if n > 1 {
			list = append(list, fmt.Sprintf("%d ranks on %s share GPU %s", n, gpu.host, gpu.what))
		}
	}
	slices.Sort(list)
	return list
}

const fewRanks = 5

// firstFew returns a short list of ranks as text: "ranks 3, 5, 6, …".
func firstFew(ranks []int) string {
	var b strings.Builder
	b.WriteString("rank ")
	if len(ranks) > 1 {
		b.Reset()
		b.WriteString("ranks ")
	}
	for i, r := range ranks {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == fewRanks {
			b.WriteString("…")
			break
		}
		fmt.Fprint(&b, r)
	}
	return b.String()
}

// An Incarnation is one start of a run's ranks: the first, or a restart.
type Incarnation struct {
	Restart int
	Done    bool // rank 0 recorded a regular end
}

// Choose returns the restart from whose records the result is computed: the last one that ended
// regularly, or else the last one. ok is false for an empty list.
func Choose(list []Incarnation) (restart int, ok bool) {
	best := Incarnation{Restart: -1}
	for _, i := range list {
		if best.Restart < 0 || i.Done && !best.Done || i.Done == best.Done && i.Restart > best.Restart {
			best = i
		}
	}
	return max(best.Restart, 0), best.Restart >= 0
}
