package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// resourceKeys are the parameters that say what a run got, those that can be too
// little.
var resourceKeys = []string{"resources.cpus_per_worker", "resources.memory", "variant", "data.path", "workload.source", "workload.target"}

// checkSpec refuses what cannot be asked with --spec.
func (o *adviseOptions) checkSpec() error {
	if !(o.loss > 0 && o.loss < 1) {
		return usagef("--loss %g: give the share that may be lost, more than 0 and less than 1, such as 0.05", o.loss)
	}
	if o.rate != 0 {
		return usagef("--spec and --rate are different questions; ask one of them")
	}
	return nil
}

// adviseSpec says how much of each resource is enough.
func adviseSpec(ctx context.Context, s *session, o adviseOptions) error {
	if err := o.checkSpec(); err != nil {
		return err
	}
	list, obs, warnings, err := s.needs(ctx, o.curveOptions, o.loss, o.resources.Value())
	if err != nil {
		return err
	}
	markets, currency, unpriced, err := o.machines(ctx, s, list)
	if err != nil {
		return err
	}
	warnings = append(warnings, unpriced...)
	more, err := s.measuring(ctx, o.study, obs)
	if err != nil {
		return err
	}
	if s.format == table.FormatJSON || s.format == table.FormatCSV {
		err = s.print(tables.SpecData(list, markets, currency, more.combination, warnings))
	} else {
		err = s.printSpec(list, markets, currency, more)
	}
	if err != nil {
		return err
	}
	s.doubtAll(o.study, warnings...)
	if !slices.ContainsFunc(list, func(a sensitivity.Answer) bool { return a.Spec != nil }) {
		return errUndecided
	}
	return nil
}

// printSpec prints the answers for people, each with the commands of the study that
// would tell more.
func (s *session) printSpec(list []sensitivity.Answer, markets []sensitivity.Market, currency string, more *measuring) (err error) {
	for i, a := range list {
		how := func(at map[string]scaling.Value) string { return more.combination(a, at) }
		if i > 0 {
			fmt.Fprintln(s.stdout)
		}
		sentence := tables.SpecSentence(a)
		if markets != nil {
			sentence += " " + tables.MachinesSentence(a, markets[i], currency)
		}
		if len(a.Factors) == 0 { // nothing to put into a table
			_, err = fmt.Fprintln(s.stdout, s.sentences(sentence))
		} else {
			err = s.printSaying(sentence, tables.Spec(a, how))
		}
		if err != nil {
			return err
		}
		if markets != nil {
			fmt.Fprintln(s.stdout)
			if err := s.print(tables.Machines(a, markets[i], currency, how)); err != nil {
				return err
			}
		}
	}
	return nil
}

