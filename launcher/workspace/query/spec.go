package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/store"
)

// resourceKeys are the parameters that determine which resources a run uses.
var resourceKeys = []string{"resources.cpus_per_worker", "resources.memory", "variant", "data.path", "workload.source", "workload.target"}

// checkSpec returns an error if the wish has a requirement that --spec cannot use.
func (o *Wish) checkSpec() error {
	if !(o.Loss > 0 && o.Loss < 1) {
		return workspace.Errorf("--loss %g: give the share that may be lost, more than 0 and less than 1, such as 0.05", o.Loss)
	}
	if o.Rate != 0 {
		return workspace.Errorf("--spec and --rate are different questions; ask one of them")
	}
	return nil
}

// Needed holds how much of each resource is enough for each series of a study.
type Needed struct {
	Answers  []sensitivity.Answer
	Markets  []sensitivity.Market // one per answer: the machines that are large enough; nil without prices
	Currency string
	Warnings []string

	obs  []scaling.Observation
	more *measuring
}

// Command returns the shell command that measures a combination of resources, and the reference
// again for comparison; "" if the study cannot express the combination.
func (n *Needed) Command(a sensitivity.Answer, at map[string]scaling.Value) string {
	return n.more.combination(a, at)
}

// Answered reports whether at least one series has an answer.
func (n *Needed) Answered() bool {
	return slices.ContainsFunc(n.Answers, func(a sensitivity.Answer) bool { return a.Spec != nil })
}

// Needs returns how much of each resource is enough, and which machines in the price list have that
// much.
func (r *Reader) Needs(ctx context.Context, o Wish) (*Needed, error) {
	if err := o.checkSpec(); err != nil {
		return nil, err
	}
	n, err := r.Enough(ctx, o)
	if err == nil {
		err = n.price(ctx, r, o)
	}
	if err == nil {
		n.more, err = r.measuring(ctx, o.Study, n.obs)
	}
	return n, err
}

// resources returns the good runs of a study, and as planned points those with a run that ran out
// of memory.
func (r *Reader) resources(ctx context.Context, o Question) (in input, err error) {
	name, db, err := r.openStudy(o.Study)
	if err != nil {
		return in, err
	}
	defer db.Close()
	filter := store.Filter{Study: name, Where: o.Where}
	if in.obs, in.warnings, err = db.Select(ctx, filter); err != nil {
		return in, workspace.StoreError(err)
	}
	looks, err := o.designed(ctx, db, name)
	if err != nil {
		return in, workspace.StoreError(err)
	}
	in.warnings, in.design = append(in.warnings, looks...), o.Design
	if in.unread, err = r.unread(ctx, db, o.Study, name, in.obs); err != nil {
		return in, err
	}
	if len(in.obs) == 0 {
		return in, &workspace.Error{Err: in.unread.noGoodRun(name), Hint: r.Rerun(ctx, db, o.Study, name) + "."}
	}
	if in.unread.warning != "" {
		in.warnings = append(in.warnings, in.unread.warning)
	}
	in.unfit, err = exhaustedPoints(ctx, db, filter)
	return in, err
}

// combination returns the shell command that measures a combination of resources. It measures the
// reference again too, because conditions may have changed since its earlier runs. The result is ""
// if a resource is not a key of the study.
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

// written returns a value in TOML syntax.
func written(key string, v scaling.Value) string {
	switch {
	case !v.Numeric():
		return study.Quote(v.Word)
	case slices.Contains(sensitivity.Unlimited, key):
		return study.Quote(study.Bytes(v.Number).String())
	}
	return v.String()
}

// inBytes returns the parameters with amounts of memory converted to numbers of bytes. The database
// stores them as text, such as "4 GiB".
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

// kept returns the measure that must not become worse with less of a resource: the named measure,
// else the default for the kind of workload.
func kept(obs []scaling.Observation, name string) (measure.Measure, error) {
	if name != "" {
		m, err := scaling.FindMeasure(obs, name)
		if err == nil && m.Better == measure.Neither {
			err = workspace.Errorf("-m %s: it is unknown whether higher or lower is better", name)
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
			for _, p := range m.FilterPlaces(obs[i].Places) {
				if _, ok := p.Values[candidate]; ok {
					return m, nil
				}
			}
		}
	}
	return measure.Measure{}, workspace.Errorf("the runs have none of %s; name the measure to keep with -m", strings.Join(candidates, ", "))
}

