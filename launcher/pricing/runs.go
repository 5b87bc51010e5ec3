package pricing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Clock is which time of a run is paid for.
type Clock string

// The clocks.
const (
	Train Clock = "train" // from the first step on; of another kind of workload, its own (measure.Kind.Clock)
	Job   Clock = "job"   // of the scheduler
	// Million is the time in which a service has a million answers, at a rate of
	// answers.
	Million Clock = "million"
)

// Configurations are the runs by series and worker count, each with its price on
// a clock; mix lets one series hold runs that ran on different things. rate is the
// measure of answers a second of the clock Million, and not used otherwise. The
// warnings are on what the series are made of.
func (t *Tariff) Configurations(observations []scaling.Observation, clock Clock, rate measure.Measure, mix bool) ([]cost.Configuration, []string, error) {
	o := scaling.Options{Mix: mix}
	if clock == Million {
		o.Measure = rate
	}
	curves, err := scaling.Analyse(observations, o)
	var noBase *scaling.NoBaseError
	if err != nil && !errors.As(err, &noBase) { // nothing is divided by workers here
		return nil, nil, err
	}
	byRun := map[string]*scaling.Observation{}
	for i := range observations {
		byRun[observations[i].Run] = &observations[i]
	}
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
				if clock == Million { // a run has a rate for each load, and its curve is of one
					run.Values, run.Seconds = r.Values, 0
					if answers := r.Values[rate.Name]; answers > 0 { // one that found none may have other values of the load
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

// PerMillion gives runs of a service what a million answers, and samples, cost at the
// largest rate within the limit of each batch, as measures that they report. The warnings say why
// runs have none.
func (t *Tariff) PerMillion(observations []scaling.Observation) ([]scaling.Observation, []string) {
	priced := slices.Clone(observations)
	without := map[string]int{}
	for i := range priced {
		o := &priced[i]
		if !slices.ContainsFunc(o.Places, func(p measure.Place) bool { return p.Values[measure.RateWithinLimit] > 0 }) {
			continue
		}
		run := t.run(o, Million)
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

// labels are what a run is priced by: its parameters, and what it ran on.
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

// run is one run with its rate: by its labels, and what the scheduler says of it.
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
	for _, e := range v.Evaluations { // all that some logs say of epochs
		run.Epochs = max(run.Epochs, e.Epoch)
	}
	if n, ok := labels["epochs"].(int64); ok && run.Epochs == 0 && n > 0 && n < 1<<31 { // an import says it
		run.Epochs = int(n)
	}
	seconds := v.Known(cmp.Or(measure.KindOf(v.Kind).Clock, measure.TrainSeconds))
	if clock == Job {
		seconds = v.JobSeconds
	}
	if v.Why[measure.TrainSeconds] == measure.WhyResumed { // other attempts' jobs were paid for as well
		seconds = nil
	}
	if seconds != nil {
		run.Seconds = *seconds
	}
	run.Joules, run.WhyNoJoules = joules(v, seconds, clock)
	if clock == Job && run.Joules != nil {
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

// joules is the energy of a run on a clock: its mean power is that of the training
// clock, and says nothing of the rest of a job, of which Slurm's accounting may have it.
func joules(v *scaling.Observation, seconds *float64, clock Clock) (*float64, string) {
	watts, read := v.Values[measure.Watts]
	switch {
	case clock == Job:
		if j := v.Known(measure.SlurmJoules); j != nil && seconds != nil {
			return j, ""
		}
		return nil, "power was read during training, not during the whole job, and Slurm's accounting has no energy of it"
	case !read && v.Why[measure.Watts] != "":
		return nil, v.Why[measure.Watts]
	case !read:
		return nil, "its power was not read"
	case seconds == nil:
		return nil, "recorded no time"
	}
	j := watts * *seconds
	return &j, ""
}

// Like is what workers of a curve's kind cost: priced like its runs, by their
// parameters, what they ran on and their partition, with another number of
// workers.
func (t *Tariff) Like(c scaling.Curve, observations []scaling.Observation) func(workers, nodes int, seconds float64) (float64, error) {
	var like *scaling.Observation
	for i := range observations {
		for _, p := range c.Points {
			if slices.ContainsFunc(p.Runs, func(r scaling.RunValues) bool { return r.ID == observations[i].Run }) {
				like = &observations[i]
			}
		}
	}
	return func(workers, nodes int, seconds float64) (float64, error) {
		if like == nil {
			return 0, errors.New("no run has anything to price")
		}
		labels := labels(like)
		// What an import counted for its own run holds for no other number of workers.
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

// useOf is what a run with these labels holds: its parameters by TOML path,
// and whatever an import has said of it. GPUs and CPUs are those that the
// workers asked for; where jobs get whole nodes, the node is what is priced.
// An import may say gpus, cpus and gpu_type itself.
func useOf(workers, nodes int, labels map[string]any) cost.Use {
	u := cost.Use{Labels: labels}
	if nodes > 0 {
		u.Nodes = &nodes
	}
	count := func(label string) *int {
		if n, ok := labels[label].(int64); ok && n >= 0 && n <= 1<<40 {
			n := int(n)
			return &n
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
			all := int64(each) * int64(workers)
			u.MemoryBytes = &all
		}
	}
	u.GPUType, _ = labels["gpu_type"].(string)
	return u
}

// partition adds to labels what the site file says of a run's partition.
func partition(labels map[string]any, site *study.Site, name string) {
	labels["partition"] = name
	i := slices.IndexFunc(site.Partitions, func(p study.Partition) bool { return p.Name == name })
	if _, said := labels["gpu_type"]; !said && i >= 0 && site.Partitions[i].GPUType != "" {
		labels["gpu_type"] = site.Partitions[i].GPUType
	}
}
