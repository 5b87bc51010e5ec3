package cluster

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// This file reports points of a plan that cannot succeed on this host because folders, scripts, interpreters or
// packages are missing. What modules, setup lines or a container provide on the nodes is not checked here;
// doctor tests that on the nodes.

// A NamedFile says what the user gave on the command line. Everything else came with the study.
type NamedFile struct {
	Site    bool // the site file
	Command bool // the command, or its program
}

// A checker collects problems without duplicates.
type checker struct {
	ctx       context.Context
	study     *study.Study
	site      *study.Site
	folder    rundir.Study
	given     NamedFile
	host      string
	problems  study.Problems
	unchecked study.Problems // what could not be checked, and why
	asked     map[string]answer
	refused   map[string]string // why an interpreter is not started
	sources   map[string]source // by script
	silent    map[string]bool   // interpreters that did not answer in time
}

func newChecker(ctx context.Context, st *study.Study, site *study.Site, folder rundir.Study) *checker {
	c := &checker{ctx: ctx, study: st, site: site, folder: folder, asked: map[string]answer{}, refused: map[string]string{}, sources: map[string]source{}, silent: map[string]bool{}}
	c.host, _ = os.Hostname()
	return c
}

// CheckPlan reports what must fail in the plan, by file, line and TOML path, and what was left unchecked: it
// starts no interpreter that may have come with the study.
func CheckPlan(ctx context.Context, st *study.Study, site *study.Site, plan *study.Plan, folder rundir.Study, given NamedFile) (problems, unchecked study.Problems) {
	c := newChecker(ctx, st, site, folder)
	c.given = given
	c.each(plan, func(f framework.Framework, p study.Planned, site *study.Site) {
		if f.UserProgram && len(p.Point.Command.Run) > 0 {
			c.command(f, p, site)
		} else if f.Imports != nil {
			c.framework(f, site)
		}
	})
	return c.problems, c.unchecked
}

// CheckFiles is the part of CheckPlan that only looks at files by their paths. It starts no program and does
// not search the PATH.
func CheckFiles(st *study.Study, site *study.Site, plan *study.Plan, folder rundir.Study) study.Problems {
	c := newChecker(context.Background(), st, site, folder)
	c.each(plan, func(f framework.Framework, p study.Planned, site *study.Site) {
		if !f.UserProgram || len(p.Point.Command.Run) == 0 { // a service that runs already has no command
			return
		}
		s := c.started(f, p, site)
		if c.directory(s) {
			if strings.ContainsRune(s.arguments[0], '/') {
				c.program(s)
			}
			c.script(s)
		}
	})
	return c.problems
}

// each checks the data of each point, and calls look if the nodes use the same files and programs as this host.
func (c *checker) each(plan *study.Plan, look func(framework.Framework, study.Planned, *study.Site)) {
	for _, p := range plan.Points {
		if p.Point.Repeat > c.study.First {
			continue
		}
		site := c.site.As(p.Point.Variant)
		if site.Container.Runtime != "" { // the container has its own files and programs
			continue
		}
		f, err := framework.Find(p.Point.Framework)
		if err != nil {
			continue // the plan would have reported it
		}
		c.worker(p.Point, site)
		c.data(p.Point)
		c.model(p.Point)
		c.samples(p.Point)
		c.language(p.Point)
		look(f, p, site)
	}
}

func (c *checker) add(p study.Problem) {
	if !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

func (c *checker) leaveOut(p study.Problem) {
	if !slices.Contains(c.unchecked, p) {
		c.unchecked = append(c.unchecked, p)
	}
}

// elsewhere is the end of messages about paths and programs that may differ on the nodes.
const elsewhere = "; if only the compute nodes have it, give --unchecked to submit, run or retry"

// worker checks that scalebench's worker was built with GPU support, if the point needs it.
func (c *checker) worker(p study.Point, site *study.Site) {
	if p.Resources.Device != "gpu" || p.Framework != "native" || !p.Workload.OnGPUs() {
		return
	}
	path, err := launcher.Worker(site.Worker)
	if err != nil {
		return // reported when the worker is started
	}
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return // for example a wrapper script
	}
	for _, s := range built.Settings {
		if s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "gpu") {
			return
		}
	}
	where := "resources.device"
	if slices.Contains(c.study.Swept(), where) {
		where = "sweep." + where
	}
	c.add(c.study.Problem(where, fmt.Sprintf("%s is the default worker, built without GPU support; build the GPU worker (make worker-gpu) and name it in the site file (worker = \"PATH\")%s", path, elsewhere)))
}

