package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Claim returns the folder that claims an attempt. Whoever renames a folder to this name runs the attempt; all
// other copies of the batch script run nothing. It contains the job's id and an empty file with a random name
// that only its creator knows. The batch script creates its own (templates/job.sh.tmpl). The rename is safe
// because it never replaces a folder that is not empty.
func (r Folder) Claim(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("claim-%d", restart))
}

// TakeClaim claims an attempt, as the batch script does, for the job with that id, or for no job if it is "".
// The error is fs.ErrExist if the attempt is already claimed.
func (r Folder) TakeClaim(restart int, job string) error {
	if job == "" {
		return r.claim(restart, "", "")
	}
	return r.claim(restart, "job_id", job+"\n")
}

// withdrawn is the file in the claim of a withdrawn attempt.
const withdrawn = "withdrawn"

// Withdraw claims an attempt that has not started, so that no copy of its batch script ever runs it. The error
// is fs.ErrExist if it has started. Withdrawing twice is not an error.
func (r Folder) Withdraw() error {
	err := r.claim(0, withdrawn, "")
	if errors.Is(err, fs.ErrExist) && r.Withdrawn() {
		return nil
	}
	return err
}

// Withdrawn reports whether Withdraw got the claim.
func (r Folder) Withdrawn() bool {
	_, err := os.Stat(filepath.Join(r.Claim(0), withdrawn))
	return err == nil
}

// claim takes a claim that contains a file with that name and content; name may be "".
func (r Folder) claim(restart int, name, content string) error {
	own, err := sharedfs.MkdirTemp(string(r), ".claim-", sharedfs.ModeFolder)
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(own, rand.Text()), nil, sharedfs.ModeOpen)
	if err == nil && name != "" {
		err = os.WriteFile(filepath.Join(own, name), []byte(content), sharedfs.ModeOpen)
	}
	if err == nil {
		err = sharedfs.Place(own, r.Claim(restart))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(own))
	}
	return nil
}

var jobID = regexp.MustCompile(`^[0-9][0-9_+]*\n$`)

// Owner returns the job id in the first claim: of several copies of one attempt, the one that runs. It is "" if
// none has started, or outside a scheduler.
func (r Folder) Owner() string {
	text, err := r.ReadFile(filepath.Join(r.Claim(0), "job_id"))
	if err != nil || !jobID.Match(text) { // a loss of power may have torn it
		return ""
	}
	return strings.TrimSpace(string(text))
}
