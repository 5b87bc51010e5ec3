//go:build slurm

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmEnvironments runs a program on two nodes in each of the environments that a site
// file supports, and checks what it found there. The venv and the environment modules are
// real. Conda, Apptainer and pyxis are not installed: fakes of their commands do only what
// the real ones are documented to do with these arguments.
func TestSlurmEnvironments(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	executable := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, venv := range []string{"venv", "conda/envs/torch"} {
		if out, err := exec.Command("python3", "-m", "venv", "--without-pip", filepath.Join(b.dir, venv)).CombinedOutput(); err != nil {
			t.Fatalf("python3 -m venv: %v: %s", err, out)
		}
	}
	// A modulefile; `module` itself is Debian's environment-modules.
	executable("modulefiles/greeting/1.0", "#%Module1.0\nprepend-path PATH "+b.dir+"/greeting\nsetenv GREETING_VERSION 1.0\n")
	executable("greeting/greet", "#!/bin/sh\necho good day\n")
	// conda's hook defines a function of its name; `conda activate` puts the
	// environment's bin in front and names it.
	executable("stand-in/conda", `#!/bin/sh
[ "$*" = "shell.bash hook" ] || { echo "stand-in conda: $*" >&2; exit 2; }
cat <<'END'
conda() {
  [ "$1" = activate ] || return 2
  export CONDA_PREFIX=`+b.dir+`/conda/envs/$2
  PATH=$CONDA_PREFIX/bin:$PATH
}
END
`)
	// apptainer exec [OPTIONS] IMAGE COMMAND: an image has another PATH, and only the
	// mounted parts of the host.
	executable("stand-in/apptainer", `#!/bin/bash
echo "apptainer $*" >>`+b.dir+`/apptainer.calls
[ "$1" = exec ] || exit 2
shift
while [[ $1 == --* ]]; do
  case $1 in
    --nv) shift ;;
    --bind) [ -e "${2%%:*}" ] || { echo "no mount source $2" >&2; exit 255; }; shift 2 ;;
    --pwd) cd "$2" || exit 255; shift 2 ;;
    *) echo "stand-in apptainer: $1" >&2; exit 2 ;;
  esac
done
export APPTAINER_CONTAINER=$1
shift
exec "$@"
`)
	// pyxis adds options to srun, which a srun without it refuses.
	executable("stand-in/srun", `#!/bin/bash
rest=()
for a in "$@"; do
  case $a in
    --container-image=*) export PYXIS_IMAGE=${a#*=} ;;
    --container-*|--no-container-*) ;;
    *) rest+=("$a") ;;
  esac
done
echo "srun $*" >>`+b.dir+`/srun.calls
exec `+lookUp(t, b.env, "srun")+` "${rest[@]}"
`)
	for i := len(b.env) - 1; i >= 0; i-- {
		if path, ok := strings.CutPrefix(b.env[i], "PATH="); ok {
			b.env = append(b.env, "PATH="+filepath.Join(b.dir, "stand-in")+":"+path)
			break
		}
	}
	// As in a shell without a module command to inherit.
	b.env = append(b.env, "BASH_ENV=", "MODULEPATH="+filepath.Join(b.dir, "modulefiles"))
	b.write("program.py", `
import os
import shutil
import subprocess
import sys
import scalebench

for _ in range(20):
    scalebench.step(samples=1)
greet = shutil.which("greet")
print("prefix", sys.prefix, "conda", os.environ.get("CONDA_PREFIX"),
      "image", os.environ.get("APPTAINER_CONTAINER"),
      os.environ.get("PYXIS_IMAGE"), "version",
      os.environ.get("GREETING_VERSION"), greet and
      subprocess.run([greet], capture_output=True, text=True).stdout)
`)
	for _, e := range []struct{ name, site, want string }{
		{"venv", "setup = [\"source " + b.dir + "/venv/bin/activate\"]", "prefix " + b.dir + "/venv conda"},
		{"modules", "modules = [\"greeting/1.0\"]", "version 1.0 good day"},
		{"conda", "setup = ['eval \"$(conda shell.bash hook)\"', 'conda activate torch']", "prefix " + b.dir + "/conda/envs/torch conda " + b.dir + "/conda/envs/torch"},
		{"apptainer", "[container]\nruntime = \"apptainer\"\nimage = \"" + b.dir + "/torch.sif\"\nmounts = [\"" + b.dir + ":" + b.dir + "\"]\n", "image " + b.dir + "/torch.sif None"},
		{"pyxis", "[container]\nruntime = \"pyxis\"\nimage = \"nvcr.io#nvidia/pytorch:24.05-py3\"\nmounts = [\"" + b.dir + ":" + b.dir + "\"]\n", "image None nvcr.io#nvidia/pytorch:24.05-py3"},
	} {
		t.Run(e.name, func(t *testing.T) {
			b.write(e.name+".study.toml", fmt.Sprintf(`
[study]
name = %q
[command]
run = ["python", "program.py"]
[resources]
time = "1h"
workers_per_node = 1
[sweep]
workers = [2]
framework = ["command"]
`, e.name))
			site := e.site
			if e.name == "modules" || strings.Contains(site, "container") { // "python" exists only inside an environment
				b.write(e.name+".study.toml", strings.Replace(read(t, filepath.Join(b.dir, e.name+".study.toml")), `"python"`, `"python3"`, 1))
			}
			b.write(e.name+".site.toml", site+"\n")
			b.must(0, nil, "submit", e.name+".study.toml", "--site", e.name+".site.toml", "--wait", "--interval", "1s")
			logs, err := filepath.Glob(filepath.Join(b.dir, "runs", e.name, "*", "rank-*.log"))
			if err != nil || len(logs) != 2 {
				t.Fatalf("logs %v, %v", logs, err)
			}
			for _, log := range logs {
				if text := read(t, log); !strings.Contains(text, e.want) {
					t.Errorf("%s has no %q:\n%s", log, e.want, text)
				}
			}
		})
	}
	for _, call := range []struct{ file, want string }{
		{"apptainer.calls", "--bind " + b.dir + ":" + b.dir},
		{"srun.calls", "--container-mounts="},
	} {
		calls := strings.Split(read(t, filepath.Join(b.dir, call.file)), "\n")
		if !slices.ContainsFunc(calls, func(c string) bool {
			return strings.Contains(c, call.want) && strings.Contains(c, "/bin/scalebench-worker:")
		}) {
			t.Errorf("no call in %s mounts %s and the worker:\n%s", call.file, call.want, strings.Join(calls, "\n"))
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
