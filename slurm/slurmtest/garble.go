package slurmtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// odd lists unexpected field values.
var odd = []string{
	"", "-1", "9223372036854775808", "1e308", "NaN", "\x1b[31m", "\u202e", "\x00", "\xff", "%s%n", "Unknown", "INVALID", "1970-01-01T00:00:00",
	"node[1-99999999]", "node[", strings.Repeat("a", 5000), "$(id)", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "WHATEVER", "-1:-1", "999999999999:1",
	"1_[0-99999999]", "1.batch", "\n", "\r\n", "|", "\x1f",
}

// garble buffers a command's output until finish corrupts it. Each call is corrupted differently, but the same
// way in every test with that seed.
func (f *fake) garble() (finish func(status int) int, err error) {
	text, err := os.ReadFile(filepath.Join(f.dir, "garble"))
	if err != nil {
		return nil, err
	}
	seed, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil, err
	}
	calls, err := os.ReadFile(filepath.Join(f.dir, "log"))
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, uint64(bytes.Count(calls, []byte("\n")))))
	out, stdout := new(bytes.Buffer), f.stdout
	f.stdout = out
	return func(status int) int {
		if r.IntN(10) == 0 {
			io.WriteString(f.stderr, odd[r.IntN(len(odd))])
			return 1 + r.IntN(255)
		}
		lines := strings.SplitAfter(out.String(), "\n")
		for i, line := range lines {
			fields := strings.Split(line, "\x1f")
			switch r.IntN(8) {
			case 0, 1:
				fields[r.IntN(len(fields))] = odd[r.IntN(len(odd))]
			case 2:
				fields = fields[:r.IntN(len(fields))]
			case 3:
				fields = append(fields, odd[r.IntN(len(odd))])
			case 4:
				fields[0] = odd[r.IntN(len(odd))] + "\n" + fields[0]
			}
			lines[i] = strings.Join(fields, "\x1f")
		}
		io.WriteString(stdout, strings.Join(lines, ""))
		return status
	}, nil
}
