package extract

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A role is the meaning of a column that the user did not map, guessed from its name.
type role string

const (
	roleSetting   role = "asked"      // a setting: rows with different values are of different series
	roleGround    role = "ranOn"      // the environment of a run, or its date: different values cause a warning
	rolePart      role = "partOf"     // the part of a run that the row describes, such as a rank
	roleID        role = "identifies" // the name of a run: repeats have different values
	roleUnit      role = "unitOf"     // the unit of another column
	roleStatistic role = "statistic"  // the kind of average in the row
	roleUnclear   role = ""
)

// words returns the kind of each word, from lists of words by their kind.
func words(list map[string]string) map[string]string {
	all := map[string]string{}
	for kind, text := range list {
		for _, word := range strings.Fields(text) {
			all[word] = kind
		}
	}
	return all
}

// roles maps words in column names to roles.
var roles = words(map[string]string{
	string(roleSetting):   "precision dtype amp fp16 bf16 fp8 tf32 model network net arch architecture dataset framework backend optimizer optimiser compiler interconnect phase stage batch batchsize scaling",
	string(roleGround):    "driver cuda cudnn nccl rocm rccl version software torch pytorch tensorflow python kernel os image container commit date day cluster partition machine site firmware",
	string(rolePart):      "rank endpoint url path route method operation api localrank",
	string(roleID):        "run id seed repeat rep trial index idx no nr row note notes comment comments remark job jobid name user owner time timestamp started start end ended hour host hostname",
	string(roleUnit):      "unit units",
	string(roleStatistic): "stat statistic statistics aggregation agg metric metrics measure quantity kpi",
})

// roleOf returns the role of the last word in the name that has a role.
func roleOf(name string) role {
	found := roleUnclear
	list := number.Words(name)
	for i := range list {
		list[i] = strings.ToLower(list[i])
		if r, is := roles[list[i]]; is {
			found = role(r)
		}
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(list, func(word string) bool { return slices.Contains(words, word) })
	}
	switch {
	case found != roleUnclear && found != roleID:
	case found == roleID && len(list) > 1 && (countsDevices(list) || has("replica")) && slices.Contains([]string{"id", "index", "idx", "no"}, list[len(list)-1]):
		return rolePart // gpu_id
	case len(headingOf(name).dims) > 0:
		return roleUnclear
	case has("gpu", "gpus", "accelerator", "device", "card") && !has("id"):
		return roleSetting // settings ignores a column of counts
	}
	return found
}

// An other is a column that the user did not map.
type other struct {
	name    string
	at      int
	role    role
	numeric bool // every cell is a number
	whole   bool // every cell is a whole number
	values  map[string]bool
	first   map[int]string         // the cell of each point's first row
	within  bool                   // rows of one point have different cells
	counts  map[int]map[string]use // worker counts for each series and cell
}

type use map[float64]bool

// mostValues limits the number of different cells that are stored per column.
const mostValues = 200

func (t *table) others(columns map[string]Column) (list []*other) {
	used := map[string]bool{t.l.o.Sum: true}
	for _, c := range columns {
		used[c.Name] = true
	}
	for _, name := range t.ordered() {
		if !used[name] {
			list = append(list, &other{name: name, at: t.at[name], role: roleOf(name), numeric: true, whole: true,
				values: map[string]bool{}, first: map[int]string{}, counts: map[int]map[string]use{}})
		}
	}
	return list
}

func (o *other) see(text string, r surveyed) {
	if text == "" {
		return
	}
	x, err := strconv.ParseFloat(text, 64)
	o.numeric = o.numeric && err == nil
	o.whole = o.whole && err == nil && x == float64(int64(x))
	if len(o.values) < mostValues {
		o.values[text] = true
	}
	if before, seen := o.first[r.point]; !seen {
		o.first[r.point] = text
	} else if before != text {
		o.within = true
	}
	if o.counts[r.series] == nil {
		o.counts[r.series] = map[string]use{}
	}
	by := o.counts[r.series]
	if o.role == roleGround && isDate(o.name) {
		text, _, _ = strings.Cut(strings.Replace(text, "T", " ", 1), " ") // the day, without the time
	}
	if by[text] == nil && len(by) < mostValues {
		by[text] = use{}
	}
	if by[text] != nil {
		by[text][r.workers] = true
	}
}

