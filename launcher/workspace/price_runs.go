package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Clock is the part of a run's time that is paid for.
type Clock string

// The clocks.
const (
	TrainClock Clock = "train" // since the first step; other kinds of workload have their own clock (measure.Kind.Clock)
	JobClock   Clock = "job"   // the scheduler's time of the job
	RunClock   Clock = "run"   // the time of the program, from its start to its end
	// MillionClock is the time in which a service has a million answers, at a rate of
	// answers.
	MillionClock Clock = "million"
)

// Configurations groups runs by series and worker count, each with its price on a clock. mix allows one series
// to hold runs on different hardware. rate is the measure of answers per second for the clock Million. The
// warnings describe the series.
func (t *Tariff) Configurations(observations []scaling.Observation, clock Clock, rate measure.Measure, mix bool) ([]cost.Configuration, []string, error) {
	o := scaling.Options{Mix: mix}
	if clock == MillionClock {
		o.Measure = rate
	}
	curves, err := scaling.Unbased(observations, o)
	if err != nil {
		return nil, nil, err
	}
	byRun := scaling.ByRun(observations)
	var list []cost.Configuration
	var warnings []string
	for _, c := range curves {
		for _, w := range c.FingerprintWarnings {
			warnings = append(warnings, c.Series+": "+w)
		}
		if c.ByNode {
			warnings = append(warnings, c.Series+": runs differ by their nodes; those that share a node count as one in intervals")
		}
		for _, p := range c.Points {
			parameters := map[string]any{}
			maps.Copy(parameters, c.Parameters)
			parameters["framework"] = c.Framework
			config := cost.Configuration{Series: c.Series, Workers: p.Workers, Parameters: parameters, ByNode: c.ByNode, Measured: p.Measures}
			for _, r := range p.Runs {
				run := t.run(byRun[r.ID], clock)
				if clock == MillionClock { // a run has a rate for each load, and a curve covers one load
					run.Values, run.Seconds = r.Values, 0
					if answers := r.Values[rate.Name]; answers > 0 { // a run without a rate may have other values for the load
						run.Seconds = 1e6 / answers
					}
				}
				config.Runs = append(config.Runs, run)
			}
			list = append(list, config)
		}
	}
	return list, warnings, nil
}

// PerMillion adds to runs of a service what a million answers, and a million samples, cost at the largest rate
// within the limit of each batch size, as reported measures. The warnings say why runs have no cost.
func (t *Tariff) PerMillion(observations []scaling.Observation) ([]scaling.Observation, []string) {
	priced := slices.Clone(observations)
	without := map[string]int{}
	for i := range priced {
		o := &priced[i]
		if !slices.ContainsFunc(o.Places, func(p measure.Place) bool { return p.Values[measure.RateWithinLimit] > 0 }) {
			continue
		}
		run := t.run(o, MillionClock)
		if run.Rate == nil {
			without[run.WhyNoRate]++
			continue
		}
		o.Reported = append(slices.Clip(o.Reported), measure.PerMillion(t.Currency)...)
		o.Places = slices.Clone(o.Places)
		for j, p := range o.Places {
			if rate := p.Values[measure.RateWithinLimit]; rate > 0 {
				values := maps.Clone(p.Values)
				answers := run.Rate.PerHour() / 3600 / rate * 1e6
				values[measure.CostPerMillion] = answers
				if batch, ok := p.At[measure.Batch].(float64); ok && batch > 0 {
					values[measure.CostPerMillionSamples] = answers / batch
				}
				o.Places[j].Values = values
			}
		}
	}
	var warnings []string
	for _, why := range slices.Sorted(maps.Keys(without)) {
		warnings = append(warnings, fmt.Sprintf("%s without a price: %s", number.Count(without[why], "run"), why))
	}
	return priced, warnings
}

// labels returns what a run is priced by: its parameters and its fingerprint.
func labels(v *scaling.Observation) map[string]any {
	all := map[string]any{}
	maps.Copy(all, v.Parameters)
	for field, value := range v.Fingerprint {
		if _, taken := all[field]; !taken && value != "" {
			all[field] = value
		}
	}
	return all
}

// run returns one run with its price, found by its labels and the scheduler's facts.
func (t *Tariff) run(v *scaling.Observation, clock Clock) cost.PricedRun {
	labels := labels(v)
	for key, value := range map[string]string{"cluster": v.Cluster, "study": v.Study} {
		if value != "" {
			labels[key] = value
		}
	}
	if v.Partition != "" {
		partition(labels, t.site, v.Partition)
	}
	run := cost.PricedRun{ID: v.Run, Targets: map[measure.Target]float64{}, Values: v.Values, Hosts: v.Hosts, Made: v}
	for _, target := range v.Targets() {
		run.Targets[target] = v.Values[target.Time().Name]
	}
	if v.Epochs != nil {
		run.Epochs = *v.Epochs
	}
	for _, e := range v.Evaluations { // some logs record epochs only in evaluations
		run.Epochs = max(run.Epochs, e.Epoch)
	}
	if n, ok := labels["epochs"].(int64); ok && run.Epochs == 0 && n > 0 && n < 1<<31 { // set by an import
		run.Epochs = int(n)
	}
	seconds := v.Known(cmp.Or(measure.KindOf(v.Kind).Clock, measure.TrainSeconds))
	switch clock {
	case JobClock:
		seconds = v.JobSeconds
	case RunClock:
		seconds = v.Known(measure.RunSeconds)
	}
	if v.Why[measure.TrainSeconds] == measure.WhyResumed { // other attempts' jobs were paid for as well
		seconds = nil
	}
	if seconds != nil {
		run.Seconds = *seconds
	}
	run.Joules, run.WhyNoJoules = joules(v, seconds, clock)
	if clock == JobClock && run.Joules != nil {
		run.JoulesOf = "Energy by Slurm's accounting: of whole nodes, from the start of each run's programs to their end; what the job did before and after is not in it."
	}
	rate, err := t.prices.Rate(useOf(v.Workers, v.Nodes, labels))
	if err != nil {
		run.WhyNoRate = err.Error()
		return run
	}
	run.Rate = &rate
	return run
}

