package main

// overriddenStudy are the operands of the commands that take a study whose keys
// can be set on the command line.
const overriddenStudy = "STUDY [KEY=VALUE...]"

const overrideHelp = "KEY=VALUE overrides a key of the study file for this plan: batch=64,\n" +
	"workload.epochs=2, 'sweep.workers=[1,2]'. Give a key by its path, or by the last part\n" +
	"of the path if that is unique; a value is TOML, or a bare word. Setting a key ends its\n" +
	"sweep, and sweeping a key replaces its single value."

// onCommandLine begins what is told of such a key.
const onCommandLine = "set on the command line: "

// tellOverrides says which keys are not as the file has them.
func (s *session) tellOverrides(w *work) {
	for _, o := range w.study.Overrides {
		s.note(onCommandLine+"%v", o)
	}
}