func isDate(name string) bool {
	return slices.ContainsFunc(number.Words(name), func(word string) bool { return strings.EqualFold(word, "date") || strings.EqualFold(word, "day") })
}

// some returns a list of up to three of the values, for messages.
func some(values map[string]bool) string {
	list := slices.Sorted(maps.Keys(values))
	for i := range list {
		list[i] = clip(list[i])
	}
	if len(list) > 3 {
		list = append(list[:3], fmt.Sprintf("%d more", len(list)-3))
	}
	return strings.Join(list, ", ")
}

var notInLabel = regexp.MustCompile(`[^a-z0-9_.-]+`)

// labelled returns the command-line option that turns the column into a label.
func labelled(name string) string {
	key := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if slices.Contains(TableFigures, key) && !slices.Contains(Coordinates, key) || slices.Contains([]string{"", "study", "workers", "replicas", "nodes", "framework"}, key) {
		key = strings.Trim("the_"+key, "_")
	}
	return "--label " + shellQuoted(key+"="+name)
}

// parts refuses rows that are parts of one run or statistics of runs, which would otherwise count
// as repeats.
func (s *survey) parts() {
	for _, o := range s.others {
		switch {
		case !o.within:
		case o.role == rolePart && s.differWithin(o):
			s.refuse("rows differ only in column %s (%s), so they are parts of one run and not repeats; write --sum %s to add up their rates, or %s to keep them apart",
				clip(o.name), some(o.values), shellQuoted(o.name), labelled(o.name))
		case !(s.epochs && o.numeric) && (o.role == roleStatistic || !o.numeric && s.allSummarise(o)) && s.differWithin(o):
			s.refuse("rows differ only in column %s (%s), so they are statistics of the same runs and not repeats; write %s to keep them apart, or delete all but one of each",
				clip(o.name), some(o.values), labelled(o.name))
		}
	}
}

var digits = regexp.MustCompile(`\d+`)

// alike reports columns that differ from a mapped one only in a number, such as run1 and run2. It
// refuses them if they are of single workers, such as rank0 and rank1.
func (s *survey) alike() {
	for _, ours := range s.figures {
		name := s.reads[ours].Name
		if s.loads || tableUnits[ours] == "" || !digits.MatchString(name) {
			continue
		}
		var like []string
		for _, o := range s.others {
			if o.numeric && digits.ReplaceAllString(o.name, "#") == digits.ReplaceAllString(name, "#") {
				like = append(like, o.name)
			}
		}
		switch {
		case len(like) == 0:
		case rankName.MatchString(name) && !s.reads[ours].sure:
			s.l.fail(0, "columns %s are of single workers, judging by their names: add a column with their sum, and map it to %s; or, if %s covers all, write %s",
				listed(append([]string{name}, like...)), ours, clip(name), mapping(ours, name, usual[tableUnits[ours]]))
		default:
			s.say("not used: %s, which are named like %s; if they are repeats, write each value in a row of its run", listed(like), clip(name))
		}
	}
}

// differWithin reports whether the rows of some point, without those that were left out, differ
// in a column.
func (s *survey) differWithin(o *other) bool {
	if !o.within {
		return false
	}
	if len(s.left) == 0 {
		return true
	}
	seen, differ := map[int]string{}, false
	s.eachRow(func(t *table, r surveyed) {
		text := strings.TrimSpace(t.rows[0][o.at])
		before, is := seen[r.point]
		differ = differ || is && before != text
		seen[r.point] = text
	})
	return differ
}

func (s *survey) allSummarise(o *other) bool {
	for value := range o.values {
		if summaryWord(value) == "" {
			return false
		}
	}
	return len(o.values) > 1
}

// countsTime lists the names of columns that number the epochs or steps of a run.
var countsTime = map[string]bool{"epoch": true, "step": true, "iteration": true, "iter": true, "global_step": true}

