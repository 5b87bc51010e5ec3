package rundir

import (
	"fmt"
	"testing"
)

// BenchmarkSubmission measures the cost of a submission's records on disk: a run folder with the four files of
// every attempt, and sbatch's answer afterwards. It syncs five files and three folders: the new run folder
// while it is filled, the study's folder, and the run folder again after the answer.
func BenchmarkSubmission(b *testing.B) {
	study := OpenStudy(b.TempDir(), "s")
	text := make([]byte, 2000)
	for i := 0; b.Loop(); i++ {
		run := study.Run(fmt.Sprint("p", i), 1, 1)
		err := run.Create(func(at Folder) error {
			for _, file := range []string{at.Point(), at.Attempt(), at.Nonce(), at.Script()} {
				if err := WriteFile(file, text, 0o600); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := WriteFile(run.Job(), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
