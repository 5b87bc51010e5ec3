package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/slurm"
)

// bundleName is the folder that make gpu-bundle creates in dist.
const bundleName = "gpu-check-linux-amd64"

// bundle returns the folder of the GPU check's bundle, if it exists next to the worker or in the checkout that
// the worker was built in.
func bundle(worker string) (folder string, found bool) {
	near := filepath.Dir(worker)
	for _, folder := range []string{near, filepath.Join(near, bundleName), filepath.Join(filepath.Dir(near), "dist", bundleName)} {
		if info, err := os.Stat(filepath.Join(folder, "gpu-check")); err == nil && info.Mode().IsRegular() {
			return folder, true
		}
	}
	return "", false
}

// gpuCheck offers to run the GPU check as a job on the first partition with GPUs.
func (c Cluster) gpuCheck(d *slurm.Description, uses []use) []Finding {
	for _, u := range uses {
		if !hasGPUs(d, u.known) {
			continue
		}
		f := Finding{Check: "GPU check", Subject: u.subject(), Verdict: NotTested, Found: gpucheck.LastChecked()}
		s, err := c.Script(u.shape)
		if err != nil {
			return nil // the site's options are wrong: the row "script" reports it
		}
		if s.Partition == "" && u.known != nil {
			s.Partition = u.known.Name
		}
		limit := 30 * time.Minute
		if u.known.MaxTime != nil {
			limit = min(limit, *u.known.MaxTime)
		}
		folder, there := bundle(s.Worker)
		f.Advice = "check scalebench on one of these GPUs: "
		if !there {
			folder = "/SHARED/" + bundleName
			f.Advice += "run make gpu-bundle, copy dist/" + bundleName + " to a folder that the nodes share, then "
		}
		f.Advice += bundleJob(s, folder, limit)
		return []Finding{f}
	}
	return nil
}

// hasGPUs reports whether a node of the partition has a GPU.
func hasGPUs(d *slurm.Description, p *slurm.Partition) bool {
	return p != nil && slices.ContainsFunc(d.NodesOf(p), func(n slurm.Node) bool { return len(n.GPUs) > 0 })
}

// quote quotes a value for a shell.
func quote(value string) string {
	quoted, err := slurm.Quote(value)
	if err != nil { // a NUL byte, which a site file cannot contain
		return fmt.Sprintf("%q", value)
	}
	return quoted
}

// bundleJob returns the command that submits the bundle's check with the options of the site's jobs.
func bundleJob(s slurm.Script, folder string, limit time.Duration) string {
	gpus := "1"
	if s.GPUType != "" {
		gpus = s.GPUType + ":1"
	}
	words := []string{"sbatch", "--job-name=gpu-check"}
	for _, o := range []slurm.Option{{Name: "partition", Value: s.Partition}, {Name: "account", Value: s.Account}, {Name: "qos", Value: s.QOS}} {
		if o.Value != "" {
			words = append(words, "--"+o.Name+"="+quote(o.Value))
		}
	}
	words = append(words, "--nodes=1", "--gpus-per-node="+quote(gpus), "--cpus-per-task=8")
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		option := "--" + name
		if value := s.Options[name]; value != "" {
			option += "=" + quote(value)
		}
		words = append(words, option)
	}
	minutes := int(limit.Minutes())
	command := fmt.Sprintf("cd %s && ./gpu-check --time %dm", quote(folder), max(1, minutes-2))
	return strings.Join(append(words, fmt.Sprintf("--time=%d", minutes), "--wrap="+quote(command)), " ")
}
