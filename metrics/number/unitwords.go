package number

import (
	"regexp"
	"strings"
)

// The words of units, in lower case where letters may have either case.
var (
	times = map[string]float64{
		"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
		"ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
		"us": 1e-6, "µs": 1e-6, "usec": 1e-6, "usecs": 1e-6, "micros": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
		"ns": 1e-9, "nsec": 1e-9, "nsecs": 1e-9, "nanos": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9,
		"min": 60, "mins": 60, "minute": 60, "minutes": 60,
		"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
		"d": 86400, "day": 86400, "days": 86400,
		"sekunde": 1, "sekunden": 1, "seconde": 1, "secondes": 1, "segundo": 1, "segundos": 1, "minuten": 60, "minuto": 60, "minutos": 60,
		"ora": 3600, "ore": 3600, "минут": 60, "мин": 60, "час": 3600, "часов": 3600, "сек": 1, "мс": 1e-3, "秒": 1, "秒钟": 1, "毫秒": 1e-3, "ミリ秒": 1e-3, "分": 60, "分钟": 60, "分鐘": 60, "小时": 3600, "小時": 3600,
		"stunde": 3600, "stunden": 3600, "heure": 3600, "heures": 3600, "hora": 3600, "horas": 3600, "tag": 86400, "tage": 86400, "jour": 86400, "jours": 86400,
	}
	// kinds maps words to the quantity, scope or share that they name.
	kinds = wordKinds(map[string]string{
		"samples":  "sample samples img imgs image images example examples ex seq seqs sequence sequences record records item items frame frames bild bilder sentence sentences utterance utterances video videos clip clips",
		"tokens":   "tok toks token tokens",
		"requests": "req reqs request requests query queries inference inferences infer infers answer answers response responses",
		"steps":    "it its iter iters iteration iterations step steps batch batches minibatch minibatches update updates",
		"epochs":   "epoch epochs",
		PerDevice:  "gpu gpus device devices dev worker workers rank ranks card cards chip chips accelerator accelerators tpu tpus npu npus hpu hpus gcd gcds core cores process processes proc procs replica replicas xpu tile tiles karte karten carte cartes",
		PerNode:    "node nodes host hosts machine machines server servers instance instances box boxes knoten nodo nodos",
		share:      "% pct percent percentage share fraction ratio x",
	})
	prefixes = map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
	binaries = map[string]float64{"Ki": 1 << 10, "ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}
	// spelled maps prefixes in words to their factors; a quantity must follow them.
	spelled = map[string]float64{"tsd": 1e3, "mio": 1e6, "mln": 1e6, "mrd": 1e9, "kilo": 1e3, "thousand": 1e3, "thousands": 1e3, "mega": 1e6, "million": 1e6, "millions": 1e6, "giga": 1e9, "billion": 1e9, "billions": 1e9, "tera": 1e12, "peta": 1e15}
	// initials expands abbreviated rates. The quantity of an ambiguous one is unknown
	// ("?"): ips may count images, items, inferences or iterations.
	initials = map[string]string{"tps": "tokens/s", "tgs": "tokens/s/gpu", "sgs": "samples/s/gpu", "fps": "frames/s", "rps": "requests/s", "qps": "requests/s", "ips": "?/s", "sps": "?/s", "wps": "?/s"}
	// endings are units that take a prefix: MB, Gbit, TFLOPS.
	endings = []struct {
		text, base string
		scale      float64
	}{
		{"Bps", "B/s", 1}, {"bps", "B/s", 0.125}, {"bits", "B", 0.125}, {"bit", "B", 0.125}, {"bytes", "B", 1}, {"byte", "B", 1}, {"B", "B", 1}, {"b", "B", 0.125},
		{"Wh", "J", 3600}, {"J", "J", 1}, {"W", "W", 1},
	}
)

const share = "share"

// anyCase matches units of data in the wrong case, where b may mean bits or bytes. An i means bytes.
var anyCase = regexp.MustCompile(`^(?i:([kmgt])(i?)b(it|yte)?s?(ps)?)$`)

var flops = regexp.MustCompile(`^([kKMGTP]?)(?i:flop)([sS]?)$`)

func wordKinds(list map[string]string) map[string]string {
	all := map[string]string{}
	for kind, text := range list {
		for word := range strings.FieldsSeq(text) {
			all[word] = kind
		}
	}
	return all
}

// Kind returns the quantity that a word counts, such as "samples", "tokens" or "B",
// or PerDevice or PerNode; "" for other words.
func Kind(word string) string {
	if kind := kinds[strings.ToLower(word)]; kind != "" {
		return kind
	}
	if w := counted(word); w.scale == 1 && (w.base == "B" || w.base == "FLOP") {
		return w.base
	}
	return ""
}

func isScope(word string) bool {
	kind := Kind(word)
	return kind == PerDevice || kind == PerNode
}

// TimeUnit returns the length of a unit of time in seconds; 0 for other words.
func TimeUnit(word string) float64 {
	if len(word) == 1 { // single capital letters have other meanings: S, H, D
		return times[word]
	}
	return times[strings.ToLower(word)]
}

// Prefix returns the factor of an SI prefix, as a letter or in words; 0 for other
// words.
func Prefix(word string) float64 {
	if p := prefixes[word]; p > 0 {
		return p
	}
	return spelled[strings.ToLower(word)]
}

// A wordUnit is the meaning of one word of a unit.
type wordUnit struct {
	base  string // "samples", "B", "FLOP/s"; "" for a share or a bare prefix
	scale float64
	bare  bool // the word is only a prefix
	// wrongCase is true for units of data such as mb and gib, which are units only in rates; unclear
	// if they may be in bits.
	wrongCase, unclear bool
}

// counted parses a word that is not a time: a quantity with or without a prefix, or a
// bare prefix. The scale is 0 for other words.
func counted(word string) wordUnit {
	if p, is := prefixes[word]; is {
		return wordUnit{scale: p, bare: true}
	}
	if q := quantity(word); q != "" {
		return wordUnit{base: q, scale: 1}
	}
	for _, one := range endings {
		prefix, is := strings.CutSuffix(word, one.text)
		switch p, known := prefixes[prefix]; {
		case !is:
			continue
		case prefix == "" && one.text != "b": // "kb" and "b" may mean bits or bytes
			return wordUnit{base: one.base, scale: one.scale}
		case known && !(one.text == "b" && prefix == "k"):
			return wordUnit{base: one.base, scale: p * one.scale}
		case binaries[prefix] > 0:
			return wordUnit{base: one.base, scale: binaries[prefix] * one.scale}
		}
	}
	if m := flops.FindStringSubmatch(word); m != nil {
		w := wordUnit{base: "FLOP", scale: 1}
		if m[2] != "" {
			w.base = "FLOP/s"
		}
		if m[1] != "" {
			w.scale = prefixes[m[1]]
		}
		return w
	}
	if m := anyCase.FindStringSubmatch(word); m != nil {
		w := wordUnit{base: "B", scale: prefixes[strings.ToUpper(m[1])], wrongCase: true, unclear: m[2]+m[3] == ""}
		if m[2] != "" {
			w.scale = binaries[strings.ToUpper(m[1])+"i"]
		}
		if strings.EqualFold(m[3], "it") {
			w.scale /= 8
		}
		if m[4] != "" {
			w.base = "B/s"
		}
		return w
	}
	if len(word) > 2 && prefixes[word[:1]] > 0 {
		if q := quantity(word[1:]); q != "" {
			return wordUnit{base: q, scale: prefixes[word[:1]]}
		}
	}
	return wordUnit{}
}

// quantity returns what a word counts: "samples" to "epochs"; "" for other words.
func quantity(word string) string {
	switch kind := kinds[strings.ToLower(word)]; kind {
	case PerDevice, PerNode, share:
		return ""
	default:
		return kind
	}
}
