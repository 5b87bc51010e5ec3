package slurm

import (
	"fmt"
	"regexp"
)

// The forms of what a record may have that Slurm's commands are asked with. A comma
// would ask about several jobs, and an option would begin with a hyphen.
var (
	recordedID      = regexp.MustCompile(`^[0-9]{1,18}([_+][0-9]{1,9})?$`)
	recordedCluster = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	recordedNode    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$`)
)

// CheckJobName returns an error for a job name that no script of ours has.
func CheckJobName(name string) error {
	if !jobNameForm.MatchString(name) {
		return fmt.Errorf("%.60q is not the name of a job of scalebench; one is 1 to 200 letters, digits and ._@:+/-", name)
	}
	return nil
}

// CheckJobID returns an error for what is not the id of one job, "95", or of one task of
// a job array, "95_3".
func CheckJobID(id string) error {
	if !recordedID.MatchString(id) {
		return fmt.Errorf("%.60q is not the id of a job; one is a number, or ARRAY_TASK", id)
	}
	return nil
}

// CheckCluster returns an error for what cannot be the name of a cluster.
func CheckCluster(name string) error {
	if !recordedCluster.MatchString(name) {
		return fmt.Errorf("%.60q is not the name of a cluster; one is letters, digits and _.-", name)
	}
	return nil
}

// CheckNode returns an error for what cannot be the name of one node.
func CheckNode(name string) error {
	if !recordedNode.MatchString(name) {
		return fmt.Errorf("%.60q is not the name of a node; one is letters, digits and _.-", name)
	}
	return nil
}
