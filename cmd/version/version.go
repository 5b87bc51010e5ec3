// Package version says which build of scalebench this is, the same way in every
// program of it.
package version

import (
	"fmt"
	"runtime/debug"
)

// stamped is set by the release build (-ldflags -X): the output of `git describe`, or the name that
// a packager chose.
var stamped string

// commit is stamped likewise into the programs of the GPU check.
var commit string

// String is the version, the commit if the build knows one, and the compiler:
// "v1.0.0 (commit 4342de4) go1.26.8".
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(stamped, info)
}

func describe(stamped string, info *debug.BuildInfo) string {
	version := stamped
	if version == "" {
		version = info.Main.Version
	}
	if version == "" || version == "(devel)" {
		version = "unreleased"
	}
	var revision, modified string
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if revision != "" {
		revision = fmt.Sprintf(" (commit %s%s)", revision, modified)
	} else if version == "unreleased" {
		revision = " (commit unknown: built outside git)"
	}
	compiler := info.GoVersion
	if compiler == "" {
		compiler = "by an unknown compiler"
	}
	return version + revision + " " + compiler
}

// Commit is the commit that the build stamped, with "-dirty" if its source was
// changed; "" if it stamped none.
func Commit() string { return commit }
