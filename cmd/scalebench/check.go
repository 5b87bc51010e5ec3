package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

func checkCommand(s *session) *cli.Command {
	var site string
	var command commandOptions
	return &cli.Command{
		Name:      "check",
		Usage:     "validate a study and print its plan",
		ArgsUsage: studyOrCommand,
		Description: "Nothing is submitted, and nothing from the study is run.\n" +
			"\n" +
			"check refuses points that cannot succeed, as far as this host can tell: a missing\n" +
			"data folder, script or interpreter, a package that the interpreter does not have, an\n" +
			"unknown partition. It asks only an interpreter from your PATH or from a site file\n" +
			"given with --site. Modules, setup lines and containers are checked by `doctor`, on\n" +
			"the nodes. Commands that start runs also refuse missing files, unless you add\n" +
			"--unchecked because the nodes have them.\n" +
			"\n" +
			"The plan shows which points have results in the run folders, and why others do not.\n" +
			"Node-hours and cost are upper bounds for the runs that are left: nodes times the\n" +
			"jobs' time limit.\n" +
			"\n" +
			overrideHelp + "\n" +
			"\n" +
			typedHelp,
		Flags: append([]cli.Flag{siteFlag(&site)}, command.flags()...),
		Action: func(c *cli.Context) error {
			a, err := command.asked(site, c.Args().Slice())
			if err != nil {
				return err
			}
			return runCheck(c.Context, s, a)
		},
	}
}

func runCheck(ctx context.Context, s *session, a asked) error {
	w, err := s.load(ctx, a, nil)
	if err != nil {
		return err
	}
	if err := w.CheckTemplate(); err != nil {
		return err
	}
	// People see no columns that would be empty.
	none := func(has func(study.Point) bool) bool {
		return !slices.ContainsFunc(w.Plan.Points, func(p study.Planned) bool { return has(p.Point) })
	}
	untold := func(path string) bool { return none(func(p study.Point) bool { return p.Reaches(path) }) }
	batchless := none(func(p study.Point) bool { return p.ToldBatch() })
	in, err := w.Inventory(ctx)
	if err != nil {
		return err
	}
	swept := slices.DeleteFunc(w.Study.Swept(), func(path string) bool {
		return slices.Contains([]string{"framework", "variant", "workload.model", "workers", "workload.batch", "resources.time"}, path) // have columns
	})
	t := &table.Table{Columns: []table.Column{{Key: "point"}, {Key: "framework"},
		{Key: "variant", Data: none(func(p study.Point) bool { return p.Variant != "" })}, {Key: "model", Data: untold("workload.model")}}}
	for _, path := range swept {
		t.Columns = append(t.Columns, table.Column{Key: path, Head: path[strings.LastIndexByte(path, '.')+1:], Show: number.Exact})
	}
	t.Columns = append(t.Columns, []table.Column{{Key: "workers"}, {Key: "nodes", Optional: true}, {Key: "workers_per_node", Optional: true},
		{Key: "partition", Optional: true}, {Key: "exclusive", Optional: true},
		{Key: "worker_batch", Optional: true, Data: batchless}, {Key: "global_batch", Optional: true, Data: batchless},
		{Key: "learning_rate", Head: "scaled learning rate", Optional: true, Data: untold("workload.reference_batch")},
		{Key: "runs"}, {Key: "time_limit", Show: number.Seconds, Optional: true}, {Key: "node_hours", Head: "max node-hours"},
		{Key: "results"}, {Key: "why", Head: "missing"},
	}...)
	for _, p := range w.Plan.Points {
		if q := p.Point; q.Repeat == w.Study.First {
			partition := any(p.Partition)
			if p.Partition == "" {
				partition = nil // the cluster's default
			}
			cells := []any{q.ID, q.Framework, table.NonZero(q.Variant), heard(q, "workload.model", modelOf(w.Study, q))}
			parameters := q.Parameters()
			for _, path := range swept {
				cells = append(cells, study.Shown(path, parameters[path]))
			}
			t.Add(append(cells, q.Workers, q.Nodes, q.WorkersPerNode, partition, p.Exclusive,
				batch(q, q.WorkerBatch), batch(q, q.GlobalBatch), heard(q, "workload.reference_batch", q.LearningRate), w.Study.Runs(), q.Resources.Time.Seconds(),
				p.NodeHours()*float64(in.Left[q.ID]), in.Good[q.ID], table.NonZero(strings.Join(in.Why[q.ID], ", ")))...)
		}
	}
	lacks := func(row []any) bool { return row[len(row)-1] != nil }
	t.Columns[len(t.Columns)-1].Data = !slices.ContainsFunc(t.Rows, lacks)
	t.Fold("point", "framework", "model", "nodes", "workers_per_node", "partition", "exclusive", "worker_batch", "global_batch", "learning_rate", "runs", "time_limit")
	most, err := atMost(in.Make, w.Site)
	if err != nil {
		return err
	}
	runs := number.Count(len(w.Plan.Points), "run")
	all := fmt.Sprintf("study %s: %s, %s", w.Study.Name, number.Count(len(t.Rows), "point"), runs)
	switch left := len(in.Make.Points); left {
	case len(w.Plan.Points):
		t.Notes = append(t.Notes, all+", "+most)
	case 0:
		t.Notes = append(t.Notes, all, "0 of "+runs+" to make")
	default:
		t.Notes = append(t.Notes, all, fmt.Sprintf("%d of %s to make: %s", left, runs, most))
	}
	if w.Plan.LeftOut > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s left out: their degrees do not fit their workers", number.Count(w.Plan.LeftOut, "combination")))
	}
	if a.typed {
		s.tellStudy(a, w)
	} else {
		for _, o := range w.Study.Overrides {
			t.Notes = append(t.Notes, onCommandLine+o.String())
		}
	}
	lengths, short := w.Study.Lengths(w.Plan)
	t.Notes = append(append(t.Notes, lengths...), in.Summary(len(t.Rows)))
	t.Notes = append(t.Notes, in.Outdated...)
	if _, err := exec.LookPath("sbatch"); err != nil {
		if unused := local.Unused(w.Study); len(unused) > 0 {
			t.Notes = append(t.Notes, "this host has no Slurm, and `run` does not use "+strings.Join(unused, ", "))
		}
	}
	if err := s.print(t); err != nil {
		return err
	}
	for _, doubt := range slices.Concat(w.Study.Doubts(w.Plan), w.Study.Timeless(w.Plan), w.Study.Tails(w.Plan), short, w.Site.Doubts()) {
		s.warn("%v", doubt)
	}
	return w.Check(ctx) // after the plan, which may be for another cluster
}

