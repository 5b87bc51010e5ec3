package launcher

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// setting returns how a site starts a framework's program, for the run's fingerprint. Processes on this machine
// only use its interpreter and variables; a batch script uses everything. Shell lines and variables may contain
// secrets, so they are recorded as digests made with the key; without a key they are unknown.
func setting(site *study.Site, f framework.Framework, key redact.Key, batch bool) *metrics.Setting {
	s := metrics.Setting{Container: metrics.None, Modules: metrics.None, Setup: metrics.None, Environment: metrics.None}
	if f.Programs != nil {
		s.Python = site.Stage.Python
	}
	if len(site.Environment) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(site.Environment)) {
			list = append(list, name+"="+key.Hide(site.Environment[name]))
		}
		s.Environment = keyed(key, strings.Join(list, " "))
	}
	if !batch {
		return &s
	}
	if c := site.Container; c.Image != "" {
		s.Container = redact.Text(strings.Join(append([]string{c.Runtime, c.Image}, c.Mounts...), " "))
	}
	s.Modules = cmp.Or(strings.Join(site.Modules, " "), metrics.None)
	if len(site.Setup) > 0 {
		s.Setup = keyed(key, key.Hide(strings.Join(site.Setup, "\n")))
	}
	return &s
}

// keyed returns a text with keyed digests of the values, or "" without a key.
func keyed(key redact.Key, text string) string {
	if len(key) == 0 {
		return ""
	}
	return text
}
