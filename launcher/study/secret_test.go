package study

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/redact"
)

// secretPlaces are parts of a study that may contain a secret, marked by MARK. In keyed ones, a
// digest replaces it; in others, the identity includes the value itself.
var secretPlaces = []struct {
	command, parameters string
	keyed               bool
}{
	{command: `environment = { COLOR = "MARK" }`},
	{command: `environment = { API_TOKEN = "MARK" }`, keyed: true},
	{command: `environment = { ADDRESS = "https://me:MARK@host/" }`, keyed: true},
	{command: `run = ["train", "--api-key", "MARK"]`, keyed: true},
	{command: `run = ["train", "--password=MARK", "x"]`, keyed: true},
	{command: `run = ["train", "--env=PASSWORD=MARK"]`, keyed: true},
	{command: `run = ["mysql", "-pMARK"]`, keyed: true},
	{command: `run = ["train", "--cache-key=MARK"]`},
	{command: `run = ["train", "attn.key=MARK", "kv_token=MARK"]`},
	{command: `run = ["train", "{\"client_secret\": \"MARK\"}"]`, keyed: true},
	{command: `directory = "token=MARK"`, keyed: true},
	{command: `run = "train {api_key}"`, parameters: `api_key = "MARK"`, keyed: true},
	{command: `run = "train {url}"`, parameters: `url = "https://me:MARK@host/"`, keyed: true},
	{command: `run = "train {kv_token}"`, parameters: `kv_token = "MARK"`},
	{command: `run = "train {where}"`, parameters: `where = "data/key=MARK"`},
}

func secretPlan(t *testing.T, file string, place int, value string, key redact.Key) *Plan {
	t.Helper()
	p := secretPlaces[place]
	command := p.command
	if !strings.Contains(command, "run = ") {
		command += "\nrun = \"train\""
	}
	source := fmt.Sprintf("[study]\nname = \"s\"\n[command]\n%s\n[parameters]\n%s\n[sweep]\nframework = [\"command\"]\nworkers = [1, 2]\n", command, p.parameters)
	s, err := Parse(file, []byte(strings.ReplaceAll(source, "MARK", value)), append(slices.Clone(frameworks), program))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	if s.Key = key; p.keyed && !s.Secret() {
		t.Fatalf("%s has no secret", source)
	}
	plan, err := s.Plan(DefaultSite())
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return plan
}

// Different values give different points with different labels, and equal values equal
// ones. Another key changes only names with a secret, and records never contain one.
func TestSecretsKeepIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "study.toml")
	one, two := redact.NewKey(), redact.NewKey()
	values := []string{"fp16x1", "fp32x1", "4k", "8k", "A", "a", "hunter2hunter2", "hunter2hunter3"}
	for place, p := range secretPlaces {
		names, labels := map[string]string{}, map[string]string{}
		for _, value := range values {
			plan := secretPlan(t, file, place, value, one)
			for i := range plan.Points {
				point := &plan.Points[i].Point
				text, err := json.Marshal(point.Parameters())
				if err != nil {
					t.Fatal(err)
				}
				for _, seen := range []struct {
					in  map[string]string
					key string
				}{{names, point.ID}, {labels, fmt.Sprint(point.Workers, string(text))}} {
					if other, known := seen.in[seen.key]; known {
						t.Errorf("%s: %q and %q are both %s", p.command, other, value, seen.key)
					}
					seen.in[seen.key] = value
				}
				record, err := json.Marshal(plan.Points[i])
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(value, "hunter") && p.keyed && strings.Contains(string(record), value) {
					t.Errorf("%s: the plan has the secret: %s", p.command, record)
				}
				again := secretPlan(t, file, place, value, one)
				if again.Points[i].Point.ID != point.ID {
					t.Errorf("%s: %q has two names", p.command, value)
				}
				// A value that looks random is a secret in any variable.
				other := secretPlan(t, file, place, value, two)
				if same := other.Points[i].Point.ID == point.ID; same == p.keyed && !strings.HasPrefix(value, "hunter") {
					t.Errorf("%s: %q with another key: same name: %t", p.command, value, same)
				}
			}
		}
	}
}

// formerly returns a planned point as an earlier version recorded it: with digests of every
// variable and of options ending in "key", unsealed parameters, and another name.
func formerly(p Planned, key redact.Key, id string) Point {
	old := p.whole()
	seal := func(value string) string {
		digest := strings.TrimPrefix(key.Hide(value), "withheld:")
		if _, err := hex.DecodeString(digest); err != nil {
			return value
		}
		return "sealed-" + digest
	}
	environment := Variables{}
	for name, value := range old.Command.Environment {
		environment[name] = seal(value)
	}
	if old.Command.Environment != nil {
		old.Command.Environment = environment
	}
	old.Command.Run = slices.Clone(old.Command.Run)
	for i, argument := range old.Command.Run {
		if name, value, found := strings.Cut(argument, "="); found && strings.HasSuffix(name, "key") {
			old.Command.Run[i] = name + "=" + seal(value)
		}
	}
	old.ID = id
	return old
}

// Only points that are equal to points of an earlier version keep their names.
func TestAdopt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "study.toml")
	key, other := redact.NewKey(), redact.NewKey()
	for place, p := range secretPlaces {
		before := secretPlan(t, file, place, "hunter2hunter2", key)
		earlier := []Point{formerly(before.Points[1], key, "command-w2-0000000000"), formerly(before.Points[0], key, "command-w1-0000000000")}
		now := secretPlan(t, file, place, "hunter2hunter2", other)
		now.Adopt(earlier, nil, key)
		for i, want := range []string{"command-w1-0000000000", "command-w2-0000000000"} {
			if got := now.Points[i].Point.ID; got != want {
				t.Errorf("%s: %s, want %s", p.command, got, want)
			}
		}
		// The current records give the same names again.
		again := secretPlan(t, file, place, "hunter2hunter2", other)
		again.Adopt([]Point{now.Points[0].Point, now.Points[1].Point}, other)
		if again.Points[0].Point.ID != now.Points[0].Point.ID {
			t.Errorf("%s: the name was lost", p.command)
		}
		changed := secretPlan(t, file, place, "hunter2hunter3", key)
		id := changed.Points[0].Point.ID
		if changed.Adopt(earlier, key); changed.Points[0].Point.ID != id {
			t.Errorf("%s: took the results of another value", p.command)
		}
	}
}

// The permissions of a frozen study.
func TestModeOfSecrets(t *testing.T) {
	for text, private := range map[string]bool{
		"[parameters]\napi_key = \"alpha\"\n": true, "[parameters]\nrate = 1\n": false, "[parameters]\nkv_token = \"4k\"\n": false,
		"# https://me:hunter2@host/\n": true,
	} {
		s, err := Parse("study.toml", []byte(ownProgram[:strings.Index(ownProgram, "[parameters]")]+"[sweep]\nframework = [\"command\"]\nworkers = [1]\n"+text), append(slices.Clone(frameworks), program))
		if err != nil {
			t.Fatal(err)
		}
		s.mode = 0o644
		if got := s.Mode() == 0o600; got != private {
			t.Errorf("%s: %v", text, s.Mode())
		}
	}
}
