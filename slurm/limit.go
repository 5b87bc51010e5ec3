package slurm

import "regexp"

// tooMany are the words with which sbatch says that there are too many jobs for
// now: of an association or a QOS (AssocMaxSubmitJobLimit,
// QOSMaxSubmitJobPerUserLimit, QOSGrpSubmitJobsLimit, …), or of the cluster
// (MaxJobCount).
var tooMany = regexp.MustCompile(`\b(?:Assoc|QOS)[A-Za-z]*Submit[A-Za-z]*Limit\b|Slurm temporarily unable to accept job|[Mm]aximum number of jobs|Resource temporarily unavailable`)

// ForNow reports whether the refusal is for the number of jobs in the queue
// alone, so that the same submission goes through once some of them have ended.
func (e *RefusedError) ForNow() bool { return tooMany.MatchString(e.Message) }
