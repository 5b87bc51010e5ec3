package workspace

import (
	"strings"
	"testing"
)

// A study is named after the program or script and its arguments; the name is always a valid folder name.
func TestNameOf(t *testing.T) {
	for command, want := range map[string]string{
		"python train.py --lr 0.1":            "train-lr-0.1",
		"/usr/bin/python3.11 -u a/b/train.py": "train",
		"./train --x=1,2":                     "train-x-1-2",
		"sh -c echo":                          "echo",
		"python":                              "python",
		"python -":                            "command",
		"--":                                  "command",
		"x " + strings.Repeat("ab-", 40):      "x-" + strings.Repeat("ab-", 15) + "a",
		"träin.sh":                            "tr-in",
	} {
		got := nameOf(strings.Fields(command))
		if want := strings.TrimRight(want, "-"); got != want {
			t.Errorf("%q is named %q, want %q", command, got, want)
		}
	}
}
