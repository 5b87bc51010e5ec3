package main

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMutantsOf(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string // each mutant, as "before -> after"
	}{
		{"return a + b", []string{"a + b -> a - b"}},
		{"return a < b", []string{"a < b -> a <= b", "a < b -> a >= b"}},
		{"return min(a, f.max)", []string{"min -> max"}},
		{"return a && !b", []string{"a && !b -> a || !b", "!b -> b"}},
		{"return 3", []string{"3 -> 4", "3 -> 2"}},
		{"return 0", []string{"0 -> 1"}},
		{"return 0.5", []string{"0.5 -> 1", "0.5 -> 0.25"}},
		{"x := make([]int, n, 8)", nil},
		{"x = y", []string{"x = y -> (removed)"}},
		{"x += y", []string{"x += y -> (removed)", "x += y -> x -= y"}},
		{"if a { return }", []string{"if a { return } -> (removed)", "a -> !(a)"}},
		{"if a { f() } else { return }", []string{"a -> !(a)", "f() -> (removed)"}},
		{"if a == b { x++ }", []string{"a == b -> a != b", "x++ -> (removed)", "x++ -> x--"}},
		{"return 0, false, err", nil},
		{"return 0, fmt.Errorf(s, i+1)", []string{"1 -> 2", "1 -> 0", "i+1 -> i-1"}},
		{"return -x, err", []string{"-x -> x"}},
		{"return strconv.ParseFloat(s[1:], 64)", []string{"1 -> 2", "1 -> 0"}},
		{"return math.IsInf(-x, 1)", []string{"-x -> x"}},
		{"return 0, nil", []string{"0 -> 1"}},
		{"return T{max: 7}", []string{"7 -> 8", "7 -> 6"}},
	} {
		source := "package p\nfunc f() {\n" + c.body + "\n}\n"
		mutants, err := mutantsOf("p.go", []byte(source))
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		var got []string
		for _, m := range mutants {
			if m.line != 3 {
				t.Errorf("%s: line %d, want 3", c.body, m.line)
			}
			// The changed function must equal the one in the changed file.
			if whole := oneLine(string(m.apply([]byte(source)))); !strings.Contains(whole, m.now) {
				t.Errorf("%s: the file becomes %q, without %q", c.body, whole, m.now)
			}
			got = append(got, strings.ReplaceAll(strings.TrimPrefix(m.String(), "p.go:3: "), "  ", " "))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.body, got, c.want)
		}
	}
}

func TestSample(t *testing.T) {
	all, err := mutantsOf("p.go", []byte("package p\nfunc f() bool { return a < b && c < d || e < 4 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	// Places: three comparisons, two logical operators, a constant.
	one, again, other := sample(all, 1), sample(all, 1), sample(all, 2)
	if len(one) != 6 {
		t.Errorf("%d mutants, want 6: one for each place", len(one))
	}
	if !slices.Equal(one, again) {
		t.Error("the same seed drew other mutants")
	}
	if slices.Equal(one, other) {
		t.Error("another seed drew the same mutants in the same order")
	}
}

// The intervals come from tables of exact binomial limits.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{0, 10, 0, 0.3085}, {8, 10, 0.4439, 0.9748}, {10, 10, 0.6915, 1}, {50, 100, 0.3983, 0.6017}} {
		low, high := interval(c.k, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// TestRun tries every mutant of two lines: one whose result a test of its package
// checks, one that only a dependent's test reaches, and constants no test looks at.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.26\n",
		"a/a.go":      "package a\n\nfunc Sum(x, y int) int { return x + y }\n\nfunc Twice(x int) int { return x * x }\n\nfunc Join(x string) string { return x + x }\n\nvar Unused = 3\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
		"b/b.go":      "package b\n",
		"b/b_test.go": "package b\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/a\"\n)\n\nfunc TestTwice(t *testing.T) {\n\tif a.Twice(3) != 9 {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-n", "3", "./a"}, []string{
			"killed    a/a.go:3: x + y  ->  x - y  [TestSum]",
			"killed    a/a.go:5: x * x  ->  x / x  [example.com/m/b TestTwice]",
			"survived  a/a.go:9: 3  ->  ",
			"\n          in  var Unused = 3\n",
			"2 of   3 killed  example.com/m/a",
			"2 of   3 killed: 67 %, 95 % interval 9 to 99 %",
		}},
		{[]string{"-dependents=false", "-at", "a/a.go:5", "./a"}, []string{
			"survived  a/a.go:5: x * x  ->  x / x\n",
			"0 of   1 killed: 0 %, 95 % interval 0 to 98 %",
		}},
		{[]string{"-at", "a/a.go:7", "./a"}, []string{""}}, // strings cannot be subtracted
	} {
		var out, progress strings.Builder
		if err := run(context.Background(), c.args, &out, &progress); err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, out.String())
			}
		}
	}
	if err := run(context.Background(), []string{"-at", "a/a.go:1", "./a"}, &strings.Builder{}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "no mutant there") {
		t.Errorf("a line without code: %v", err)
	}
}

