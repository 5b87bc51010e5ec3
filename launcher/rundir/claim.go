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

// Claim is the folder of a claim to an attempt: whose folder gets this name runs
// it, and any other copy of the batch script runs nothing. It holds the job's
// id, and an empty file of a random name that only its maker knows. The batch
// script makes its own (templates/job.sh.tmpl); the name is taken by rename,
// which never replaces a folder that is not empty.
func (r Folder) Claim(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("claim-%d", restart))
}

// TakeClaim claims an attempt, as the batch script does, for a job of that id
// or "" for none. The error is fs.ErrExist when it is claimed.
func (r Folder) TakeClaim(restart int, job string) error {
	if job == "" {
		return r.claim(restart, "", "")
	}
	return r.claim(restart, "job_id", job+"\n")
}

// withdrawn is the file of a claim that is nobody's.
const withdrawn = "withdrawn"

// Withdraw claims an attempt that has not begun for nobody, so that no copy of
// its batch script ever runs it, wherever in the scheduler that is. The error is
// fs.ErrExist when it has begun. To withdraw it again is no error.
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

// claim takes a claim with a file of that name and content in it; "" for none.
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

// Owner is the job id that the batch script wrote into its first claim: of
// several copies of one attempt, the one that runs. "" when none has begun, or
// outside a scheduler.
func (r Folder) Owner() string {
	text, err := r.ReadFile(filepath.Join(r.Claim(0), "job_id"))
	if err != nil || !jobID.Match(text) { // a loss of power may have torn it
		return ""
	}
	return strings.TrimSpace(string(text))
}
