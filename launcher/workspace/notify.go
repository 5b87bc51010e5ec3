package workspace

import (
	"context"
	"fmt"
	"os"

	"github.com/scalebench/scalebench/launcher"
)

// NotifyAfter submits a job that sends the study's messages when attempts have ended. The job reads the runs into a
// database of its own, because nodes never open the user's. job is "" if there is nobody to tell.
func (k *Work) NotifyAfter(ctx context.Context, attempts []*launcher.Attempt) (job string, err error) {
	if !k.Sender.To.Set() || len(attempts) == 0 || len(k.Plan.Points) == 0 {
		return "", nil
	}
	backend, err := k.Scheduler(ctx)
	if err != nil {
		return "", err
	}
	follower, ok := backend.(launcher.Follower)
	if !ok {
		return "", fmt.Errorf("backend %q runs nothing after other jobs", backend.Name())
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	command := []string{program, "notify", k.Study.Name, "--runs", k.Folder.Runs(), "--apart"}
	return follower.Follow(ctx, k.Plan.Points[0], attempts, command)
}
