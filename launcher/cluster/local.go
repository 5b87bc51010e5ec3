package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Place is a folder whose file system matters.
type Place struct {
	Dir    string // absolute; need not exist yet
	Shared bool   // other hosts can write to it as well, judging by its type
	Err    error  // why the type is unknown
}

// A Host is the host that doctor runs on.
type Host struct {
	Site     *study.Site
	Version  string // of scalebench
	Runs     Place
	Database Place
	// Frameworks lists the study's frameworks; nil means no study: try all.
	Frameworks []string
}

// Check examines this host. It asks no scheduler.
func (h Host) Check(ctx context.Context) []Finding {
	list := h.worker(ctx)
	for _, p := range []struct {
		check string
		Place
		shared, local string
	}{
		{"runs folder", h.Runs, "other hosts can write there", "jobs on other hosts do not see it, unless they mount it"},
		{"database", h.Database, "SQLite works with a rollback journal there: collect one at a time", "SQLite works with a write-ahead log there"},
	} {
		f := Finding{Check: p.check, Subject: p.Dir, Verdict: OK}
		words := p.local
		if p.Shared {
			words = p.shared
		}
		kind, err := fileSystem(p.Dir)
		switch {
		case p.Err != nil:
			f.Verdict, f.Found = NotTested, p.Err.Error()
		case err != nil:
			f.Found = "on a file system of unknown type; " + words
		default:
			f.Found = "on " + kind + "; " + words
		}
		list = append(list, f)
	}
	list = append(list, h.frameworks(ctx)...)
	if h.Site.Python != "" {
		f := Finding{Check: "interpreter", Subject: h.Site.Python, Verdict: OK}
		begin := time.Now()
		said, err := trust.AskPython(ctx, h.Site.Python, trust.PythonQuestion{Program: "import sys; print('Python', sys.version.split()[0])"})
		if f.Found = fmt.Sprintf("%s in %s on this host", strings.TrimSpace(string(said)), number.ShortSeconds(time.Since(begin).Seconds())); err != nil {
			f.Verdict, f.Found, f.Advice = Warn, err.Error(), "correct python in the site file, unless only the compute nodes have it"
		}
		list = append(list, f)
	}
	return list
}

// frameworks reports what this host has of each framework. Missing packages are only noted here: a study that
// needs them fails in the probe job.
func (h Host) frameworks(ctx context.Context) []Finding {
	all := framework.All
	if h.Frameworks != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(f framework.Framework) bool { return !slices.Contains(h.Frameworks, f.Name) })
	}
	list := make([]Finding, len(all))
	var wait sync.WaitGroup
	two := make(chan struct{}, 2) // concurrent imports, which are expensive
	for i, f := range all {
		list[i] = Finding{"framework", f.Name, OK, "needs only the worker", ""}
		if f.Imports == nil {
			continue
		}
		wait.Go(func() {
			two <- struct{}{}
			defer func() { <-two }()
			interpreter := cmp.Or(h.Site.Interpreter(f.Name), trust.DefaultPython)
			has, err := f.Look(ctx, interpreter)
			if list[i].Found = fmt.Sprintf("%v; %s", has, interpreter); err != nil {
				list[i].Verdict, list[i].Found = NotTested, fmt.Sprintf("%s cannot import %s: %s", interpreter, strings.Join(f.Imports, " and "), oneLine(err.Error()))
				list[i].Advice = f.Install() + "; then name its interpreter in the site file (pythons = { FRAMEWORK = \"…\" })"
			}
		})
	}
	wait.Wait()
	return list
}

// worker runs the worker binary on this host and judges its answer.
func (h Host) worker(ctx context.Context) []Finding {
	fail := func(path string, err error) []Finding {
		return []Finding{{"worker", path, Fail, oneLine(err.Error()), "build it with make build, and put it next to scalebench or name it in the site file (worker = …)"}}
	}
	path, err := launcher.Worker(h.Site.Worker)
	if err != nil {
		return fail(h.Site.Worker, err)
	}
	said, err := output(ctx, path, "probe")
	if err != nil {
		return fail(path, err)
	}
	var seen probe.Facts
	if err := json.Unmarshal([]byte(said), &seen); err != nil {
		return fail(path, fmt.Errorf("not a worker of this version: it printed %.200q", said))
	}
	found := Finding{"worker", path, OK, seen.Version + " starts on " + seen.Host, ""}
	if seen.Version != h.Version {
		found.Verdict, found.Advice = Warn, "scalebench itself is "+h.Version+"; build both from one source"
	}
	list := []Finding{found}
	cpus := Finding{"CPUs", seen.Host, OK, ranges(seen.CPUs) + " are allowed here", ""}
	if len(seen.CPUs) == 0 {
		cpus.Verdict, cpus.Found = NotTested, "the kernel does not say which CPUs are allowed"
	}
	gpu := Finding{"GPU", seen.Host, OK, brief(seen.GPUs.List), ""}
	if len(seen.GPUs.List) == 0 {
		gpu.Verdict, gpu.Found = NotTested, oneLine(seen.GPUs.Error)
		if seen.GPUs.Error == "" {
			gpu.Found = "nvidia-smi lists none"
		}
	}
	return append(list, cpus, gpu, ownNCCL(ctx, path, seen))
}

// output returns what a program prints within 30 s.
func output(ctx context.Context, name string, args ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(limited, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w %s", filepath.Base(name), err, oneLine(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// fileSystem returns the type of the file system of a folder that may not exist yet, in the kernel's terms
// ("ext4", "nfs4", "lustre").
func fileSystem(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) { // find the nearest existing folder
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			dir = real
			break
		}
		if dir == filepath.Dir(dir) {
			return "", err
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return mountType(string(mounts), dir)
}

// mountType finds the mount of a path in /proc/self/mountinfo (proc(5)): the deepest mount point,
// and the last of several mounts there.
func mountType(mounts, path string) (string, error) {
	best, kind := -1, ""
	for line := range strings.SplitSeq(mounts, "\n") {
		// ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAG…] - TYPE SOURCE SUPER
		head, tail, ok := strings.Cut(line, " - ")
		place, what := strings.Fields(head), strings.Fields(tail)
		if !ok || len(place) < 6 || len(what) < 1 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(place[4])
		below := at == "/" || path == at || strings.HasPrefix(path, at+"/")
		if below && len(at) >= best {
			best, kind = len(at), what[0]
		}
	}
	if kind == "" {
		return "", fmt.Errorf("no mount of %s is listed: %w", path, errors.ErrUnsupported)
	}
	return kind, nil
}