// provides reports whether the nodes may have other programs on the PATH, or other packages, than this host.
func provides(site *study.Site, environment map[string]string) bool {
	changes := func(m map[string]string) bool {
		for name := range m {
			if name == "PATH" || strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "LD_") {
				return true
			}
		}
		return false
	}
	return len(site.Modules) > 0 || len(site.Setup) > 0 || changes(site.Environment) || changes(environment)
}

// find looks up a program as exec would in a folder. path is "" if it cannot be found; wrong says why.
func (c *checker) find(name, directory string) (path, wrong string) {
	if !strings.ContainsRune(name, '/') {
		found, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Sprintf("%q is not on the PATH of %s", name, c.host)
		}
		return found, ""
	}
	path = name
	if !filepath.IsAbs(path) {
		path = filepath.Join(directory, path)
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", fmt.Sprintf("%s does not exist on %s", path, c.host)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", path + " is not executable"
	}
	return path, ""
}

// framework checks that the interpreter has the package of one of scalebench's frameworks.
func (c *checker) framework(f framework.Framework, site *study.Site) {
	name, given := site.Interpreter(f.Name), "python"
	if site.Pythons[f.Name] != "" {
		given = "pythons." + f.Name
	}
	if name == "" {
		name, given = "python3", ""
	}
	where := func(message string) study.Problem {
		if given == "" {
			return c.study.Problem("sweep.framework", f.Name+": "+message)
		}
		return site.Problem(given, message)
	}
	path, wrong := c.find(name, "/")
	if wrong != "" {
		if strings.ContainsRune(name, '/') || !provides(site, nil) {
			c.add(where(wrong + "; name the interpreter of the Python frameworks in the site file: python = \"PATH\""))
		}
		return
	}
	if provides(site, nil) {
		return
	}
	i := interpreter{name: name, path: path, site: site, key: where}
	if a := c.ask(i, question{Modules: f.Imports}); len(a.Missing) > 0 {
		c.add(where(fmt.Sprintf("%s has no package %s, which %s needs; install it (%s), or name an interpreter that has it in the site file: python = \"PATH\"", path, strings.Join(a.Missing, " and no package "), f.Name, f.Install())))
	}
}

var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// A start describes how a rank of a [command] starts, as far as it can be checked.
type start struct {
	framework.Rank
	arguments []string // arguments of the command itself, without its launcher
	directory string
	provided  bool // the nodes may have other programs and packages
}

func (c *checker) started(f framework.Framework, p study.Planned, site *study.Site) start {
	rank := framework.Rank{Point: p.Point, Run: c.folder.Run(p.Point.ID, p.Point.Repeat, 1), Python: site.Interpreter(f.Name)}
	plain := rank
	plain.Point.Resources.Launch = ""
	return start{rank, f.Command(plain), f.Directory(rank), provides(site, p.Point.Command.Environment)}
}

// made reports whether a path is only created with the run.
func (s start) made(path string) bool { return strings.HasPrefix(path, s.Run.Path()+"/") }

// directory checks the folder that a command starts in. It returns false if the command cannot be checked further.
func (c *checker) directory(s start) bool {
	if s.made(s.directory + "/") {
		return false
	}
	if info, err := os.Stat(s.directory); err != nil || !info.IsDir() {
		c.add(c.study.Problem("command.directory", s.directory+" is not a folder on "+c.host+elsewhere))
		return false
	}
	return true
}

