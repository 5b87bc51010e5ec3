package worker

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/clean"
)

// This file finds why a program failed from the end of its output, and what can be done about it. It only
// processes text; callers handle secrets.

// DiagnosedTail is the number of bytes read from the end of a log: enough for the traceback of a deep stack and a
// launcher's messages after it.
const DiagnosedTail = 64 << 10

// longest is the maximum length of a cause, in bytes; a message may hold a whole batch.
const longest = 300

var (
	// A frame of a Python traceback, or of a syntax error. torch prints each
	// rank's once more, with its number before each line.
	frame = regexp.MustCompile(`^\s+File "([^"]+)", line (\d+)`)
	rank  = regexp.MustCompile(`^\[rank\d+\]:\s?`)
	// Terminal control sequences: colours, and text that a progress bar overwrote.
	escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)
	// library lists parts of paths that mark files of installed packages, which are not the user's
	// own.
	library = regexp.MustCompile(`/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<`)
	// summaries matches exceptions by which a launcher reports another exception.
	summaries = regexp.MustCompile(`ChildFailedError|^subprocess\.CalledProcessError|^SystemExit`)
	// complaint matches a line that reports an error.
	complaint = regexp.MustCompile(`(?i)error|exception|cannot|can't|could not|not found|no such|denied|fatal|fail|abort|invalid|killed|unable|refused|exceed|usage:|missing|out of memory|in use`)
)

// longestPlace is the length in bytes of the longest file name and line that are
// shown with an exception.
const longestPlace = 90

// diagnose returns why a program failed, judging by the end of its output: the last exception
// with the line of the user's file that raised it, "KeyError: 'labels' (train.py:31)", else
// the last line; "" if it printed nothing.
func diagnose(output string) string {
	lines := plain(output)
	if what, where := exception(lines); what != "" {
		if where = bounded(where); len(where) > longestPlace { // a generated name
			return bounded(what)
		}
		return bounded(what) + " (" + where + ")"
	}
	lines, boxed := unboxed(lines)
	if boxed.why != "" {
		return bounded(boxed.why)
	}
	return cmp.Or(lastWords(lines, boxed.summary != ""), bounded(boxed.summary))
}

// exception returns the last exception that is not a launcher's summary of another, and where
// it was raised; "": none.
func exception(lines []string) (what, where string) {
	for i := 0; i < len(lines); i++ {
		if !frame.MatchString(lines[i]) {
			continue
		}
		frames := 0
		for i+frames < len(lines) && inTraceback(lines[i+frames]) {
			frames++
		}
		place := raisedAt(lines[i : i+frames])
		i += frames
		if i < len(lines) && (what == "" || !summaries.MatchString(lines[i])) {
			what, where = lines[i], place
		}
	}
	return what, where
}

// inTraceback reports whether a line is between a traceback's first frame and its exception.
func inTraceback(line string) bool { return line == "" || line[0] == ' ' || line[0] == '\t' }

// raisedAt returns the last line of a traceback that is in one of the user's files, or else the
// last line.
func raisedAt(traceback []string) string {
	last, users := "", ""
	for _, line := range traceback {
		if m := frame.FindStringSubmatch(line); m != nil {
			last = path.Base(m[1]) + ":" + m[2]
			if !library.MatchString(m[1]) {
				users = last
			}
		}
	}
	return cmp.Or(users, last)
}

// lastWords returns the last line that is not empty; with complaints, the last one that reports
// an error. "" if none exists.
func lastWords(lines []string, complaints bool) string {
	for _, line := range slices.Backward(lines) {
		switch last := strings.TrimSpace(line); {
		case complaint.MatchString(last):
			return bounded(last)
		case last != "" && !complaints: // the line may be older than the failure
			return "its last output was: " + bounded(last)
		}
	}
	return ""
}

// boxes are the messages that MPI launchers print between two rules: why something cannot start,
// and a summary that a process has ended. The program itself may say more.
type boxes struct{ why, summary string }

var (
	// A rule of Open MPI, or of MPICH and Intel MPI.
	rule = regexp.MustCompile(`^(-{60,}|={60,})$`)
	// sums are the beginnings of summaries.
	sums = regexp.MustCompile(`^(Primary job|mpirun (detected|noticed)|prterun (detected|noticed)|MPI_ABORT was invoked|BAD TERMINATION)`)
	// launchers are words by which a box is known to be a launcher's.
	launchers = regexp.MustCompile(`\bMPI\b|MPI_|OMPI|ORTE|PRTE|PMIx|PMI\d?_|mpirun|prterun|not enough slots|remote daemon`)
	// afterwards matches what Open MPI prints outside boxes while it shuts down.
	afterwards = regexp.MustCompile(`^\*\*\* |Local abort before MPI_INIT|more processes? (has|have) sent help message|to see all help / error messages|YOUR APPLICATION TERMINATED`)
)