// needs are the answers on the resources of a study's series, and the runs that they
// are of.
func (s *session) needs(ctx context.Context, o curveOptions, loss float64, resources []string) (list []sensitivity.Answer, obs []scaling.Observation, warnings []string, err error) {
	o.edited = true // a combination that was tried by hand counts, too
	obs, exhausted, warnings, err := s.resources(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range obs {
		obs[i].Parameters = inBytes(obs[i].Parameters)
	}
	for i := range exhausted {
		exhausted[i].Parameters = inBytes(exhausted[i].Parameters)
	}
	of, err := kept(obs, o.measure)
	if err != nil {
		return nil, nil, nil, unanswered(err)
	}
	keys, err := factors(obs, exhausted, resources, of)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err = sensitivity.Of(obs, sensitivity.Options{Measure: of, Factors: keys, Epsilon: loss, Mix: o.mix, Exhausted: exhausted})
	if err != nil {
		return nil, nil, nil, err
	}
	if names := o.series.Value(); len(names) > 0 {
		list = slices.DeleteFunc(list, func(a sensitivity.Answer) bool { return !slices.Contains(names, a.Series) })
		if len(list) == 0 {
			return nil, nil, nil, usagef("--series %q: unknown series", names[0])
		}
	}
	for _, a := range list {
		for _, w := range tables.SpecWarnings(a) {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return list, obs, warnings, nil
}

// combination makes the command that measures a combination beside the reference, in
// blocks of their own: what was measured before would be of another time. It is ""
// where a resource is no key of a study.
func (m *measuring) combination(a sensitivity.Answer, at map[string]scaling.Value) string {
	if m == nil {
		return ""
	}
	keys := []string{"sweep.design=together"}
	for _, key := range a.Keys() {
		if !slices.Contains(resourceKeys, key) {
			return ""
		}
		values := []string{written(key, a.Reference.At[key])}
		if v := at[key]; v != a.Reference.At[key] {
			values = append(values, written(key, v))
		}
		keys = append(keys, "sweep."+strings.TrimPrefix(key, "resources.")+"=["+strings.Join(values, ", ")+"]")
	}
	return m.command(6, keys...)
}

// written is a value as TOML.
func written(key string, v scaling.Value) string {
	switch {
	case !v.Numeric():
		return study.Quote(v.Word)
	case slices.Contains(sensitivity.Unlimited, key):
		return study.Quote(study.Bytes(v.Number).String())
	}
	return v.String()
}

// machines holds the machines of the site's prices against each answer; nil where
// there are none.
func (o *adviseOptions) machines(ctx context.Context, s *session, list []sensitivity.Answer) (markets []sensitivity.Market, currency string, warnings []string, err error) {
	if !slices.Contains(cost.Markets, o.market) {
		return nil, "", nil, usagef("--market %q is not known; valid: %s", o.market, strings.Join(cost.Markets, ", "))
	}
	tariff, err := s.tariffOf(ctx, o.study, o.site, o.currency, o.market)
	if errors.Is(err, pricing.ErrNone) {
		return nil, "", nil, nil
	}
	if err != nil {
		return nil, "", nil, err
	}
	offered, warnings := tariff.Machines()
	if len(offered) == 0 {
		return nil, "", warnings, nil
	}
	for i := range list {
		markets = append(markets, list[i].Machines(offered))
	}
	return markets, tariff.Currency, warnings, nil
}

// inBytes has amounts of memory as numbers. They are stored as a study writes them.
func inBytes(parameters map[string]any) map[string]any {
	parameters = maps.Clone(parameters)
	for _, key := range sensitivity.Unlimited {
		var bytes study.Bytes
		if text, ok := parameters[key].(string); ok && bytes.UnmarshalText([]byte(text)) == nil {
			parameters[key] = int64(bytes)
		}
	}
	return parameters
}

// resources are the good runs of a study, and the points of which a run ended because
// memory ran out.
func (s *session) resources(ctx context.Context, o curveOptions) (obs []scaling.Observation, exhausted []scaling.Planned, warnings []string, err error) {
	name, err := workspace.StudyName(o.study)
	if err != nil {
		return nil, nil, nil, err
	}
	db, err := s.openStore()
	if err != nil {
		return nil, nil, nil, err
	}
	defer db.Close()
	filter := store.Filter{Study: name, Where: o.where}
	if obs, warnings, err = db.Select(ctx, filter); err != nil {
		return nil, nil, nil, workspace.StoreError(err)
	}
	if len(obs) == 0 {
		return nil, nil, nil, &usageError{err: fmt.Errorf("study %q has no good run yet", name), hint: s.workspace().Rerun(ctx, db, o.study, name) + "."}
	}
	exhausted, err = exhaustedPoints(ctx, db, filter)
	return obs, exhausted, warnings, err
}

// kept is the measure that less of a resource must not cost: the one that is named,
// else that of the kind of workload.
func kept(obs []scaling.Observation, name string) (measure.Measure, error) {
	if name != "" {
		m, err := inquiry.Find(obs, name)
		if err == nil && m.Better == measure.Neither {
			err = usagef("-m %s: nobody says which way it is better", name)
		}
		return m, err
	}
	candidates := []string{measure.Throughput, measure.RateWithinLimit, measure.RequestsPerSecond, measure.RunSeconds}
	for _, candidate := range candidates {
		m, err := measure.Find(candidate)
		if err != nil {
			return m, err
		}
		for i := range obs {
			if _, ok := obs[i].Value(candidate); ok {
				return m, nil
			}
			for _, p := range m.Within(obs[i].Places) {
				if _, ok := p.Values[candidate]; ok {
					return m, nil
				}
			}
		}
	}
	return measure.Measure{}, usagef("the runs have none of %s; name what is to be kept with -m", strings.Join(candidates, ", "))
}

// factors are the parameters that count as resources: those that are named, else
// the usual ones in which runs differ.
func factors(obs []scaling.Observation, exhausted []scaling.Planned, named []string, of measure.Measure) ([]string, error) {
	if len(named) > 0 {
		var keys []string
		for _, name := range named {
			key, err := inquiry.Key(name, obs, exhausted, of)
			if err != nil {
				return nil, usagef("--resource %v", err)
			}
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		return keys, nil
	}
	var keys []string
	for _, key := range resourceKeys {
		values := map[scaling.Value]bool{}
		for i := range obs {
			values[scaling.ValueOf(obs[i].Parameters[key])] = true
		}
		for i := range exhausted {
			values[scaling.ValueOf(exhausted[i].Parameters[key])] = true
		}
		if len(values) > 1 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, &usageError{err: errors.New("all runs had the same resources"),
			hint: "Sweep them, the most first: [sweep] design = \"one-factor\", cpus_per_worker = [8, 4, 2, 1], memory = [\"16G\", \"8G\"]. --resource KEY names others."}
	}
	return keys, nil
}