// Paid returns the price of an attempt at a point that took some seconds. The scheduler's time of the job, if known,
// is charged instead, as on the clock JobClock.
func (t *Tariff) Paid(p *study.Point, job *metrics.Job, seconds float64) (float64, error) {
	o := scaling.Observation{Study: p.Study, Kind: p.Workload.Kind, Workers: p.Workers, Nodes: p.Nodes + p.AuxNodes, Parameters: p.Parameters(), JobSeconds: &seconds}
	if job != nil {
		o.Cluster, o.Partition = job.Cluster, job.Partition
		if job.StartUnix > 0 && job.EndUnix > job.StartUnix {
			seconds = job.EndUnix - job.StartUnix
		}
	}
	run := t.run(&o, JobClock)
	if run.Rate == nil {
		return 0, errors.New(run.WhyNoRate)
	}
	return run.Rate.Cost(run.Seconds), nil
}

// Energy returns the joules of a run: of its job by Slurm's accounting, or else of its training.
func Energy(v *scaling.Observation) (float64, error) {
	if j, _ := joules(v, v.JobSeconds, JobClock); j != nil {
		return *j, nil
	}
	j, why := joules(v, v.Known(cmp.Or(measure.KindOf(v.Kind).Clock, measure.TrainSeconds)), TrainClock)
	if j == nil {
		return 0, errors.New(why)
	}
	return *j, nil
}

// joules returns the energy of a run on a clock. Its mean power covers the training clock only. For the whole
// job, Slurm's accounting may have the energy.
func joules(v *scaling.Observation, seconds *float64, clock Clock) (*float64, string) {
	watts, read := v.Values[measure.Watts]
	switch {
	case clock == JobClock:
		if j := v.Known(measure.SlurmJoules); j != nil && seconds != nil {
			return j, ""
		}
		return nil, "power was read during training, not during the whole job, and Slurm's accounting has no energy of it"
	case clock == RunClock:
		return nil, "power was read during training, not during the whole run"
	case !read && v.Why[measure.Watts] != "":
		return nil, v.Why[measure.Watts]
	case !read:
		return nil, "its power was not read"
	case seconds == nil:
		return nil, "recorded no time"
	}
	return new(watts * *seconds), ""
}

// Like returns a function that prices other numbers of workers like the runs of a curve, with their parameters,
// fingerprint and partition.
func (t *Tariff) Like(c scaling.Curve, observations []scaling.Observation) func(workers, nodes int, seconds float64) (float64, error) {
	runs := c.Observed(observations)
	return func(workers, nodes int, seconds float64) (float64, error) {
		if len(runs) == 0 {
			return 0, errors.New("no run has anything to price")
		}
		like := runs[len(runs)-1]
		labels := labels(like)
		// An import's counts apply to its run only, not to other numbers of workers.
		delete(labels, "gpus")
		delete(labels, "cpus")
		labels["workers"], labels["nodes"] = int64(workers), int64(nodes)
		if like.Partition != "" {
			partition(labels, t.site, like.Partition)
		}
		rate, err := t.prices.Rate(useOf(workers, nodes, labels))
		if err != nil {
			return 0, err
		}
		return rate.Cost(seconds), nil
	}
}

// useOf returns the resources that a run with these labels occupies: its parameters by TOML path,
// and labels from an import. GPUs and CPUs are those that the workers requested; if jobs get whole
// nodes, the node is priced. An import may set gpus, cpus and gpu_type.
func useOf(workers, nodes int, labels map[string]any) cost.Use {
	u := cost.Use{Labels: labels}
	if nodes > 0 {
		u.Nodes = &nodes
	}
	count := func(label string) *int {
		if n, ok := labels[label].(int64); ok && n >= 0 && n <= 1<<40 {
			return new(int(n))
		}
		return nil
	}
	u.GPUs, u.CPUs = count("gpus"), count("cpus")
	if u.GPUs == nil {
		switch labels["resources.device"] {
		case "gpu":
			u.GPUs = &workers
		case "cpu":
			u.GPUs = new(int)
		}
	}
	if n := count("resources.cpus_per_worker"); u.CPUs == nil && n != nil {
		*n *= workers
		u.CPUs = n
	}
	if text, ok := labels["resources.memory"].(string); ok {
		var each study.Bytes
		if each.UnmarshalText([]byte(text)) == nil && each > 0 {
			u.MemoryBytes = new(int64(each) * int64(workers))
		}
	}
	u.GPUType, _ = labels["gpu_type"].(string)
	return u
}

// partition adds the site file's facts about a run's partition to labels.
func partition(labels map[string]any, site *study.Site, name string) {
	labels["partition"] = name
	i := slices.IndexFunc(site.Partitions, func(p study.Partition) bool { return p.Name == name })
	if _, said := labels["gpu_type"]; !said && i >= 0 && site.Partitions[i].GPUType != "" {
		labels["gpu_type"] = site.Partitions[i].GPUType
	}
}