// unboxed separates the boxes from the other lines. Each box is reduced to its first paragraph; why
// is the last one that is not a summary.
func unboxed(lines []string) (left []string, b boxes) {
	for i := 0; i < len(lines); i++ {
		if !rule.MatchString(lines[i]) {
			if !afterwards.MatchString(lines[i]) {
				left = append(left, lines[i])
			}
			continue
		}
		end := i + 1
		for end < len(lines) && lines[end] != lines[i] {
			end++
		}
		if end == len(lines) { // without a box, it is an ordinary line of the program
			left = append(left, lines[i])
			continue
		}
		var words []string
		for _, line := range lines[i+1 : end] {
			line = strings.TrimSpace(strings.TrimLeft(line, "= "))
			if line == "" && len(words) > 0 {
				break
			}
			words = append(words, strings.Fields(line)...)
		}
		switch text := strings.Join(words, " "); {
		case text == "":
		case sums.MatchString(text):
			b.summary = text
		case launchers.MatchString(text):
			b.why = text
		default: // a table of the program's own
			left = append(left, lines[i:end]...)
			i = end - 1
			continue
		}
		i = end
	}
	if b.why == "" && b.summary == "" { // rules of the program's own output
		return lines, b
	}
	return left, b
}

// plain returns the lines of a text as a terminal shows them, without colours and rank prefixes.
func plain(text string) []string {
	lines := strings.Split(escapes.ReplaceAllString(text, ""), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		lines[i] = rank.ReplaceAllString(strings.TrimRight(line, " \t"), "")
	}
	return lines
}

// bounded returns a line that can be shown, shortened if necessary.
func bounded(line string) string {
	line = clean.Line(strings.ToValidUTF8(line, "\uFFFD"))
	if len(line) <= longest {
		return line
	}
	cut := longest
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

// slurms matches Slurm's lines in a job's log that say why it ended, the most informative first. Its messages
// about steps that it then ends add nothing.
var slurms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)exceeded memory limit|oom.?kill|out of memory`),
	regexp.MustCompile(`DUE TO `),
	regexp.MustCompile(`(?i)unable to|cannot |can't |invalid|failed`),
	regexp.MustCompile(`: task[s ].*: (?:Killed|Segmentation|Bus error|Aborted|Illegal|Floating)`),
	regexp.MustCompile(`CANCELLED AT`),
}

var speaker = regexp.MustCompile(`^(slurmstepd|srun|slurmd|slurm_script)(-[^:]*)?: (?:error: |fatal: )?`)

// DiagnoseSlurm returns Slurm's own message in a job's log about why the job ended, with the node:
// "node1: StepId=10.0 exceeded memory limit (… > …), being killed". It returns "" if there is no
// such message.
func DiagnoseSlurm(log string) string {
	best, place := "", len(slurms)
	for _, line := range plain(log) {
		m := speaker.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for i, s := range slurms[:place] {
			if s.MatchString(line) {
				words := strings.Trim(line[len(m[0]):], "* ")
				if node := strings.TrimPrefix(m[2], "-"); node != "" && !strings.Contains(words, node) {
					words = node + ": " + words
				}
				best, place = bounded(words), i
				break
			}
		}
	}
	return best
}

// IsOutOfMemory reports whether Slurm's message is about a memory limit. If no cgroup enforces the limit, only
// this message shows it: the job's state is FAILED.
func IsOutOfMemory(words string) bool { return slurms[0].MatchString(words) }

// IsConsequence reports whether Slurm's message only says that it ended a step, not why.
func IsConsequence(words string) bool {
	return strings.Contains(words, "CANCELLED AT") && !strings.Contains(words, "DUE TO")
}

// IsElsewhere reports whether a rank's message only says that another rank is gone; that rank's own message may
// say why.
func IsElsewhere(words string) bool { return strings.Contains(words, "its own log or events say why") }

// DiagnoseScript returns why a batch script ended, from the lines in the job's log that are not Slurm's: the
// script's last message, and what a command of the site printed before it.
func DiagnoseScript(log string) string {
	before := ""
	for _, line := range plain(log) {
		switch said, ours := strings.CutPrefix(line, "scalebench: "); {
		case line == "" || speaker.MatchString(line) || strings.HasPrefix(line, "scalebench-worker: rank"):
		case ours && before != "":
			return bounded(fmt.Sprintf("%s: %s", said, before))
		case ours:
			return bounded(said)
		default:
			before = line
		}
	}
	if before == "" {
		return ""
	}
	return bounded(before)
}