// program checks the program that a command names and returns its path, or "" if it does not exist.
func (c *checker) program(s start) string {
	name := s.arguments[0]
	path, wrong := c.find(name, s.directory)
	if named := strings.ContainsRune(name, '/'); wrong != "" && (named && !s.made(name) || !named && !s.provided) {
		todo := "; correct it, or load what provides it in the site file (modules, setup)"
		if named {
			todo += elsewhere
		}
		c.add(c.study.Problem("command.run[0]", wrong+todo))
	}
	return path
}

// script checks the script that a command names and returns its path, or "" if none can be checked.
func (c *checker) script(s start) string {
	for i, a := range s.arguments[1:] {
		if a == "-c" || a == "-m" { // code or a module name follows
			return ""
		}
		if ext := filepath.Ext(a); strings.HasPrefix(a, "-") || ext != ".py" && ext != ".sh" || strings.ContainsAny(a, " \t\n=") {
			continue
		}
		script := a
		if !filepath.IsAbs(a) {
			script = filepath.Join(s.directory, a)
		}
		if s.made(script) {
			return ""
		}
		if info, err := os.Stat(script); err != nil || !info.Mode().IsRegular() {
			c.add(c.study.Problem(fmt.Sprintf("command.run[%d]", i+1), fmt.Sprintf("%s does not exist on %s; relative paths are taken from command.directory, else the study file's folder%s", script, c.host, elsewhere)))
			return ""
		}
		return script
	}
	return ""
}

// command checks the program of [command] and its script.
func (c *checker) command(f framework.Framework, p study.Planned, site *study.Site) {
	s := c.started(f, p, site)
	if !c.directory(s) {
		return
	}
	if p.Point.Resources.Launch == "torchrun" && !s.provided {
		name := framework.TorchrunPython(s.Rank)
		if path, _ := c.find(name, s.directory); path == "" {
			c.add(c.study.Problem("resources.launch", fmt.Sprintf("torchrun is started by %s, which is not on %s; name the interpreter that has PyTorch in the site file: python = \"PATH\"", name, c.host)))
		} else if a := c.ask(c.ofCommand(p, site, name, path, "resources.launch"), question{Modules: []string{"torch"}}); len(a.Missing) > 0 {
			c.add(c.study.Problem("resources.launch", fmt.Sprintf("%s has no package torch, whose torchrun starts the ranks; install it, start command.run with an interpreter that has it, or use launch = \"srun\"", path)))
		}
	}
	program, script := c.program(s), c.script(s)
	if filepath.Ext(script) != ".py" || program == "" || !pythonName.MatchString(filepath.Base(program)) || s.provided {
		return
	}
	source, known := c.sources[script]
	if !known {
		source = readSource(script)
		c.sources[script] = source
	}
	switch {
	case source.unread != "":
		c.leaveOut(c.study.Problem("command.run", fmt.Sprintf("not checked: what %s imports: %s", script, source.unread)))
		return
	case source.wrong != "":
		c.add(c.study.Problem("command.run", fmt.Sprintf("%s cannot be read by %s: %s", script, program, source.wrong)))
		return
	}
	a := c.ask(c.ofCommand(p, site, s.arguments[0], program, "command.run"), question{Source: source.text, Folders: []string{filepath.Dir(script)}})
	if a.Syntax != "" {
		c.add(c.study.Problem("command.run", fmt.Sprintf("%s cannot be read by %s: %s", script, program, a.Syntax)))
	}
	if len(a.Missing) > 0 {
		c.add(c.study.Problem("command.run", fmt.Sprintf("%s imports %s, which %s does not have; install it there, or name another interpreter", script, strings.Join(a.Missing, ", "), program)))
	}
}

// ofCommand returns the interpreter that a command starts. The study names it, except for {python} and
// torchrun's interpreter, which the site file names.
func (c *checker) ofCommand(p study.Planned, site *study.Site, name, path, key string) interpreter {
	i := interpreter{name: name, path: path, typed: c.given.Command, key: func(message string) study.Problem { return c.study.Problem(key, message) }}
	if run := p.Point.Command.Run; len(run) == 0 || run[0] != name {
		i.typed, i.site = false, site
	}
	return i
}
