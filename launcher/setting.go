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

// setting is what a site has a framework's program started with, for the
// fingerprint of the run. Processes of this machine get its interpreter and its
// variables alone, a batch script all. Shell lines and variables may hold
// secrets: their digests are made with the key, and without it they are unknown.
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

// keyed is a text of digests, "" where there was no key to make them with.
func keyed(key redact.Key, text string) string {
	if len(key) == 0 {
		return ""
	}
	return text
}
