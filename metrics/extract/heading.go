package extract

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A heading is the parsed name of a column: the unit, with its SI prefix, quantity, time and
// scope, as in "tokens per sec per GPU", "kimg/s", "step time (ms)".
type heading struct {
	dims  []dimension // possible meanings, the most likely first; empty if the name has no known unit
	said  string      // the part of the name that looks like a unit; "" if none does
	total bool        // whether the name says "total" of all devices
	of    string      // "steps" or "epochs" if the name has the word
}

// A dimension is a unit and the scope of its numbers (all devices, one device, one node).
type dimension struct {
	unit
	per string // perDevice, perNode, or "" if not stated
}

// What a rate covers if it does not cover all devices of the run.
const (
	perDevice = "device"
	perNode   = "node"
)

// vocabulary maps words of column names, in lower case, to their meaning. It lists only words
// that number.ParseUnit does not know.
var vocabulary = words(map[string]string{
	"samples":  "record records item items frame frames sentence sentences utterance utterances video videos clip clips",
	"steps":    "minibatch minibatches",
	"requests": "query queries inference inferences infer infers answer answers response responses",
	"epochs":   "epoch epochs",
	perDevice:  "gpu gpus device devices dev worker workers rank ranks card cards chip chips accelerator accelerators tpu tpus npu npus hpu hpus gcd gcds core cores process processes proc procs replica replicas xpu",
	perNode:    "node nodes host hosts machine machines server servers instance instances box boxes",
	"total":    "total aggregate aggregated global overall cluster cumulative combined all sum system",
	"share":    "% pct percent percentage share fraction ratio",
})

func words(list map[string]string) map[string]string {
	all := map[string]string{}
	for kind, text := range list {
		for _, word := range strings.Fields(text) {
			all[word] = kind
		}
	}
	return all
}

// spoken maps spelled-out SI prefixes to their factors.
var spoken = map[string]float64{"kilo": 1e3, "thousand": 1e3, "thousands": 1e3, "mega": 1e6, "million": 1e6, "millions": 1e6, "giga": 1e9, "billion": 1e9, "tera": 1e12, "peta": 1e15}

// prefixOf returns the factor of an SI prefix; 0 for a word that is not one.
func prefixOf(word string) float64 {
	if u, known := number.ParseUnit(word); known && u.Bare && u.Base == "" {
		return u.Scale
	}
	return spoken[strings.ToLower(word)]
}

// initials expands abbreviated rates. The quantity of an ambiguous one is unknown ("?"): ips may
// count images, items, inferences or iterations.
var initials = map[string]string{"tps": "tokens/s", "tgs": "tokens/s/gpu", "fps": "frames/s", "rps": "requests/s", "qps": "queries/s", "ips": "?/s", "sps": "?/s", "wps": "?/s"}

var (
	joined    = regexp.MustCompile(`([a-z])Per([A-Z])`)
	persec    = regexp.MustCompile(`(?i)([a-z])per(sec|secs|second|min|minute|hour|step|iter|gpu|device|node|worker|rank)s?\b`)
	wordOrDiv = regexp.MustCompile(`[\p{L}µ]+|%|/`)
	brackets  = regexp.MustCompile(`[(\[{]([^()\[\]{}]*)[)\]}]`)
)

// anyBase is the unit of a rate whose name states no quantity, as in "throughput per GPU".
const anyBase = "?"

// headingOf parses the name of a column.
func headingOf(name string) heading {
	inside := ""
	rest := brackets.ReplaceAllStringFunc(name, func(part string) string {
		inside += " " + part[1:len(part)-1]
		return " "
	})
	outer, inner := readHeading(rest), readHeading(inside)
	h, other := inner, outer
	if len(inner.dims) == 0 && (len(outer.dims) > 0 || inner.said == "") || len(inner.dims) > 0 && inner.dims[0].base == anyBase && len(outer.dims) > 0 {
		h, other = outer, inner // "tokens/s (per GPU)", "img/s (batch 32)"
	}
	if len(other.dims) > 0 { // "Throughput per GPU (img/s)"
		h.dims = slices.Clone(h.dims)
		for i := range h.dims {
			h.dims[i].per = cmp.Or(h.dims[i].per, other.dims[0].per)
		}
	}
	h.total, h.of = outer.total || inner.total, cmp.Or(outer.of, inner.of)
	return h
}

