package extract

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// These patterns match names of columns that are computed from a figure and are not the figure.
var (
	spreadName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:std|stdev|stddev|sd|sem|std_?err|stderr|variance|var|cv|iqr|deviation|uncertainty|ci ?\d*|confidence)(?:[^a-z]|$)`)
	ratioName  = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:speed[-_ ]?up|relative|rel|normali[sz]ed|efficiency|ratio|scaling[-_ ]factor|improvement|gain|delta|diff|difference|change|vs|versus)(?:[^a-z]|$)|Δ`)
	otherRun   = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:prev|previous)(?:[^a-z]|$)`)
	ofOneUser  = regexp.MustCompile(`(?i)(?:per|/)[ _-]?(?:user|client|stream)s?(?:[^a-z]|$)`)
	priceName  = regexp.MustCompile(`(?i)[$€£]|(?:^|[^a-z])(?:cost|price|usd|eur)(?:[^a-z]|$)`)
	// overAllSteps matches names of means over all steps so far.
	overAllSteps = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:so far|running|cumulative|moving|ema|smoothed)(?:[^a-z]|$)`)
	settingName  = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:(?:global|local|micro)?[-_ ]?batch[-_ ]?size|(?:seq|sequence|context)[-_ ]?len(?:gth)?|(?:num[-_ ]?)?param(?:eter)?s|(?:global|local)[-_ ]?batch)(?:[^a-z]|$)`)
	idealName    = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:ideal|linear|theoretical|expected|projected|extrapolated|predicted|target|goal|nominal)(?:[^a-z]|$)`)
	logName      = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:log(?:2|10|e)?|ln|lg|ld) ?\(|(?:^|[^a-z])log(?:2|10)(?:[^a-z0-9]|$)|^(?:log|ln)[ _]`)
	// perSeveral matches a number of units after a division: "s/1000 iters", "sec_per_100_it".
	perSeveral = regexp.MustCompile(`(?i)(?:/|(?:^|[^a-z])per)[ _]*(\d[\d,_]*)[ _]?([a-z]+)`)
	// forSeveral matches a number of units of a time: "time for 100 steps", "(1000 img/s)".
	forSeveral = regexp.MustCompile(`(?i)(?:^|[(\[]|(?:^|[^a-z])(?:for|every))[ _]*(\d[\d,_]*)[ _]?([a-z]+)`)
)

// manyOf returns the part of a text that says that a number is for several units, as in
// "s/1000 iters"; "" for other texts.
func manyOf(text string, several ...*regexp.Regexp) string {
	for _, expression := range several {
		for _, m := range expression.FindAllStringSubmatch(text, -1) {
			kind := number.Kind(m[2])
			counted := slices.Contains([]string{"samples", "tokens", "requests", "steps", "epochs"}, kind) || number.TimeUnit(m[2]) > 0
			if n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(m[1])); err == nil && n > 1 && counted {
				return fmt.Sprint(n, " ", m[2])
			}
		}
	}
	return ""
}

// computedFrom returns how numbers with this name are computed from a figure, such as "a
// logarithm"; "" if they may be the figure. base is the figure's unit.
func computedFrom(name, base string) string {
	switch {
	case spreadName.MatchString(name):
		return "a spread or an interval"
	case logName.MatchString(name):
		return "a logarithm"
	case base != "" && ratioName.MatchString(name):
		return "a ratio to another run or a difference"
	case strings.HasSuffix(base, "/s") && strings.HasSuffix(strings.TrimRight(name, ")] =:"), "%"):
		return "a percentage"
	case strings.HasSuffix(base, "/s") && otherRun.MatchString(name):
		return "that of another run"
	case strings.HasSuffix(base, "/s") && ofOneUser.MatchString(name):
		return "the rate of one user"
	case base != "" && base != "s" && priceName.MatchString(name): // "batch_cost: 0.25 sec" is a time
		return "a cost"
	case base != "" && idealName.MatchString(name):
		return "an ideal, which was not measured"
	}
	return ""
}

// derived returns an error if a column does not hold the figure itself, judging by its name.
func derived(ours, name, base string) error {
	unit := cmp.Or(usual[base], "fraction")
	if what := computedFrom(name, base); what != "" {
		return fmt.Errorf("column %s is %s, judging by its name, and not %s: map the column with the values; or, if the name is wrong, write %s", clip(name), what, ours, mapping(ours, name, unit))
	}
	if strings.HasSuffix(base, "/s") && number.IsCount(name) {
		return fmt.Errorf("column %s is a number of things, judging by its name, and %s is a rate: map a column with the rate; or, if the name is wrong, write %s", clip(name), ours, mapping(ours, name, unit))
	}
	if strings.HasSuffix(base, "/s") && settingName.MatchString(name) && len(headingOf(name).dims) == 0 {
		return fmt.Errorf("column %s is a setting, judging by its name, and %s is a rate: map a column with the rate; or, if the name is wrong, write %s", clip(name), ours, mapping(ours, name, unit))
	}
	if many := manyOf(name, perSeveral, forSeveral); base != "" && many != "" {
		return fmt.Errorf("column %s is for %s at once, judging by its name: divide it, so that each number is for one; or, if the name is wrong, write %s", clip(name), many, mapping(ours, name, unit))
	}
	return nil
}
