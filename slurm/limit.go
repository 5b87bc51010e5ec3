package slurm

import "regexp"

// tooMany matches sbatch's messages about too many jobs at the moment: in an association or a QOS
// (AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, QOSGrpSubmitJobsLimit, …), or in the cluster
// (MaxJobCount).
var tooMany = regexp.MustCompile(`\b(?:Assoc|QOS)[A-Za-z]*Submit[A-Za-z]*Limit\b|Slurm temporarily unable to accept job|[Mm]aximum number of jobs|Resource temporarily unavailable`)

// ForNow reports whether the refusal only concerns the number of jobs in the queue, so that the same submission
// will succeed once some jobs have ended.
func (e *RefusedError) ForNow() bool { return tooMany.MatchString(e.Message) }