// settings refuses rows of one series with different settings. If they ran in different
// environments, it records a doubt.
func (s *survey) settings() {
	for _, o := range s.others {
		if !s.epochs && countsTime[strings.ToLower(o.name)] && o.numeric && o.whole && s.differWithin(o) {
			s.refuse("rows of one run differ in column %s (%s), so they are its parts and not repeats; write %s, or %s if each row is a run",
				clip(o.name), some(o.values), mapping("epoch", o.name, ""), labelled(o.name))
			continue
		}
		switch o.role {
		case roleSetting:
			s.setting(o)
		case roleGround:
			for _, by := range o.counts {
				s.changes(o, by)
			}
		case roleUnclear:
			s.unclear(o)
		}
	}
}

// setting refuses rows of one series that differ in this setting.
func (s *survey) setting(o *other) {
	s.weak = s.weak || strings.EqualFold(o.name, "scaling") && o.values["weak"]
	differ := o.within && s.differWithin(o)
	for _, by := range o.counts {
		differ = differ || !o.numeric && len(by) > 1
	}
	if !differ || o.numeric && countsDevices(number.Words(o.name)) || s.epochs {
		return
	}
	s.refuse("rows of one series differ in column %s (%s); write %s to make each a separate series",
		clip(o.name), some(o.values), labelled(o.name))
}

// unclear records a doubt if rows that differ only in a column of unknown meaning count as
// repeats.
func (s *survey) unclear(o *other) {
	listsWords := !o.numeric || o.whole && 2*len(o.values) <= len(s.rows)
	if s.epochs || !o.within || !listsWords || len(headingOf(o.name).dims) > 0 || !s.differWithin(o) {
		return
	}
	s.say("not used: %s; rows that differ only in it count as repeats (%s makes a label of it)", clip(o.name), labelled(o.name))
	s.doubts = append(s.doubts, fmt.Sprintf("rows that differ in column %s (%s) count as repeats", clip(o.name), some(o.values)))
}

// changes records a doubt if the environment, in a column such as the driver version, differs
// between worker counts.
func (s *survey) changes(o *other, by map[string]use) {
	if len(by) < 2 {
		return
	}
	all, shared := use{}, false // the worker counts, and whether all of them have a value in common
	for _, used := range by {
		maps.Copy(all, used)
	}
	for _, used := range by {
		shared = shared || len(used) == len(all)
	}
	if len(all) > 1 && shared || len(all) == 1 && isDate(o.name) {
		return
	}
	var texts []string
	values := slices.Collect(maps.Keys(by))
	least := func(v string) float64 { return slices.Min(slices.Collect(maps.Keys(by[v]))) }
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(least(a), least(b)), cmp.Compare(a, b)) })
	for i, v := range values {
		if i == 4 {
			texts = append(texts, fmt.Sprintf("and %d more", len(values)-i))
			break
		}
		var at []string
		for _, n := range slices.Sorted(maps.Keys(by[v])) {
			at = append(at, fmt.Sprint(n))
		}
		texts = append(texts, fmt.Sprintf("%s at %s", v, strings.Join(at, ", ")))
	}
	s.doubts = append(s.doubts, fmt.Sprintf("%s changes with the number of workers (%s): what differs between these may come from that", o.name, strings.Join(texts, "; ")))
}

// unitColumns fails if a column that states units contradicts the units in which the
// table would be read.
func (s *survey) unitColumns() {
	for _, o := range s.others {
		if o.role != roleUnit {
			continue
		}
		for _, ours := range s.figures {
			r := s.reads[ours]
			base := tableUnits[ours]
			var other []string
			fits := false
			for _, text := range slices.Sorted(maps.Keys(o.values)) {
				d, is := fitting(unitsNamed(text), base)
				fits = fits || is
				if is && (d.scale != r.scale || d.per != r.per) {
					other = append(other, text)
				}
			}
			switch {
			case !fits || len(other) == 0:
			case len(o.values) > 1:
				s.l.fail(0, "column %s says that numbers are in different units (%s); make a table of each, or convert them", clip(o.name), some(o.values))
			case !r.sure:
				s.l.fail(0, "column %s says %s, and column %s would be read in %s; write %s", clip(o.name), clip(other[0]), clip(r.Name), cmp.Or(base, "fractions"), mapping(ours, r.Name, other[0]))
			}
		}
	}
}
