package rundir

import (
	"fmt"
	"testing"
)

// BenchmarkSubmission is what a submission costs in records on disk: a run folder
// with the four files that every attempt has, and sbatch's answer afterwards.
// Five files are synced, and three folders: the one that is filled, the study's,
// and the run's own once the answer is there.
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
