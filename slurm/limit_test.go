package slurm

import "testing"

func TestForNow(t *testing.T) {
	const failed = "\nsbatch: error: Batch job submission failed: "
	for message, want := range map[string]bool{
		"sbatch: error: AssocMaxSubmitJobLimit" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":      true,
		"sbatch: error: QOSMaxSubmitJobPerUserLimit" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)": true,
		"sbatch: error: AssocGrpSubmitJobsLimit" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":     true,
		"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying" + failed + "Resource temporarily unavailable":                    true,
		// These remain refused even after other jobs have ended.
		"sbatch: error: QOSMaxCpuPerJobLimit" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":     false,
		"sbatch: error: AssocMaxWallDurationPerJobLimit" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time)": false,
		"sbatch: error: Batch job submission failed: Invalid qos specification":                                                                      false,
		"sbatch: error: Batch job submission failed: Requested node configuration is not available":                                                  false,
	} {
		if got := (&RefusedError{Command: "sbatch", Message: message}).ForNow(); got != want {
			t.Errorf("%q: for now is %v", message, got)
		}
	}
}