// factors returns the parameters to treat as resources: the named ones, else those of resourceKeys
// in which runs differ.
func factors(obs []scaling.Observation, exhausted []scaling.Planned, named []string, of measure.Measure) ([]string, error) {
	if len(named) > 0 {
		var keys []string
		for _, name := range named {
			key, err := scaling.KeyNamed(name, obs, exhausted, of)
			if err != nil {
				return nil, workspace.Errorf("--resource %v", err)
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
		return nil, &workspace.Error{Err: errors.New("all runs had the same resources"),
			Hint: "Sweep them, the most first: [sweep] design = \"one-factor\", cpus_per_worker = [8, 4, 2, 1], memory = [\"16G\", \"8G\"]. --resource KEY names others."}
	}
	return keys, nil
}

// Phased holds the resources that several studies need, one phase per study.
type Phased struct {
	Names    []string // names of the studies
	Phases   []report.Phase
	Currency string
	Warnings []string
	Answered bool // every study has an answer
}

// Phases returns which resources are enough for several studies, which are usually the phases of
// one project: preprocessing, training and inference.
func (r *Reader) Phases(ctx context.Context, o Wish, studies []string) (*Phased, error) {
	if err := o.checkSpec(); err != nil {
		return nil, err
	}
	names := make([]string, len(studies))
	for i, arg := range studies {
		name, err := workspace.StudyName(arg)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, workspace.Errorf("study %q is there twice", name)
		}
		names[i] = name
	}
	p := &Phased{Names: names, Currency: o.Currency, Answered: true} // all prices must be in the currency of the first study
	for i, name := range names {
		one := o
		one.Study, one.Currency = studies[i], p.Currency
		n, err := r.Enough(ctx, one)
		if err == nil {
			err = n.price(ctx, r, one)
		}
		if err != nil {
			return nil, about(name, err)
		}
		p.Currency = cmp.Or(n.Currency, p.Currency)
		for i, a := range n.Answers {
			phase := report.Phase{Study: name, Kind: kindOf(a, n.obs), Answer: a}
			if n.Markets != nil {
				phase.Market = &n.Markets[i]
			}
			p.Phases = append(p.Phases, phase)
		}
		for _, w := range n.Warnings {
			p.Warnings = append(p.Warnings, name+": "+w)
		}
		p.Answered = p.Answered && n.Answered()
	}
	return p, nil
}

// price sets, for each answer, which machines in the site's price list have enough resources,
// and what they cost.
func (n *Needed) price(ctx context.Context, r *Reader, o Wish) error {
	if err := checkMarket(o.Market); err != nil {
		return err
	}
	tariff, err := r.Tariff(ctx, o.Study, o.Site, o.Currency, o.Market)
	if errors.Is(err, workspace.ErrNoPrices) {
		return nil
	}
	if err != nil {
		return err
	}
	offered, warnings := tariff.Machines()
	n.Warnings = append(n.Warnings, warnings...)
	if len(offered) == 0 {
		return nil
	}
	for i := range n.Answers {
		n.Markets = append(n.Markets, n.Answers[i].Machines(offered))
	}
	n.Currency = tariff.Currency
	return nil
}

// kindOf returns the name of a series' kind of workload.
func kindOf(a sensitivity.Answer, obs []scaling.Observation) string {
	kind, _ := a.Parameters["workload.kind"].(string)
	return measure.KindOf(cmp.Or(kind, obs[0].Kind)).Name
}

// about adds the name of the study to an error that does not contain it.
func about(name string, err error) error {
	if refused, ok := errors.AsType[*workspace.Error](err); ok && !strings.Contains(refused.Error(), name) {
		return &workspace.Error{Err: fmt.Errorf("%s: %w", name, refused.Err), Hint: refused.Hint}
	}
	return err
}

// Enough returns how much of each resource is enough for each series of a study.
func (r *Reader) Enough(ctx context.Context, o Wish) (*Needed, error) {
	o.Edited = true // also use combinations that the user measured with KEY=VALUE arguments
	in, err := r.resources(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	obs, exhausted, warnings := in.obs, in.unfit, in.warnings
	for i := range obs {
		obs[i].Parameters = inBytes(obs[i].Parameters)
	}
	for i := range exhausted {
		exhausted[i].Parameters = inBytes(exhausted[i].Parameters)
	}
	of, err := kept(obs, o.Measure)
	if err != nil {
		return nil, unanswered(err)
	}
	keys, err := factors(obs, exhausted, o.Resources, of)
	if err != nil {
		return nil, err
	}
	confidence := 0.0
	if in.design != nil {
		confidence = in.design.Confidence
	}
	list, err := sensitivity.Analyse(obs, sensitivity.Options{Measure: of, Factors: keys, Epsilon: o.Loss, Mix: o.Mix, Exhausted: exhausted, Warnings: warnings, Confidence: confidence, FewRuns: in.design != nil})
	if err != nil {
		return nil, err
	}
	if len(o.Series) > 0 {
		list = slices.DeleteFunc(list, func(a sensitivity.Answer) bool { return !slices.Contains(o.Series, a.Series) })
		if len(list) == 0 {
			return nil, workspace.Errorf("--series %q: unknown series", o.Series[0])
		}
	}
	for _, a := range list {
		for _, w := range report.SpecWarnings(a) {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return &Needed{Answers: list, Warnings: warnings, obs: obs}, nil
}
