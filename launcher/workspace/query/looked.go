package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// lookedAt returns the confidence level with which the runs must be tested. A study that was
// analysed several times while it grew needs a higher one; a warning names such studies. It returns
// 0 if there is none: the usual level applies.
func lookedAt(ctx context.Context, db *store.Store, runs []scaling.Observation) (confidence float64, warnings []string, err error) {
	seen := map[string]bool{}
	for _, o := range runs {
		if seen[o.Study] {
			continue
		}
		seen[o.Study] = true
		looks, err := db.Looks(ctx, o.Study)
		if err != nil {
			return 0, nil, err
		}
		if len(looks) == 0 {
			continue
		}
		d, err := sequential.NewDesign(looks[len(looks)-1].Most)
		if err != nil {
			return 0, nil, err
		}
		own := d.TestConfidence()
		confidence = max(confidence, own)
		warnings = append(warnings, fmt.Sprintf("study %s had interim looks, so a difference is tested at a level of %.2g %%, and all looks together at 5 %%", o.Study, 100*(1-own)))
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
