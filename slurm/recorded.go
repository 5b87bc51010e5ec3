package slurm

import (
	"fmt"
	"regexp"
)

// Valid forms of values that were read from a record and are passed to Slurm's commands. A comma would select
// several jobs, and a leading hyphen would make an option.
var (
	recordedID      = regexp.MustCompile(`^[0-9]{1,18}([_+][0-9]{1,9})?$`)
	recordedCluster = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	recordedNode    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$`)
)

// CheckJobName returns an error for a name that scalebench never gives to a job.
func CheckJobName(name string) error {
	if !jobNameForm.MatchString(name) {
		return fmt.Errorf("%.60q is not a job name of scalebench; valid: 1 to 200 letters, digits and ._@:+/-", name)
	}
	return nil
}

// CheckJobID returns an error unless id is the id of one job, "95", or of one array task, "95_3".
func CheckJobID(id string) error {
	if !recordedID.MatchString(id) {
		return fmt.Errorf("%.60q is not a job id; valid: a number, or ARRAY_TASK", id)
	}
	return nil
}

// CheckCluster returns an error unless name is a valid name of a cluster.
func CheckCluster(name string) error {
	if !recordedCluster.MatchString(name) {
		return fmt.Errorf("%.60q is not a cluster name; valid: letters, digits and _.-", name)
	}
	return nil
}

// CheckNode returns an error unless name is a valid name of one node.
func CheckNode(name string) error {
	if !recordedNode.MatchString(name) {
		return fmt.Errorf("%.60q is not a node name; valid: letters, digits and _.-", name)
	}
	return nil
}
