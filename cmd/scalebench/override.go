package main

import "github.com/scalebench/scalebench/launcher/workspace"

// overriddenStudy names the operands of commands that take a study and overrides of its
// keys.
const overriddenStudy = "STUDY [KEY=VALUE...]"

const overrideHelp = "KEY=VALUE sets a key of the study file for this command: batch=64, workload.epochs=2,\n" +
	"'sweep.workers=[1,2]'. Write the key's path, or the last part of the path if that is\n" +
	"unique. A value is TOML, or a bare word. If you set a key, the file's sweep of it is\n" +
	"ignored; if you sweep a key, its single value in the file is ignored."

// noteOverrides prints which keys differ from the study file.
func (s *session) noteOverrides(w *workspace.Work) {
	for _, line := range w.Overridden() {
		s.note("%s", line)
	}
}
