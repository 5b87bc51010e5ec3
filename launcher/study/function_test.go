package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A point's own files are relative to the study file's folder. In the run folder they have
// their base names, so two must not share one.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"models/net.py", "models/net2.py", "data/net.py"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x = 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	planOf := func(model, data string) (*Plan, error) {
		source := strings.Replace(minimal, "cnn", model, 1) + "[data]\nkind = \"" + data + "\"\n"
		s, err := Parse(filepath.Join(dir, "study.toml"), []byte(source), frameworks)
		if err != nil {
			return nil, err
		}
		return s.Plan(DefaultSite())
	}
	p, err := planOf("models/net.py:build", "models/net2.py:load_it")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"net.py": filepath.Join(dir, "models/net.py"), "net2.py": filepath.Join(dir, "models/net2.py")}
	if diff := cmp.Diff(want, p.Points[0].Files); diff != "" {
		t.Error(diff)
	}
	if p.Points[0].Point.Workload.Train.Model != "models/net.py:build" {
		t.Errorf("the key is %q, not as it is written", p.Points[0].Point.Workload.Train.Model)
	}
	if p, err := planOf("cnn", "synthetic"); err != nil || p.Points[0].Files != nil {
		t.Errorf("%v, %v of a study without own files", p, err)
	}
	for _, c := range []struct{ model, data, want string }{
		{"models/net.py:build", "data/net.py:load", "10: data.kind: " + dir + "/models/net.py and "},
		{"elsewhere.py:build", "cifar10", "5: workload.model: elsewhere.py cannot be read"},
		{"cnn", "models:load", `10: data.kind: "models:load" is not known; valid: "cifar10", "synthetic", "text", "tokens", or a function of your own`},
	} {
		if _, err := planOf(c.model, c.data); err == nil || !strings.Contains(err.Error(), "study.toml:"+c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, %s: %v; want %s", c.model, c.data, err, c.want)
		}
	}
}

func TestParseFunction(t *testing.T) {
	for text, want := range map[string]Function{
		"a.py:f": {"a.py", "f"}, "../m/a.b.py:_f2": {"../m/a.b.py", "_f2"},
		"resnet20": {}, "a.py": {}, "a.py:": {}, ":f": {}, "a.py:f()": {}, "a.py:2f": {}, ".py:f": {},
	} {
		if got, ok := ParseFunction(text); got != want || ok != (want != Function{}) {
			t.Errorf("%q is %+v, %t", text, got, ok)
		}
	}
}
