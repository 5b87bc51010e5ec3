package number

import (
	"regexp"
	"strings"
)

// A Unit is a unit of a number: a prefix, a quantity and a time. Scale converts it to
// the base unit.
type Unit struct {
	Base  string  // "s", "B", "tokens/s", "tokens"; "" for a fraction or a plain number
	Scale float64 // multiply by it to get Base; for an Inverse unit, the seconds of its time
	// Inverse reports a time per item, as in ms/step; Base is then the unit of the
	// rate.
	Inverse bool
	// PerDevice reports a value per device, rank or worker, as in tokens/s/GPU.
	PerDevice bool
	// Bare reports that the unit names no quantity, as in 12K or 3.1M/s; Base is then
	// "" or "/s".
	Bare bool
}

// IsRate reports whether the unit is a rate or its inverse, a time per item.
func (u Unit) IsRate() bool { return strings.HasSuffix(u.Base, "/s") }

var (
	times = map[string]float64{
		"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
		"ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
		"us": 1e-6, "µs": 1e-6, "usec": 1e-6, "usecs": 1e-6, "micros": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
		"ns": 1e-9, "nsec": 1e-9, "nsecs": 1e-9, "nanos": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9,
		"min": 60, "mins": 60, "minute": 60, "minutes": 60,
		"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
		"d": 86400, "day": 86400, "days": 86400,
	}
	quantities = map[string]string{
		"sample": "samples", "samples": "samples", "img": "samples", "imgs": "samples", "image": "samples", "images": "samples",
		"example": "samples", "examples": "samples", "ex": "samples", "seq": "samples", "seqs": "samples", "sequence": "samples", "sequences": "samples",
		"tok": "tokens", "toks": "tokens", "token": "tokens", "tokens": "tokens",
		"req": "requests", "reqs": "requests", "request": "requests", "requests": "requests",
		"it": "steps", "its": "steps", "iter": "steps", "iters": "steps", "iteration": "steps", "iterations": "steps",
		"step": "steps", "steps": "steps", "batch": "steps", "batches": "steps", "update": "steps", "updates": "steps",
	}
	devices = map[string]bool{
		"gpu": true, "gpus": true, "device": true, "devices": true, "rank": true, "ranks": true, "worker": true, "workers": true,
		"chip": true, "chips": true, "accelerator": true, "accelerators": true, "tpu": true, "npu": true, "xpu": true, "hpu": true, "card": true,
	}
	prefixes = map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
	binaries = map[string]float64{"Ki": 1 << 10, "ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}

	perWord = regexp.MustCompile(`(?i)[\s_-]+per[\s_-]+`)
	slashed = regexp.MustCompile(`\s*/\s*`)
	flops   = regexp.MustCompile(`^([kKMGTP]?)(?i:flop)([sS]?)(/s|/sec)?$`)
)

// ParseUnit reads a unit as programs write it: ms, GiB, ktok/s, img/sec/GPU,
// tokens_per_second, s/it, %, K. ok is false if the text is not a unit.
func ParseUnit(text string) (u Unit, ok bool) {
	text = strings.ReplaceAll(strings.TrimSpace(text), "μ", "µ")
	for _, pair := range []string{"()", "[]"} {
		if strings.HasPrefix(text, pair[:1]) && strings.HasSuffix(text, pair[1:]) && len(text) > 2 {
			text = strings.TrimSpace(text[1 : len(text)-1])
		}
	}
	text = slashed.ReplaceAllString(perWord.ReplaceAllString(text, "/"), "/")
	switch strings.ToLower(text) {
	case "%", "pct", "percent":
		return Unit{Scale: 0.01}, true
	case "fraction", "x":
		return Unit{Scale: 1}, true
	case "rps", "qps":
		return Unit{Base: "requests/s", Scale: 1}, true
	case "tps":
		return Unit{Base: "tokens/s", Scale: 1}, true
	}
	parts := strings.Split(text, "/")
	if parts[0] == "" && len(parts) == 1 {
		return u, false
	}
	for i := len(parts) - 1; i > 0; i-- {
		if devices[strings.ToLower(parts[i])] && !u.PerDevice {
			u.PerDevice = true
			parts = append(parts[:i], parts[i+1:]...)
		}
	}
	if m := flops.FindStringSubmatch(strings.Join(parts, "/")); m != nil {
		u.Base, u.Scale = "FLOP", 1
		if m[2] != "" || m[3] != "" {
			u.Base = "FLOP/s"
		}
		if m[1] != "" {
			u.Scale = prefixes[m[1]]
		}
		return u, true
	}
	switch len(parts) {
	case 1:
		u.Base, u.Scale, u.Bare, ok = counted(parts[0])
		if t, timed := timeUnit(parts[0]); timed {
			u.Base, u.Scale, u.Bare, ok = "s", t, false, true
		}
		return u, ok
	case 2:
		if each, timed := timeUnit(parts[1]); timed {
			if parts[0] == "" {
				u.Base, u.Scale, u.Bare = "/s", 1/each, true
				return u, true
			}
			base, scale, bare, known := counted(parts[0])
			u.Base, u.Scale, u.Bare = base+"/s", scale/each, bare
			return u, known
		}
		seconds, timed := timeUnit(parts[0])
		base, scale, bare, known := counted(parts[1])
		if timed && known && !bare && base != "B" {
			u.Base, u.Scale, u.Inverse = base+"/s", seconds/scale, true
			return u, true
		}
	}
	return Unit{}, false
}

// timeUnit returns the length of a unit of time in seconds.
func timeUnit(word string) (seconds float64, ok bool) {
	if len(word) == 1 { // single capital letters have other meanings: S, H, D
		seconds, ok = times[word]
		return seconds, ok
	}
	seconds, ok = times[strings.ToLower(word)]
	return seconds, ok
}

// counted reads a word that is not a time: a quantity with or without a prefix, or a
// bare prefix.
func counted(word string) (base string, scale float64, bare, ok bool) {
	if p, is := prefixes[word]; is {
		return "", p, true, true
	}
	if q, is := quantities[strings.ToLower(word)]; is {
		return q, 1, false, true
	}
	for _, one := range []struct {
		suffix, base string
		scale        float64
	}{{"Bps", "B/s", 1}, {"bps", "B/s", 0.125}, {"bits", "B", 0.125}, {"bit", "B", 0.125}, {"bytes", "B", 1}, {"byte", "B", 1}, {"B", "B", 1}, {"b", "B", 0.125},
		{"Wh", "J", 3600}, {"J", "J", 1}, {"W", "W", 1}} {
		prefix, is := strings.CutSuffix(word, one.suffix)
		switch p, known := prefixes[prefix]; {
		case !is:
			continue
		case prefix == "" && one.suffix != "b": // "kb" and "b" may mean bits or bytes
			return one.base, one.scale, false, true
		case known && !(one.suffix == "b" && prefix == "k"):
			return one.base, p * one.scale, false, true
		case binaries[prefix] > 0:
			return one.base, binaries[prefix] * one.scale, false, true
		}
	}
	if len(word) > 2 {
		if p, is := prefixes[word[:1]]; is {
			if q, is := quantities[strings.ToLower(word[1:])]; is {
				return q, p, false, true
			}
		}
	}
	return "", 0, false, false
}

// In converts x from unit u to unit v. ok is false if the units measure different
// things. A bare prefix is taken to count v; if v has a prefix, the bare one replaces
// it.
func (u Unit) In(v Unit, x float64) (y float64, ok bool) {
	switch {
	case u.Bare && u.Base == "":
		if v.Base == "s" || v.Inverse || v.Scale < 1 {
			return x * u.Scale, true
		}
		return x * u.Scale / v.Scale, true
	case u.Bare:
		return x * u.Scale / v.Scale, v.IsRate() && !v.Inverse
	case v.Bare || u.Base != v.Base:
		return 0, false
	case u.Inverse == v.Inverse:
		return convert(x, u.Scale, v.Scale), true
	}
	return 1 / (x * u.Scale * v.Scale), true
}

// convert divides where that is exact: 20006 µs are 0.020006 s.
func convert(x, from, to float64) float64 {
	switch {
	case from == to:
		return x
	case from < to && to/from == float64(int64(to/from)):
		return x / (to / from)
	case from < to && from < 1 && to == 1:
		if parts := float64(int64(1/from + 0.5)); 1/parts == from {
			return x / parts
		}
	}
	return x * from / to
}