// readHeading parses the part of a name outside brackets, or the part inside.
func readHeading(text string) heading {
	h := heading{}
	words := split(text)
	over := [][]string{nil} // the words between divisions
	for _, word := range words {
		kind := kindOf(word)
		h.total = h.total || kind == "total"
		if kind == "steps" || kind == "epochs" {
			h.of = kind
		}
		if word == "/" {
			over = append(over, nil)
		} else {
			over[len(over)-1] = append(over[len(over)-1], word)
		}
	}
	// The name of a metric may be a path: "train/device/samples_per_sec". So try the part after
	// each slash.
	per := ""
	for from := range over {
		tail := over[from:]
		if from > 0 && len(tail[0]) == 1 && secondsOf(tail[0][0]) > 0 {
			break // "Bilder/s" is not a time
		}
		if h.dims = dimensionsOf(tail, per); h.dims != nil {
			break
		}
		for _, word := range tail[0] {
			if kind := kindOf(word); kind == perDevice || kind == perNode {
				per = kind
			}
		}
	}
	rated := slices.ContainsFunc(over[1:], func(part []string) bool {
		return len(part) > 0 && (secondsOf(part[0]) > 0 || kindOf(part[0]) == perDevice || kindOf(part[0]) == perNode)
	})
	if h.dims != nil || rated {
		h.said = strings.TrimSpace(text)
	}
	return h
}

// split returns the words and division signs of a name. "img_per_sec" gives the same as
// "img/sec".
func split(text string) []string {
	text = joined.ReplaceAllString(text, "$1 per $2")
	text = persec.ReplaceAllString(text, "$1 per $2")
	var list []string
	for _, word := range wordOrDiv.FindAllString(text, -1) {
		by, short := initials[strings.ToLower(word)]
		switch {
		case short:
			list = append(list, split(by)...)
		case strings.EqualFold(word, "per"):
			list = append(list, "/")
		default:
			list = append(list, word)
		}
	}
	return list
}

func kindOf(word string) string {
	if kind, known := vocabulary[strings.ToLower(word)]; known {
		return kind
	}
	if u, known := number.ParseUnit(word); known && u.Scale == 1 && perSecond[u.Base] != "" {
		return u.Base
	}
	return ""
}

// secondsOf returns the length of a unit of time in seconds; 0 for other words.
func secondsOf(word string) float64 {
	if u, known := number.ParseUnit(word); known && u.Base == "s" && !u.Inverse {
		return u.Scale
	}
	return 0
}

// dimensionsOf returns the possible meanings of groups of words that divide one another, nil if
// they state no known unit. per is the scope that the path before them states.
func dimensionsOf(over [][]string, per string) []dimension {
	q := quantityOf(over[0])
	per = cmp.Or(q.per, per)
	time, each := q.over, ""
	for _, part := range over[1:] {
		if len(part) == 0 {
			return nil
		}
		kind := kindOf(part[0])
		switch by := secondsOf(part[0]); {
		case by > 0 && time == 0:
			time = by
		case kind == perDevice || kind == perNode:
			per = kind
		case kind == "steps" || kind == "epochs" || kind == "samples" || kind == "tokens" || kind == "requests":
			each = kind
		default:
			return nil
		}
		if len(part) > 1 && kindOf(part[1]) == perDevice { // "img/sec GPU"
			per = perDevice
		}
	}
	one := func(base string, scale float64) dimension { return dimension{unit{base: base, scale: scale}, per} }
	steps := dimension{unit{base: "samples/s", scale: 1, steps: true}, per}
	switch {
	case q.times != "": // GPU-hours
		return []dimension{one(q.times+"-seconds", q.seconds)}
	case q.seconds > 0 && time == 0 && each == "steps":
		steps.scale, steps.each = q.seconds, true
		return []dimension{steps, one("s", q.seconds)}
	case q.seconds == 1 && q.kind == "steps" && len(over) == 1: // "iter_s": a time, or iterations/s
		return []dimension{one("s", 1), steps}
	case q.seconds > 0 && time == 0:
		return []dimension{one("s", q.seconds)}
	case q.kind == "share" && time == 0:
		return []dimension{one("", q.scale)}
	case q.kind == "steps" && time > 0 && each == "":
		steps.scale = q.scale / time
		return []dimension{steps}
	case perSecond[q.kind] != "" && time > 0 && each == "":
		return []dimension{one(perSecond[q.kind], q.scale/time)}
	case q.kind == "" && q.seconds == 0 && time == 0 && each == "" && per != "" && len(over) > 1:
		return []dimension{one(anyBase, 1)}
	}
	return nil
}

