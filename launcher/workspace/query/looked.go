package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// A looked study was analysed several times while it grew: it had interim looks.
type looked struct {
	study  string
	looks  int
	design sequential.Design
}

// lookedAt returns the studies of the runs that had interim looks.
func lookedAt(ctx context.Context, db *store.Store, runs []scaling.Observation) (list []looked, err error) {
	seen := map[string]bool{}
	for _, o := range runs {
		if seen[o.Study] {
			continue
		}
		seen[o.Study] = true
		one, err := lookedStudy(ctx, db, o.Study)
		if err != nil {
			return nil, err
		}
		if one != nil {
			list = append(list, *one)
		}
	}
	return list, nil
}

// lookedStudy returns the interim looks of a study; nil if it had none.
func lookedStudy(ctx context.Context, db *store.Store, name string) (*looked, error) {
	looks, err := db.Looks(ctx, name)
	if err != nil || len(looks) == 0 {
		return nil, err
	}
	l := &looked{study: name}
	if l.design, err = sequential.NewDesign(looks[len(looks)-1].Most); err != nil {
		return nil, err
	}
	for _, one := range looks {
		l.looks = max(l.looks, one.Number)
	}
	return l, nil
}

// intervals returns a warning: which level the intervals of the study have.
func (l *looked) intervals() string {
	return fmt.Sprintf("study %s had %s, so intervals have %s each, and all looks together %s",
		l.study, number.Count(l.looks, "interim look"), number.ExactPercent(l.design.Confidence), number.ExactPercent(sequential.Level))
}

// testLevel returns the confidence level with which runs of these studies must be tested, and a
// warning for each study. It returns 0 without interim looks: the usual level applies.
func testLevel(list []looked) (confidence float64, warnings []string) {
	for _, l := range list {
		own := l.design.TestConfidence()
		confidence = max(confidence, own)
		warnings = append(warnings, fmt.Sprintf("study %s had interim looks, so a difference is tested at a level of %.2g %%, and all looks together at 5 %%", l.study, 100*(1-own)))
	}
	return confidence, warnings
}

// intervalLevel returns the confidence level that intervals over the runs must have, and a warning
// for each study with interim looks. It returns 0 without interim looks: the usual level applies.
func (r *Reader) intervalLevel(ctx context.Context, runs []scaling.Observation) (confidence float64, warnings []string, err error) {
	db, err := r.Open()
	if err != nil {
		return 0, nil, err
	}
	defer db.Close()
	list, err := lookedAt(ctx, db, runs)
	if err != nil {
		return 0, nil, workspace.StoreError(err)
	}
	for _, l := range list {
		confidence = max(confidence, l.design.Confidence)
		warnings = append(warnings, l.intervals())
	}
	return confidence, warnings, nil
}

// lookCounts finds out how often runs were analysed while their studies were still growing
// ("looks").
type lookCounts struct {
	db   *store.Store
	most map[string]int // by study: the maximum number of looks that its design allows
	used map[string]int // by selected study that was analysed while it grew: the number of looks that its design plans
}

func newLookCounts(ctx context.Context, db *store.Store) (*lookCounts, error) {
	most, err := db.Looked(ctx)
	return &lookCounts{db: db, most: most, used: map[string]int{}}, err
}

// at returns for how many looks a test of the runs must allow: the largest number among their
// studies.
func (l *lookCounts) at(ctx context.Context, runs []compare.Sample) (looks int, err error) {
	if len(l.most) == 0 {
		return 0, nil
	}
	ids := make([]int64, len(runs))
	for i, r := range runs {
		ids[i] = r.Run
	}
	marks, err := l.db.Marks(ctx, ids)
	if err != nil {
		return 0, err
	}
	for _, m := range marks {
		study, _, _ := strings.Cut(m.Run, "/")
		most, looked := l.most[study]
		if !looked {
			continue
		}
		d, err := sequential.NewDesign(most)
		if err != nil {
			return 0, err
		}
		l.used[study] = len(d.Tests())
		looks = max(looks, l.used[study])
	}
	return looks, nil
}

// warnings returns one warning for each study whose looks raised the limit for alarms.
func (l *lookCounts) warnings() (list []string) {
	for _, study := range slices.Sorted(maps.Keys(l.used)) {
		if looks := l.used[study]; looks > 1 {
			list = append(list, fmt.Sprintf("study %s had interim looks: an alarm needs %s standard errors at each of %s, not %s",
				study, number.Significant(compare.Limit(looks)), number.Count(looks, "look"), number.Exact(compare.Limit(1))))
		}
	}
	return list
}
