package version

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	git := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "4342de4"}, {Key: "vcs.modified", Value: modified}}
	}
	for _, test := range []struct {
		name, stamped string
		main          string
		settings      []debug.BuildSetting
		want          string
	}{
		{"go build in a checkout", "", "v0.1.1-0.20261121024800-4342de4", git("true"), "v0.1.1-0.20261121024800-4342de4 (commit 4342de4, modified) go1.26.8"},
		{"go install of a release", "", "v1.0.0", nil, "v1.0.0 go1.26.8"},
		{"go build in a tarball", "", "(devel)", nil, "unreleased (commit unknown: built outside git) go1.26.8"},
		{"make release", "v1.0.0", "v1.0.0", git("false"), "v1.0.0 (commit 4342de4) go1.26.8"},
		{"make release in a tarball", "v1.0.0", "(devel)", nil, "v1.0.0 go1.26.8"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: test.main}, Settings: test.settings}
		if got := describe(test.stamped, info); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
