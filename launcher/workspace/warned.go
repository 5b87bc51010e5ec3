package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// remembered is the time within which a warning about data is not repeated in the same
// terminal or script.
const remembered = 10 * time.Minute

// Repeated reports which warnings a command on the same study printed recently in this
// terminal or script, and remembers them in the program's cache. If the file cannot be read or
// written, warnings are printed again, so errors are ignored.
func (w *Workspace) Repeated(program, study string, lines []string) []bool {
	repeated := make([]bool, len(lines))
	cache, err := os.UserCacheDir()
	if err != nil {
		return repeated
	}
	file := filepath.Join(cache, program, "warned.json")
	now := time.Now()
	all := map[string]int64{} // digest of a warning → Unix time when it was last due
	if content, err := sharedfs.ReadFile(file, 1<<20); err == nil {
		if json.Unmarshal(content, &all) != nil {
			all = map[string]int64{}
		}
	}
	maps.DeleteFunc(all, func(_ string, at int64) bool {
		age := now.Sub(time.Unix(at, 0))
		return age > remembered || age < -time.Minute
	})
	for i, line := range lines {
		key := w.digest(study, line)
		_, repeated[i] = all[key]
		all[key] = now.Unix()
	}
	content, err := json.Marshal(all)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return repeated
	}
	w.Whole(func() { _ = sharedfs.Write(file, content, 0o600) })
	return repeated
}

// digest identifies a warning about a study in a database, in this command's terminal or
// script.
func (w *Workspace) digest(study, line string) string {
	database, _ := w.Database()
	database, _ = filepath.Abs(database)
	script, _ := unix.Getsid(0)
	h := sha256.New()
	for _, part := range []string{fmt.Sprint(script), database, study, line} {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
