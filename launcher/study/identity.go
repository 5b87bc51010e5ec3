package study

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// asksOnly reports whether the key only affects how a finished run is evaluated. Such keys
// are those that say how its output is read, and targets, unless targets end the run or the
// user's program receives them.
func (p *Point) asksOnly(path string) bool {
	return slices.Contains(measure.ReadingKeys(), path) || slices.Contains(measure.AnnotationKeys(), path) || path == measure.TargetsKey && p.Workload.Trains() && p.Workload.Train.Until != "targets" && !slices.Contains(p.Command.Uses, path)
}

// identity returns the point's ID: a readable prefix and a hash of the keys that differ
// from their defaults. Secrets are replaced by keyed digests before hashing. Otherwise
// somebody who sees the ID and knows the other keys could test guesses of a secret against
// it.
func (x *expansion) identity(p *Point) string {
	var lines []string
	for path, text := range keyTexts(p) {
		skip := (slices.Contains(measure.BoundKeys(), path) || p.asksOnly(path)) && !slices.ContainsFunc(x.study.axes, func(a axis) bool { return a.path == path })
		if text != x.defaults[path] && !skip {
			lines = append(lines, path+"="+text)
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return fmt.Sprintf("%s-w%d-%s", p.Framework, p.Workers, hex.EncodeToString(sum[:5]))
}

// keyTexts returns the values of the point's keys as JSON, by TOML path.
func keyTexts(p *Point) map[string]string {
	fields := p.fields()
	texts := make(map[string]string, len(fields))
	for _, f := range fields {
		if !p.has(f) {
			continue
		}
		text, err := json.Marshal(f.in(p).Interface())
		if err != nil {
			// This cannot happen, since earlier checks reject NaN and infinities.
			panic(fmt.Sprintf("study: %s cannot be written: %v", f.path, err))
		}
		texts[f.path] = string(text)
	}
	return texts
}

// Parameters returns the values of the point's keys, by TOML path, in the types that the
// database stores: string, int64, float64, bool, or []any of these. It omits keys without a
// value and keys that the run's program does not receive.
func (p *Point) Parameters() map[string]any {
	fields := p.fields()
	m := make(map[string]any, len(fields))
	texts := keyTexts(p)
	for _, f := range fields {
		text, ok := texts[f.path]
		if !ok || !p.Reaches(f.path) {
			continue
		}
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err == nil && v != nil {
			m[f.path] = plain(v)
		}
	}
	if n := p.sampleTokens(); n > 0 {
		m[measure.SampleTokensKey] = int64(n)
	}
	if c, err := measure.FindConvention(p.Workload.Train.MFU); err == nil && p.Workload.Trains() {
		if flops, err := c.FLOPs(p.Architecture); err == nil {
			m[measure.FLOPsPerTokenKey] = flops
		}
		if flops, err := c.HardwareFLOPs(p.Architecture, p.recomputes()); err == nil {
			m[measure.HardwareFLOPsPerTokenKey] = flops
		}
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		x, _ := v.Float64() // no error: the text was made from a float64
		return x
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}