// atMost is what the runs of a plan can take and cost at most, in words.
func atMost(plan *study.Plan, site *study.Site) (string, error) {
	totals, err := pricing.Planned(plan, site)
	if err != nil {
		return "", &usageError{err: err}
	}
	var hours float64
	for _, p := range plan.Points {
		hours += p.NodeHours()
	}
	most := "at most " + number.Significant(hours) + " node-hours"
	if len(totals) > 0 {
		most += ", " + strings.Join(totals, "; ")
	}
	return most, nil
}

// modelOf is the model of a point as the study names it.
func modelOf(st *study.Study, p study.Point) string {
	if !p.Workload.UnderLoad() {
		return p.Workload.Train.Model
	}
	if name, err := filepath.Rel(st.Command.Folder, p.ModelFile()); err == nil && filepath.IsLocal(name) {
		return name
	}
	return p.Workload.Serve.Model
}

// heard is a value that the program of a point gets from a key of the study, nil
// where it gets none: a command trains with its own then.
func heard[T comparable](p study.Point, path string, value T) any {
	if !p.Reaches(path) {
		return nil
	}
	return table.NonZero(value)
}

// batch is a size of a point's batch, if its program is told of one.
func batch(p study.Point, samples int) any {
	if !p.ToldBatch() {
		return nil
	}
	return table.NonZero(samples)
}

func uncheckedFlag(unchecked *bool) cli.Flag {
	return &cli.BoolFlag{Name: "unchecked", Destination: unchecked, DisableDefaultText: true,
		Usage: "start runs even if this host lacks the data folder, program or script: the nodes may have it"}
}