// perSecond maps quantities to the units of their rates.
var perSecond = map[string]string{"samples": "samples/s", "tokens": "tokens/s", "steps": "steps/s", "requests": "requests/s", "B": "B/s", "FLOP": "FLOP/s", "epochs": "epochs/s"}

// A quantity is the meaning of the words before a division sign.
type quantity struct {
	kind    string  // "samples", …, "share"; "" if unknown
	scale   float64 // its SI prefix
	seconds float64 // length of the unit of time that the words end with; 0 without one
	over    float64 // length of a unit of time that follows without a division sign, as in img_s
	times   string  // quantity that a time is multiplied by: "device" for GPU-hours
	per     string  // scope, as in img_s_gpu
}

// quantityOf parses the words before a division sign. The last words state the unit.
func quantityOf(list []string) quantity {
	at := func(i int) string { return slices.Concat([]string{"", "", "", ""}, list)[len(list)+4-i] }
	per := ""
	if kindOf(at(1)) == perDevice && secondsOf(at(2)) == 1 && countable(at(3)).kind != "" {
		per, list = perDevice, list[:len(list)-1]
	}
	by, before := secondsOf(at(1)), countable(at(2))
	switch kind := kindOf(at(2)); {
	case by == 3600 && (kind == perDevice || kind == perNode):
		return quantity{seconds: by, times: kind}
	case by == 1 && (before.kind == "samples" || before.kind == "tokens" || before.kind == "requests"):
		return quantity{kind: before.kind, scale: before.scale, over: by, per: per}
	case by > 0:
		return quantity{kind: before.kind, seconds: by}
	}
	q := countable(at(1))
	if prefix := prefixOf(at(2)); prefix > 0 && perSecond[q.kind] != "" {
		q.scale *= prefix // "k img"
	}
	return q
}

// countable parses a word that may begin with an SI prefix: "kimg", "MB", "%".
func countable(word string) quantity {
	switch word { // llm-foundry
	case "T":
		return quantity{kind: "tokens", scale: 1}
	case "S":
		return quantity{kind: "samples", scale: 1}
	}
	if word == "%" {
		return quantity{kind: "share", scale: 0.01}
	}
	if kind := vocabulary[strings.ToLower(word)]; kind == "share" && strings.HasPrefix(strings.ToLower(word), "p") {
		return quantity{kind: kind, scale: 0.01}
	} else if kind == "share" || perSecond[kind] != "" {
		return quantity{kind: kind, scale: 1}
	}
	if u, known := number.ParseUnit(word); known && perSecond[u.Base] != "" {
		return quantity{kind: u.Base, scale: u.Scale}
	}
	if len(word) > 1 && prefixOf(word[:1]) > 0 && perSecond[vocabulary[strings.ToLower(word[1:])]] != "" { // kframes
		return quantity{kind: vocabulary[strings.ToLower(word[1:])], scale: prefixOf(word[:1])}
	}
	return quantity{scale: 1}
}
