package main

// overriddenStudy are the operands of the commands that take a study whose keys
// can be set on the command line.
const overriddenStudy = "STUDY [KEY=VALUE...]"

const overrideHelp = "KEY=VALUE sets a key of the study in place of its file, for this plan: batch=64,\n" +
	"workload.epochs=2, 'sweep.workers=[1,2]'. A key goes by its path, or by the last part\n" +
	"of it where only one key has it; a value is TOML, or a word. What is set is no longer\n" +
	"swept, and what is swept no longer set."

// onCommandLine begins what is told of such a key.
const onCommandLine = "set on the command line: "

// tellOverrides says which keys are not as the file has them.
func (s *session) tellOverrides(w *work) {
	for _, o := range w.study.Overrides {
		s.note(onCommandLine+"%v", o)
	}
}
