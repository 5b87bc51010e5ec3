//go:build frameworks

package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// parser is a program's own reading of its command line: a script in testdata, run
// where that program is installed.
type parser struct {
	study   string // whose points are parsed
	program string // the argument after which the program's own begin
	script  string
	source  string // the variable that names a checkout of the program; "": it is installed
	fields  []field
	wrong   []string // arguments that its parser has to refuse
}

// field is an option by the name that the program gives it once it is parsed, and the
// value that it has to have for a point.
type field struct {
	name string
	want func(study.Point) any
}

func same(v any) func(study.Point) any { return func(study.Point) any { return v } }

func degree(of func(study.Train) study.Degree) func(study.Point) any {
	return func(p study.Point) any { return max(1, int(of(p.Workload.Train))) }
}

var (
	tp       = degree(func(t study.Train) study.Degree { return t.TP })
	pp       = degree(func(t study.Train) study.Degree { return t.PP })
	cp       = degree(func(t study.Train) study.Degree { return t.CP })
	replicas = func(p study.Point) any { return p.Workers / (tp(p).(int) * pp(p).(int) * cp(p).(int)) }
	seed     = func(p study.Point) any { return p.Seed }
)

var parsers = []parser{
	{study: "torchtitan/study.toml", program: "torchtitan.train", script: "parse_torchtitan.py", fields: []field{
		{"training.seq_len", same(8192)}, {"training.local_batch_size", same(2)}, {"training.global_batch_size", same(64)},
		{"training.steps", same(1000)}, {"debug.seed", seed}, {"metrics.log_freq", same(10)}, {"dump_folder", same("/run/output")},
		{"parallelism.tensor_parallel_degree", tp}, {"parallelism.pipeline_parallel_degree", pp},
		{"parallelism.context_parallel_degree", cp}, {"parallelism.data_parallel_shard_degree", replicas},
	}, wrong: []string{"--training.batch_size", "2"}}, // its name of 2025
	{study: "megatron/study.toml", program: "pretrain_gpt.py", script: "parse_megatron.py", source: "MEGATRON_LM", fields: []field{
		{"num_layers", same(32)}, {"hidden_size", same(4096)}, {"ffn_hidden_size", same(14336)}, {"num_attention_heads", same(32)}, {"num_query_groups", same(8)},
		{"seq_length", same(8192)}, {"micro_batch_size", same(1)}, {"global_batch_size", same(128)}, {"train_iters", same(50)},
		{"seed", seed}, {"bf16", same(true)}, {"log_interval", same(1)}, {"log_throughput", same(true)},
		{"tensor_model_parallel_size", tp}, {"pipeline_model_parallel_size", pp}, {"context_parallel_size", cp},
		{"world_size", func(p study.Point) any { return p.Workers }},
	}, wrong: []string{"--tensor-parallel", "2"}},
	{study: "nemo/study.toml", program: "scripts/training/run_recipe.py", script: "parse_bridge.py", source: "MEGATRON_BRIDGE", fields: []field{
		{"recipe", same("llama3_8b_pretrain_config")}, {"dataset", same("mock")}, {"seq_length", same(8192)},
		{"micro_batch_size", same(1)}, {"global_batch_size", same(128)}, {"max_steps", same(50)},
		{"tensor_model_parallel_size", tp}, {"pipeline_model_parallel_size", pp}, {"context_parallel_size", cp},
		{"save_dir", same("/run/output/checkpoints")}, {"load_dir", same("/run/output/checkpoints")},
	}, wrong: []string{"--tensor-parallel", "2"}},
}

// Programs parse every command line of their example correctly: each layout, by
// their own parser. make test-examples says where they come from.
func TestParsers(t *testing.T) {
	for _, p := range parsers {
		t.Run(filepath.Dir(p.study), func(t *testing.T) {
			var names []string
			for _, f := range p.fields {
				names = append(names, f.name)
			}
			points := points(t, p.study)
			var lines []line
			for _, point := range points {
				lines = append(lines, line{point.Workers, arguments(t, point, p.program)})
			}
			// Had the parser taken anything, it would take this.
			lines = append(lines, line{lines[0].World, append(slices.Clone(lines[0].Arguments), p.wrong...)})
			answers := p.parse(t, names, lines)
			for i, point := range points {
				want := []any{}
				for _, f := range p.fields {
					want = append(want, f.want(point))
				}
				if answers[i].Refused != "" {
					t.Errorf("%s: refused: %s", lines[i], answers[i].Refused)
				} else if d := cmp.Diff(texts(names, want), texts(names, answers[i].Values)); d != "" {
					t.Errorf("%s: %s", lines[i], d)
				}
			}
			if last := answers[len(points)]; !strings.Contains(last.Refused, p.wrong[0]) {
				t.Errorf("with %s, which it does not have, it said %q and had %v", p.wrong[0], last.Refused, last.Values)
			}
			t.Logf("%d command lines", len(points))
		})
	}
}

// line is a command line and how many ranks it is started as.
type line struct {
	World     int      `json:"world"`
	Arguments []string `json:"arguments"`
}

func (l line) String() string {
	return fmt.Sprintf("%d ranks, %s", l.World, strings.Join(l.Arguments, " "))
}

type answer struct {
	Refused string
	Values  []any
}

// parse asks the program, once for all lines: it takes long to start.
func (p parser) parse(t *testing.T, fields []string, lines []line) []answer {
	t.Helper()
	environment := exec.Command("../launcher/framework/locks/environment.sh", "torchtitan")
	environment.Stderr = os.Stderr
	python, err := environment.Output()
	if err != nil {
		t.Fatal(err)
	}
	question, err := json.Marshal(map[string]any{"fields": fields, "lines": lines})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strings.TrimSpace(string(python)), filepath.Join("testdata", p.script))
	cmd.Stdin = bytes.NewReader(question)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if p.source != "" {
		checkout := os.Getenv(p.source)
		if checkout == "" {
			t.Fatalf("$%s does not name a checkout of the program; start this test by make test-examples", p.source)
		}
		cmd.Env = append(cmd.Env, "PYTHONPATH="+checkout)
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaint.String())
	}
	var answers []answer
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v in %.500q", err, out)
	}
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(answers), len(lines))
	}
	return answers
}

// points returns the points of a study, without repeats.
func points(t *testing.T, file string) (list []study.Point) {
	t.Helper()
	s, err := study.Load(file, framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan.Points {
		if p.Point.Repeat == 1 {
			list = append(list, p.Point)
		}
	}
	if len(list) < 2 {
		t.Fatalf("%d points", len(list))
	}
	return list
}

// arguments returns the arguments that a program receives for a point.
func arguments(t *testing.T, p study.Point, program string) []string {
	t.Helper()
	f, err := framework.Find(p.Framework)
	if err != nil {
		t.Fatal(err)
	}
	command := f.Command(framework.Rank{Point: p, Run: rundir.Folder("/run")})
	i := slices.Index(command, program)
	if i < 0 {
		t.Fatalf("%s is not in %q", program, command)
	}
	return command[i+1:]
}

// texts are values by name, in JSON, which has one kind of number.
func texts(names []string, values []any) []string {
	var list []string
	for i, v := range values {
		text, _ := json.Marshal(v)
		list = append(list, fmt.Sprintf("%s = %s", names[i], text))
	}
	return list
}
