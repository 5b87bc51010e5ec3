package extract

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// These patterns match text before or after a number that changes what the number means.
var (
	// 12 345 and 12'345, with other spaces and thousands separators
	thousands = regexp.MustCompile("^(?:[\u00a0\u2009\u202f'’_]\\d|[\u00a0\u2009\u202f'’_ ]\\d{3}(?:\\D|$))")
	// 01:02:03,500
	thousandths = regexp.MustCompile(`^,\d{3}(?:\D|$)`)
	power       = regexp.MustCompile(`^\s?(?:[x×*·]\s?10|\^)`)
	// 5-7, 5..7, 5 to 7, 1/2
	interval = regexp.MustCompile(`^(?:[-–~/][\d.]|\.\.\.?\d|…\d| (?:–|to) \d)`)
	spread   = regexp.MustCompile(`^\s?(?:±|\+/?-|\\pm)\s?`)
	closers  = regexp.MustCompile(`^[\d.]+ ?[)\]}$]+ ?`)
	daysOf   = regexp.MustCompile(`(?:\d+ ?d(?:ays?)?,? ?|\d-)$`)
	perScope = regexp.MustCompile(`(?i)^\s*[\[(]?\s*(?:per[ _-]|/ ?|(?:pro|par|je|por|on each|for each|each|every|on every)[ _-]|每[^a-z\s]{0,2} ?)([\pL]+)`)
	lastPer  = regexp.MustCompile(`(?:/|per) ?(\pL+)$`)
	inPhrase = regexp.MustCompile(`(?i)(?:per|each|/)[ _-]?([a-z]+)`)
	// 500 img s⁻¹ GPU⁻¹
	perPower = regexp.MustCompile(`(?i)([a-z]+) ?(?:⁻¹|\^\{?-1\b|\*\*-1\b)`)
	// 500 img/s a GPU, on 1 GPU, @ 1 GPU
	onOne = regexp.MustCompile(`(?i)^[\s(\[]*(?:@ ?1|on 1|on one|on a|an?) ?([a-z]+)`)
	// (rank avg), mean over ranks
	ofMean     = regexp.MustCompile(`(?i)^[^,;|\d]{0,20}\b((?:gpu|device|rank|worker)s?[- ](?:avg|mean|average)|` + overRanks + `)\b`)
	meanBefore = regexp.MustCompile(`(?i)\b(` + overRanks + `)[^\pL\d,;|]*$`)
	phraseOf   = regexp.MustCompile(`[\pL%/()\[\] ._-]*[=:]?\s*["']?$`)
	totalOf    = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:total|aggregated?|global|overall|cluster|all (?:gpus|devices|ranks|workers))(?:[^a-z]|$)`)
	totalNext  = regexp.MustCompile(`(?i)^ ?(?:total|overall|global|aggregated?)(?:[),;|]|\s*$)`)
	// gpu_throughput, throughput_gpu and "worker throughput" may be of one device or of all.
	scopedName = regexp.MustCompile(`(?i)(?:^|[^\pL\d ]|[^\d] )((?:gpu|device|rank|worker|card|chip)[ _-](?:throughput|speed|rate|perf|performance|img|imgs|images?|samples?|tok|toks|tokens?)|(?:throughput|speed|rate|perf)[ _-](?:gpu|device|rank|worker|card|chip))(?:[^\pL\d][^\d,;|]*)?$`)
	onSeveral  = regexp.MustCompile(`(?i) on \d+ (?:gpu|device|rank|worker|process)[a-z()]*\s*[=:]?\s*$`)
	// 100 iters in 25 s, and 10 steps took 2.5 s
	countIn = regexp.MustCompile(`(?i)^ ?[a-z]+ (?:in|took|over) [\d.]+ ?(?:m?s|secs?|seconds?|mins?|minutes?|h|hours?)\b`)
	countOf = regexp.MustCompile(`(?i)(?:per )?\b(?:\d\d+|[2-9]) ?(?:steps|iters|iterations|batches|its)([^\d|;]*)$`)
	// steps 1-100: 25 s
	rangeOf = regexp.MustCompile(`(?i)(?:steps?|iters?|iterations?|batch(?:es)?)[ :=#\[(]{1,2}(\d+) ?(?:-|–|\.\.|to) ?(\d+)([^\d;]*)$`)
	// TensorFlow's Estimator states the time since its previous line, "loss = 2.1, step = 100 (25.012 sec)".
	estimator = regexp.MustCompile(`, step = \d+ \($`)
	nextPart  = regexp.MustCompile(`[,;|] `)
	// ofOne matches words for a time of one step.
	ofOne    = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:avg|averaged?|mean|median|per|each|p\d\d|steps?|iter(?:ation)?|batch)(?:[^a-z]|$)|/`)
	stepName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:step|iter|iteration|batch)(?:[^a-z]|$)`)
)