func TestSwitches(t *testing.T) {
	for _, c := range []struct {
		source, want string // the copy's text, after the function
	}{
		{
			"func f(a, b int) int { return a + b }",
			"func f(a, b int) int { if mutantIs(1) { return f__1(a, b) }; return a + b }\n\nfunc f__1(a, b int) int { return a - b }",
		},
		{
			"func f(n ...int) { g(n[0] < 0) }",
			"func f(n ...int) { if mutantIs(1) { f__1(n...); return }; g(n[0] < 0) }\n\nfunc f__1(n ...int) { g(n[0] <= 0) }",
		},
		{
			"func (T) f(int, string) (n int) { return x / y }",
			"func (mutantArgument1 T) f(mutantArgument2 int, mutantArgument3 string) (n int) { if mutantIs(1) { return mutantArgument1.f__1(mutantArgument2, mutantArgument3) }; return x / y }\n\n" +
				"func (mutantArgument1 T) f__1(mutantArgument2 int, mutantArgument3 string) (n int) { return x * y }",
		},
		{
			"func f[K comparable, V any](m map[K]V) bool { return !m }",
			"func f[K comparable, V any](m map[K]V) bool { if mutantIs(1) { return f__1[K, V](m) }; return !m }\n\nfunc f__1[K comparable, V any](m map[K]V) bool { return m }",
		},
	} {
		source := []byte("package p\n" + c.source + "\n")
		mutants, err := mutantsOf("p.go", source)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		slices.SortFunc(mutants, func(a, b mutant) int { return len(a.was) - len(b.was) })
		m := &mutants[len(mutants)-1]
		if i := slices.IndexFunc(mutants, func(m mutant) bool { return m.was == "n[0] < 0" }); i >= 0 {
			m = &mutants[i]
		}
		m.number = 1
		got, err := switches(source, []*mutant{m})
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		if text := strings.TrimSpace(strings.TrimPrefix(string(got.text), "package p")); text != c.want {
			t.Errorf("got\n%s\nwant\n%s", text, c.want)
		}
		if want := (copied{m, 4, 4}); len(got.outside) != 0 || len(got.copies) != 1 || got.copies[0] != want {
			t.Errorf("%s: copies %v and %v, want %v", c.source, got.copies, got.outside, want)
		}
	}
}

func TestParseEquivalents(t *testing.T) {
	got, err := parseEquivalents("# comment\n\na.go: x < y  ->  x <= y\n\tboth branches return x\n")
	if want := map[string]string{"a.go: x < y  ->  x <= y": "both branches return x"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
	for text, want := range map[string]string{
		"a.go: 1  ->  2\n":                      "a.go: 1  ->  2 has no reason",
		"\treason\n":                            "equivalent.txt:1: ",
		"a.go: 1  ->  2\na.go: 3  ->  4\n\tx\n": "equivalent.txt:2: ",
	} {
		if _, err := parseEquivalents(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := parseEquivalents(equivalents); err != nil {
		t.Error(err)
	}
}

// Every package of metrics/scaling that has tests is drawn from.
func TestNumeric(t *testing.T) {
	packages, err := list(context.Background(), []string{"../../../metrics/scaling/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		tested := len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		if got := slices.Contains(numeric, "./"+p.short()); got != tested {
			t.Errorf("%s: drawn from: %v, has tests: %v", p.short(), got, tested)
		}
	}
	for _, p := range numeric {
		if _, err := os.Stat(filepath.Join("..", "..", "..", p)); err != nil {
			t.Errorf("a package that is drawn from is gone: %v", err)
		}
	}
}

func TestLengthy(t *testing.T) {
	for pkg, want := range map[string]bool{
		"/cmd/scalebench": true, "/launcher": true, "/launcher/backend/slurm": true, "/launcher/workspace": true,
		"/launcher/workspace/query": false, "/launcher/study": false, "/metrics/store": false, "/slurm": false,
	} {
		if got := lengthy.MatchString(pkg); got != want {
			t.Errorf("%s: %v, want %v", pkg, got, want)
		}
	}
}
