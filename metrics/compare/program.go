package compare

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// commandKey is the parameter that holds the user's program; commandFramework is its
// framework.
const commandKey, commandFramework = "command.run", "command"

const otherProgram = "run different programs"

// otherPrograms returns why the sets cannot be compared: their runs started different programs,
// whose work may differ. It returns "" if both started the same program, with any options, or a
// program of a framework.
func otherPrograms(a, b []scaling.Observation) string {
	x, y := programs(a), programs(b)
	if len(x) == 0 && len(y) == 0 || slices.ContainsFunc(x, func(p string) bool { return slices.Contains(y, p) }) {
		return ""
	}
	name := func(list []string) string {
		if len(list) == 0 {
			return "no command"
		}
		return few(list)
	}
	return fmt.Sprintf("A and B "+otherProgram+" (%s; %s), so a ratio says nothing about either; --mix compares them anyway", name(x), name(y))
}

// programs returns the distinct programs of a set's commands, sorted.
func programs(list []scaling.Observation) []string {
	var all []string
	for _, o := range list {
		var words []string
		switch run := o.Parameters[commandKey].(type) {
		case []any:
			for _, w := range run {
				words = append(words, fmt.Sprint(w))
			}
		case string:
			words = strings.Fields(run)
		}
		if name := program(words); name != "" && o.Framework == commandFramework {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// starter matches programs that only start another program.
var starter = regexp.MustCompile(`^(python|pypy)[0-9.]*$|^(ba|da|z|k)?sh$|^(env|exec|nice|time|numactl|taskset|Rscript|perl|ruby|node|julia|java|mpirun|mpiexec|srun|torchrun|accelerate|deepspeed|horovodrun)$`)

// program returns the program in a command line without interpreters, launchers,
// options and folder: "train.py" for "python3 -u /home/me/train.py --lr 1".
func program(words []string) string {
	for i, w := range words {
		base := path.Base(w)
		switch {
		case w == "-c" || w == "-m":
			return strings.Join(words[i+1:min(i+2, len(words))], "")
		case strings.HasPrefix(w, "-") || starter.MatchString(base) || w == "launch" || i > 0 && strings.Contains(w, "=") && !strings.Contains(w, "/"):
		case i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.Contains(w, ".") && !strings.Contains(w, "/"): // an option's value
		default:
			return base
		}
	}
	return strings.Join(words, " ")
}