// ofStep reports whether the figure is the time of one step.
func (c *compiled) ofStep() bool {
	return c.declared.Inverse || c.declared.Base == "s" && stepName.MatchString(strings.ReplaceAll(c.Name, "_", " "))
}

// ofSeveral reports whether the text before a time says that it is of several steps.
func ofSeveral(before string) bool {
	if m := countOf.FindStringSubmatchIndex(before); m != nil {
		start := strings.LastIndexAny(before[:m[0]], ",;|[(") + 1
		return !ofOne.MatchString(before[start:m[0]]) && !ofOne.MatchString(before[m[2]:])
	}
	if estimator.MatchString(before) {
		return true
	}
	m := rangeOf.FindStringSubmatch(before)
	if m == nil || ofOne.MatchString(m[3]) {
		return false
	}
	from, _ := strconv.Atoi(m[1]) // the expression allows digits only
	to, _ := strconv.Atoi(m[2])
	return from < to
}

// overRanks matches words for a mean of several ranks.
const overRanks = `(?:avg|mean|average)d? (?:[a-z]+ ){0,2}(?:of|over|across) (?:all )?(?:\d+ )?(?:gpu|device|rank|worker|processe?)s?`

// submatch returns the first group of an expression; "" without a match.
func submatch(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var (
	// keyBefore matches the last two words before a number, as in "step time std: "
	keyBefore  = regexp.MustCompile(`(?:[\pL\d_@%/()\[\]^.-]+ ?){1,2}["']?\s*[=:]?\s*["']?$`)
	afterPlus  = regexp.MustCompile(`(?:±|\+/?-|\\pm)[ |]*$`)
	bound      = regexp.MustCompile(`(?:^|[^-=<>])([<>≤≥]=?) ?$`)
	accuracies = regexp.MustCompile(`(?i)acc|top|correct|iou|f1`)
	micro      = regexp.MustCompile(`(?i)micro[-_ ]?(?:batch|step|it)`)
)

// described fails if the text around a number says that it is something else than the figure: its
// spread, a ratio, a logarithm, a loss, or the value for several steps.
func (w *numberAt) described() {
	c, before, rest := w.c, w.before(), w.after()
	rest = rest[:min(len(rest), around)]
	key := keyBefore.FindString(before)
	base := ""
	if c.known {
		base = c.declared.Base
	}
	if number.ParseName(key).Factor != 1 && c.declared.IsRate() && w.Parsed.Scale == 1 {
		fail("the text before %q states a factor in %q; let a group (?P<unit>…) match the unit, or the program print it next to the number", w.Number, w.shown())
	}
	what := ""
	switch {
	case computedFrom(c.Name, "s") != "": // the user wants it
	case afterPlus.MatchString(before):
		what = "a spread or an interval"
	default:
		what = computedFrom(key, base)
	}
	if i := nextPart.FindStringIndex(rest); i != nil {
		rest = rest[:i[0]]
	}
	many := cmp.Or(manyOf(key, perSeveral), manyOf(rest, perSeveral))
	if c.ofStep() {
		many = cmp.Or(many, manyOf(rest, forSeveral))
	} else if i := strings.LastIndexAny(key, "(["); i >= 0 && c.declared.IsRate() { // (1000 tokens/s): 12
		many = cmp.Or(many, manyOf(key[i:], forSeveral))
	}
	switch m := bound.FindStringSubmatch(before); {
	case what != "":
		fail("the text before %q says that it is %s, and not %s, in %q; let the expression match the value itself", w.Number, what, c.Name, w.shown())
	case c.Name == "accuracy" && notAccuracy.MatchString(key) && !accuracies.MatchString(key):
		fail("the text before %q says that it is a loss or an error, and not an accuracy, in %q; let the expression match the accuracy, or choose another name", w.Number, w.shown())
	case base != "" && many != "":
		fail("%q is for %s in %q, and %s is for one; let the program print that", w.Number, many, w.shown(), c.Name)
	case m != nil && !strings.HasPrefix(w.after(), "<"):
		w.l.note("%q comes before a number of %s (line %d), so that it is a limit and not the value", m[1], c.Name, w.ln.number)
	}
	if c.unit.steps && (micro.MatchString(key) || micro.MatchString(rest)) {
		w.l.note("the log counts micro-batches for %s: if a step has several, its rate is lower", c.Name)
	}
}

// neighbours fails if the text around the number shows that it is part of something
// else: a power of ten, a range, a number with thousands separators. If a unit follows a spread
// (1200 ± 30 K), it becomes the unit of the number.
func (w *numberAt) neighbours() {
	c, r, rest := w.c, &w.Reading, w.after()
	text := shown(w.ln.text, w.from, w.from+len(w.Number))
	if each := r.Known && r.Parsed.Inverse; c.ofStep() && !each && ofSeveral(w.before()) {
		fail("%q may be the time of several steps in %q, and %s is that of one; let the program print that, or choose another name, like own_seconds", r.Number, text, c.Name)
	}
	if r.Clock && (daysOf.MatchString(w.before()) || inClock.MatchString(w.before())) {
		fail("%q is only part of a length of time in %q; let the expression match the days and hours too", r.Number, text)
	}
	if c.declared.IsRate() && !c.declared.Inverse && countIn.MatchString(rest) {
		fail("%q is a count over a time in %q, and %s is in %s; let the program print the rate", r.Number, text, c.Name, c.Unit)
	}
	w.sharedUnit()
	if rest == "" || c.names(rest[0]) {
		return
	}
	whole := !strings.ContainsAny(r.Number, ".eE,") && len(strings.TrimLeft(r.Number, "+-")) <= 3
	switch {
	case r.Clock && thousandths.MatchString(rest):
		failIf(partOf(w.ln.text, w.from, w.from+len(w.Number)))
	case r.Clock:
		return
	case whole && thousands.MatchString(rest) && rest[0] == ' ' && !c.joins(rest[1:]):
		w.l.note("a space and three digits follow a number of %s and are not read: if the space separates thousands, print numbers without it", c.Name)
	case whole && thousands.MatchString(rest):
		fail("%q may be only part of a number in %q, with thousands separators; let the program print it without them", r.Number, text)
	case power.MatchString(rest):
		fail("a power of ten follows %s in %q; let the program print the number in full or as 1.2e6", r.Number, text)
	case interval.MatchString(rest):
		fail("%q is one end of a range, or a part of a fraction, in %q; let the expression name the text after the number if this one is meant", r.Number, text)
	}
	if m := spread.FindString(rest); m != "" && r.Unit == "" && c.unitAt < 0 {
		rest = rest[len(m):]
		if m := closers.FindString(rest); m != "" { // (123.4 ± 5.6) kimg/s
			rest = "0 " + rest[len(m):]
		}
		if other, ok := number.Read(rest); ok && other.Known && !other.Clock {
			r.Unit, r.Parsed, r.Known, r.Attached = other.Unit, other.Parsed, true, other.Attached
		}
	}
}

// joins reports whether the digits after a number and a space have the unit that belongs to it, as
// in "1 234,5 img/s". Then the space separates thousands.
func (c *compiled) joins(rest string) bool {
	u, known := number.ParseUnit(unitAfter.FindStringSubmatch(rest)[1])
	return known && c.known && u.Base != "" && u.Base == c.declared.Base
}

var unitAfter = regexp.MustCompile(`^(?:[\d.,]+ ?([A-Za-zµ/]*))?`)

var (
	// moreNumbers matches further numbers of a list, and what stands in brackets after a number.
	moreNumbers = regexp.MustCompile(`^(?:(?: ?/ ?[-+]?\d[\d.]*)*(?: ?/ ?)|(?: ?, ?[-+]?\d[\d.]*)+(?: ?, ?))([-+]?\d[\d.]*.*)$`)
	bracketed   = regexp.MustCompile(`^\s*(?:\[[^\]]*\]|\([^)]*\d[^)]*\))\s*([a-zA-Zµ%][a-zA-Zµ/ ]*)`)
	// unitBehind matches the unit in "250, in ms"
	unitBehind  = regexp.MustCompile(`^(?:, in |[_-])([A-Za-zµ]+)(?:[^\pL]|$)`)
	inThousands = regexp.MustCompile(`(?i)^\s*[\[(]?(?:in )?(?:thousands?|millions?|billions?|tsd|mio|mln|mn|bn|mrd|lakhs?|crores?)(?:[^a-z]|$)|^ ?[千万億亿]`)
	ofOneDevice = regexp.MustCompile(`(?i)(?:^|[^\pL\d])((?:single|one|1|each|each of \d+|this)[-_ ]?(?:gpu|device|rank|worker|card|process)s?|local|my)(?:[^\pL][^,;|]*)?$`)
	timesDevice = regexp.MustCompile(`(?i)^[^,;|\d]{0,20}[x×*] ?\d+ ?(?:gpu|device|rank|worker|card|process|=)`)
)

// sharedUnit sets the unit of a number that shares it with the numbers after it: 5.2/4.1/9.9 ms,
// 5.2 [4.1, 9.9] ms.
func (w *numberAt) sharedUnit() {
	c, rest := w.c, w.after()
	if w.Unit != "" || w.Clock || c.unitAt >= 0 || !c.known {
		return
	}
	if inThousands.MatchString(rest) {
		fail("%s is in thousands or more by the text after it; let a group (?P<unit>…) match the unit", w.Number)
	}
	text := submatch(unitBehind, rest)
	if m := moreNumbers.FindStringSubmatch(rest); m != nil {
		if last, ok := number.Read(m[1]); ok && !last.Clock {
			text = last.Unit
		}
	} else if m := bracketed.FindStringSubmatch(rest); m != nil {
		text = strings.TrimSpace(m[1])
	}
	if u, known := number.ParseUnit(text); known && u.Base == c.declared.Base && u.Base != "" {
		w.takeUnit(text)
	}
}

// scope fails if the text around a number says that a rate covers one device or node,
// but the pattern expects the run's rate. It also fails for a total if the pattern expects
// one rank's rate.
func (w *numberAt) scope() {
	c, before, rest := w.c, w.before(), w.after()
	if c.Of == "rank" && strings.HasSuffix(c.unit.base, "/s") {
		phrase := phraseOf.FindString(before)
		if totalOf.MatchString(phrase) && !inPhrase.MatchString(phrase) || onSeveral.MatchString(before) {
			fail("the log calls %s a total of all workers; set of = \"run\"", c.Name)
		}
	}
	if !c.ofAll() {
		return
	}
	said := ""
	// The unit comes first: "tokens/s (per GPU)".
	if _, after, found := strings.Cut(rest, w.Unit); found && w.Unit != "" {
		rest = strings.TrimLeft(after, ")]")
	}
	if w.Parsed.Per == "" && totalNext.MatchString(rest) { // 150 img/s/gpu (1200 img/s total)
		return
	}
	if m := perScope.FindStringSubmatch(rest); m != nil {
		said = m[1]
	} else if m := lastPer.FindStringSubmatch(w.Unit); m != nil && !w.Known {
		said = m[1]
	}
	for _, m := range inPhrase.FindAllStringSubmatch(phraseOf.FindString(before), -1) {
		if kind := number.Kind(m[1]); kind == number.PerDevice || kind == number.PerNode {
			said = m[1]
		}
	}
	failScope(c.Name, number.Kind(said), "per "+said)
	if said != "" && number.Kind(said) == "" && number.TimeUnit(said) == 0 && !ofLog[strings.ToLower(said)] {
		fail("the log has %s per %q, and it is unclear how many there are: let the program print the rate of all, or end the expression with the text after the number", c.Name, said)
	}
	if w.l.o.Workers != 1 && !totalOf.MatchString(keyBefore.FindString(before)) {
		w.ofOne(rest)
	}
}

// ofOne fails if the text around a rate says in other words than "per" that it covers one device. rest is the
// text after its unit.
func (w *numberAt) ofOne(rest string) {
	c, before := w.c, w.before()
	for _, one := range []*regexp.Regexp{perPower, onOne} {
		for _, m := range one.FindAllStringSubmatch(rest[:min(len(rest), around)], -1) {
			failScope(c.Name, number.Kind(m[1]), strings.TrimSpace(m[0]))
		}
	}
	if m := cmp.Or(submatch(ofMean, rest), submatch(meanBefore, before)); m != "" {
		failScope(c.Name, number.PerDevice, m)
	}
	if m := ofOneDevice.FindStringSubmatch(before[max(0, len(before)-around):]); m != nil {
		failScope(c.Name, number.PerDevice, m[1])
	}
	if m := timesDevice.FindString(rest); m != "" {
		failScope(c.Name, number.PerDevice, strings.TrimSpace(m))
	}
}

// ofLog are words after "per" that do not divide a rate: "img/s (per interval)".
var ofLog = map[string]bool{"run": true, "interval": true, "window": true, "log": true, "line": true}

// shortRate matches abbreviations of rates that some programs print for one device and others for
// all of them.
var shortRate = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:tps|wps|ips)(?:[^\pL]|$)`)

// unclearScope fails if the log names the rate of a run by such an abbreviation only.
func (w *numberAt) unclearScope() {
	if !w.c.ofAll() || w.c.ofRun || w.l.o.Workers == 1 {
		return
	}
	if name := submatch(scopedName, w.before()); name != "" && !totalOf.MatchString(phraseOf.FindString(w.before())) {
		fail("it is unclear whether %s in %q is of one device or of all: set of = \"rank\" or of = \"run\"", name, w.shown())
	}
	for _, text := range []string{w.Unit, keyBefore.FindString(w.before())} {
		if shortRate.MatchString(text) && !totalOf.MatchString(text) {
			fail("it is unclear whether %s in %q is of one device, as torchtitan prints, or of all: set of = \"rank\" or of = \"run\"", strings.TrimRight(strings.TrimSpace(text), ":="), w.shown())
		}
	}
}

// failScope fails for a figure of one device or node where the pattern expects the run's. text is
// how the log says it.
func failScope(figure, per, text string) {
	switch per {
	case number.PerDevice:
		fail("the log has %s for each device (%s); set of = \"rank\", or take the rate of all", figure, text)
	case number.PerNode:
		fail("the log has %s for each node (%s); take the rate of all, or multiply before printing", figure, text)
	}
}

// headUnit returns the unit at the head of the column that a number is in, or on a line of its own.
func (w *numberAt) headUnit() (u number.Unit, text string, ok bool) {
	c, ln := w.c, w.ln
	name := ln.head.of(ln.text, w.from)
	if times := ln.head.timesOf(ln.text); times != "" && c.declared.Base == "s" && !c.declared.Inverse {
		u, ok := number.ParseUnit(times)
		return u, times, ok
	}
	if u, ok := number.ParseUnit(ln.head.section); ok && u.Base == c.declared.Base && c.declared.Base != "" {
		return u, ln.head.section, true
	}
	if c.declared.Base == "" && c.Unit != "" && c.known && strings.ContainsAny(name, "%") {
		return number.Unit{Scale: 0.01}, name, true
	}
	if c.declared.Base == "" || name == "" && ln.head.stated == "" {
		return u, "", false
	}
	for _, d := range headingOf(name).dims {
		if d.base == c.declared.Base && !d.steps && !d.each {
			return number.Unit{Base: d.base, Scale: d.scale, Per: d.per}, name, true
		}
	}
	for _, word := range append(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ()[]", r) }), ln.head.stated) {
		if u, ok := number.ParseUnit(word); ok && u.Base == c.declared.Base && !u.Inverse {
			return u, cmp.Or(name, word), true
		}
	}
	return u, "", false
}

// keyUnit returns the unit in the name of a number in the log: before it, as in "time_ms=", or
// where headUnit finds it.
func (w *numberAt) keyUnit() (u number.Unit, text string, ok bool) {
	if u, text, ok := w.headUnit(); ok {
		if binary, says, ok := binaryUnit(text); ok {
			return binary, says, true
		}
		return u, text, true
	}
	if u, text, ok := binaryUnit(w.before()); ok {
		return u, text, w.c.declared.Base == u.Base
	}
	if u, text, ok := w.enclosingUnit(); ok {
		return u, text, true
	}
	return number.KeyUnit(w.before(), w.c.declared)
}

// binaryUnits are programs that count 1024 bytes as a kB, with the text before their numbers or at the head of
// the column, and what their unit means. Their sources say so.
var binaryUnits = []struct {
	text       *regexp.Regexp
	unit, says string
}{
	{regexp.MustCompile(`BW (?:peak|average)\[MB/sec\]$`), "MiB/s", "MiB/s (perftest writes MB/sec)"},
	{regexp.MustCompile(`set size \(kbytes\):\s*$`), "KiB", "KiB (time writes kbytes)"},
	{regexp.MustCompile(`records/sec \($`), "MiB/s", "MiB/s (Kafka writes MB/sec)"},
	{regexp.MustCompile(`Total transferred .*\($`), "MiB/s", "MiB/s (sysbench writes Mb/sec)"},
}

// binaryUnit returns the unit that such a program means; ok is false for other text.
func binaryUnit(text string) (u number.Unit, says string, ok bool) {
	for _, one := range binaryUnits {
		if one.text.MatchString(text) {
			u, ok = number.ParseUnit(one.unit)
			return u, one.says, ok
		}
	}
	return u, "", false
}

var rankName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:rank|gpu|cuda|worker|device|proc(?:ess)?)[ :=_#-]{0,2}(\d{1,5})(?:\D|$)`)

// namedRanks distinguishes ranks by the names that programs print, if no launcher adds a prefix:
// "[GPU3] Epoch 1", "rank 0: ".
func namedRanks(c *compiled, all []match) {
	if !c.ofAll() && c.Of != "rank" {
		return
	}
	names := map[string]bool{}
	for _, m := range all {
		if m.source != "" || m.rank == "" {
			return
		}
		names[m.rank] = true
	}
	if len(names) < 2 {
		return
	}
	for i := range all {
		all[i].source = all[i].rank
	}
}

// unlike is the ratio of quartiles above which values seem to be of several trainings.
const unlike = 1.5

// mixed adds a note if the values of a rate differ so much that they may be of several trainings
// or phases.
func (l *log) mixed(c *compiled, values []Value) {
	if c.Per != "step" || c.Reduce != "median" && c.Reduce != "mean" || len(values) < 4 || !strings.HasSuffix(c.unit.base, "/s") {
		return
	}
	sorted := slices.Sorted(slices.Values(numbers(values)))
	low, high := sorted[len(sorted)/4], sorted[len(sorted)-1-len(sorted)/4]
	if low > 0 && high/low > unlike && !math.IsInf(high/low, 0) {
		l.note("half of the %d values of %s are outside %.4g to %.4g in the log's unit: if it has several trainings or phases, split it, or let the pattern match one", len(values), c.Name, low, high)
	}
}
