package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/table"
)

// hideouts are places of a study that may contain a secret, with %s for the secret: arguments
// and variables of [command].
var hideouts = struct{ arguments, variables []string }{
	[]string{"--api-key", "%s", "--password=%s", "TOKEN=%s", "--url", "https://user:%s@host/p", "--header", "Authorization: Bearer %s", "hf_%s", "ghp_%s",
		"AKIA%s", "sk-%s", "eyJhbGciOiJIUzI1NiJ9.%s.x", "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----", `{"client_secret": "%s"}`,
		"postgres://u:%s@db:5432/x", "--Auth-Token", "%s", "-u", "me:%s", "--credential=a,%s b", "X-Api-Key: %s", "https://host/?access_token=%s&x=1",
		"export AWS_SECRET_ACCESS_KEY=%s; true", "glpat-%s", "xoxb-1-%s", "https://%s@host/x.git", "https://hooks.slack.com/services/T0/B0/%s"},
	[]string{"API_TOKEN=%s", "PLAIN=%s", "lower_password=%s", "ADDRESS=http://%s", "LINES=a %s b"},
}

// siteHideouts are variables of the site that a rank's record would contain because of their
// prefix.
var siteHideouts = []string{"SLURM_vault_token=%s", "NCCL_Secret=%s", "OMP_SOURCE=https://u:%s@h/", "SITE_TOKEN=%s"}

// variantHideouts are variables of the site variant that the studies use.
var variantHideouts = []string{"VARIANT_PASSWORD=%s", "NCCL_HIDDEN_KEY=%s", "DATABASE=postgres://u:%s@db/x"}

// secrets generates secrets and keeps a list of them.
type secrets struct{ list []string }

func (s *secrets) in(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		if strings.Contains(text, "%s") {
			// Upper case and digits, as the strictest pattern requires.
			s.list = append(s.list, fmt.Sprintf("HIDDEN%02dQXZ7K9W4V", len(s.list)))
			text = strings.Replace(text, "%s", s.list[len(s.list)-1], 1)
		}
		list[i] = text
	}
	return list
}

// found returns the secrets that a text contains.
func (s *secrets) found(text []byte) []string {
	var list []string
	for _, secret := range s.list {
		if bytes.Contains(text, []byte(secret)) {
			list = append(list, secret)
		}
	}
	return list
}

// tomlList returns texts as a TOML list.
func tomlList(texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// hidingStudy returns a study whose command writes its own events and, if fails is set, fails
// with its arguments in the message.
func hidingStudy(name string, arguments, variables []string, fails bool) string {
	var environment []string
	for _, v := range variables {
		key, value, _ := strings.Cut(v, "=")
		environment = append(environment, fmt.Sprintf("%s = %q", key, value))
	}
	program := "train.sh"
	if fails {
		program = "fail.sh"
	}
	return fmt.Sprintf(`[study]
name = %q
site = "site.toml"
[command]
run = %s
environment = { %s }
[sweep]
framework = ["command"]
variant = ["secretive"]
workers = [1, 2]
`, name, tomlList(append([]string{"sh", program}, arguments...)), strings.Join(environment, ", "))
}

const hidingProgram = `
file=$SCALEBENCH_RUN/events/rank-0000$RANK-0.jsonl
cat >$file <<END
{"t":0,"start":{"format":1,"unix":1700000000,"writer":"rank","framework":"command","rank":$RANK,"world_size":$WORLD_SIZE,"local_rank":$RANK,"restart":0,"host":"h","pid":1}}
{"t":0,"train":{"global_batch":32}}
{"t":0,"note":{"text":"told $API_TOKEN and $PLAIN, password=$lower_password, $SITE_TOKEN, $VARIANT_PASSWORD, $NCCL_HIDDEN_KEY"}}
{"t":0,"figure":{"name":"f","value":1,"note":"at $ADDRESS"}}
{"t":6,"steps":{"first":0,"tick":0.5,"duration":[1,1,1,1,1,1,1,1,1,1,1,1],"samples":[32,32,32,32,32,32,32,32,32,32,32,32]}}
no event of $PLAIN
END
`

const hidingEnd = `
if [ "$0" = fail.sh ]; then
  echo '{"t":7,"error":{"where":"train","message":"401 for '$API_TOKEN' '$PLAIN' '$SITE_TOKEN' '$VARIANT_PASSWORD'"}}' >>$file
  echo '{"t":7,"stop":{"status":"failed","cause":"refused: '$PLAIN' '$NCCL_HIDDEN_KEY'","steps":12,"epochs":0}}' >>$file
  exit 7
fi
echo '{"t":7,"stop":{"status":"done","steps":12,"epochs":0}}' >>$file
`

// hidingPlace returns a folder with studies that contain secrets in all known places.
func hidingPlace(t *testing.T) (*localRun, *secrets) {
	t.Helper()
	s := &secrets{}
	arguments, variables := s.in(hideouts.arguments), s.in(hideouts.variables)
	site := fmt.Sprintf("worker = %q\n[environment]\n", buildWorker(t))
	table := func(variables []string) {
		for _, v := range s.in(variables) {
			key, value, _ := strings.Cut(v, "=")
			site += fmt.Sprintf("%s = %q\n", key, value)
		}
	}
	table(siteHideouts)
	site += "[[variant]]\nname = \"secretive\"\n[variant.environment]\n"
	table(variantHideouts)
	l := &localRun{dir: t.TempDir()}
	other := slices.Clone(variables)
	s.list = append(s.list, "HIDDENtheOTHERone55")
	other[0] = "API_TOKEN=HIDDENtheOTHERone55"
	for name, text := range map[string]string{
		"good.toml": hidingStudy("good", arguments, variables, false), "bad.toml": hidingStudy("bad", arguments, variables, true),
		"same.toml":  hidingStudy("same", arguments, variables, false),
		"other.toml": hidingStudy("other", arguments, other, false), "site.toml": site,
		"plain.toml": "worker = \"/bin/true\"\n[[variant]]\nname = \"secretive\"\nenvironment = { PLAIN = \"1\" }\n",
		"broken.toml": strings.Replace(hidingStudy("broken", arguments, variables, false), "batch = 32", "batch = -1", 1) +
			fmt.Sprintf("[data]\nkind = %q\n", "--token "+s.list[0]),
		"train.sh": hidingProgram + hidingEnd, "fail.sh": hidingProgram + hidingEnd,
		"prices.toml": "[[prices]]\nper = \"node\"\nhour = 1.5\ncurrency = \"EUR\"\n",
	} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l, s
}

// No output of any command, and no file meant for others, contains a secret of a study or
// its site.
func TestSecretsStayIn(t *testing.T) {
	l, s := hidingPlace(t)
	if len(s.list) < 30 {
		t.Fatalf("%d secrets", len(s.list))
	}
	before := files(t, l.dir)
	said := map[string][]byte{}
	say := func(want int, arguments ...string) []byte {
		t.Helper()
		cmd := l.scalebench(t, arguments...)
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		_ = cmd.Run() // the exit code says it
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", arguments, got, want, &out, &complaint)
		}
		both := append(out.Bytes(), complaint.Bytes()...)
		said[strings.Join(arguments, " ")] = both
		if leaked := s.found(both); len(leaked) > 0 {
			t.Errorf("%v prints %v:\n%s", arguments, leaked, both)
		}
		return out.Bytes()
	}
	say(0, "check", "good.toml")
	warnings := string(said["check good.toml"])
	for _, want := range []string{"API_TOKEN looks like a secret", "command.run[3]", "lower_password looks", "environment: SLURM_vault_token looks"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("check does not warn: no %q in\n%s", want, warnings)
		}
	}
	say(2, "check", "broken.toml")
	say(0, "run", "--oversubscribe", "-v", "good.toml")
	say(0, "run", "--oversubscribe", "same.toml")
	say(0, "run", "--oversubscribe", "other.toml")
	say(3, "run", "--oversubscribe", "bad.toml")
	say(3, "run", "--oversubscribe", "bad")
	say(0, "collect")
	say(0, "render", "good.toml", "--site", "plain.toml", "-o", "scripts")
	for _, format := range table.Formats {
		say(0, "runs", "--format", format)
		say(0, "status", "--format", format)
		say(0, "scaling", "good", "--format", format)
		say(0, "advise", "good", "--format", format)
		say(0, "cost", "good", "--site", "prices.toml", "--format", format)
		say(0, "compare", "good", "other", "--format", format)
		say(0, "history", "--format", format)
		for _, run := range []string{"good/command-w1", "good/command-w2", "other/command-w1"} {
			say(0, "show", run, "--format", format)
		}
	}
	if causes := said["status --format csv"]; !bytes.Contains(causes, []byte("401 for withheld")) {
		t.Errorf("status does not say why the runs failed:\n%s", causes)
	}
	for _, run := range regexp.MustCompile(`bad/\S+`).FindAllString(string(said["status --format csv"]), -1) {
		run, _, _ = strings.Cut(run, ",")
		for _, format := range table.Formats {
			say(0, "show", run, "--format", format)
		}
	}
	for _, kind := range []string{"speedup", "throughput", "efficiency"} {
		for _, extension := range []string{"svg", "png", "pdf"} {
			say(0, "plot", kind, "good", "-o", kind+"."+extension)
		}
	}
	say(0, "report", "good", "-o", "page.html")
	say(0, "report", "good", "-o", "page.md")
	say(0, "report", "other", "--site", "prices.toml", "-o", "other.html")

	checked := 0
	for path := range files(t, l.dir) {
		if _, ours := before[path]; ours {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		leaked := s.found(text)
		below, inRuns := strings.CutPrefix(path, filepath.Join(l.dir, "runs")+"/")
		switch base := filepath.Base(path); {
		case len(leaked) == 0:
		case !inRuns:
			t.Errorf("%s has %v", path, leaked)
		case base == "command.json" || base == "secrets.json" || base == "study.toml" || base == "site.toml":
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has secrets, and is %v", below, info.Mode())
			}
		case strings.HasPrefix(base, "rank-") && filepath.Base(filepath.Dir(path)) == "events": // the program's own
		default:
			t.Errorf("runs/%s has %v", below, leaked)
		}
	}
	if checked < 40 {
		t.Errorf("%d files were looked into", checked)
	}
	// In records and names, equal secrets look equal, and different ones different.
	digest := func(study string) (digest, point string) {
		out := string(say(0, "show", study+"/command-w1", "--format", "json"))
		m := regexp.MustCompile(`API_TOKEN=(withheld:[0-9a-f]{16})`).FindStringSubmatch(out)
		p := regexp.MustCompile(`"point": "([^"]*)"`).FindStringSubmatch(out)
		if m == nil || p == nil {
			t.Fatalf("no digest of API_TOKEN in\n%s", out)
		}
		return m[1], p[1]
	}
	good, goodPoint := digest("good")
	same, samePoint := digest("same")
	other, otherPoint := digest("other")
	if good != same || goodPoint != samePoint || good == other || goodPoint == otherPoint {
		t.Errorf("good %s %s, same %s %s, other %s %s", good, goodPoint, same, samePoint, other, otherPoint)
	}
}

// files returns all files below a folder.
func files(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	list := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			list[path] = info.Mode()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A run folder that was made by hand or by an older version has secrets in its point. These
// are not collected either.
func TestPlainPointIsCollectedWithoutSecrets(t *testing.T) {
	l, s := hidingPlace(t)
	run := func(arguments ...string) {
		t.Helper()
		if out, err := l.scalebench(t, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
	}
	run("run", "--oversubscribe", "-q", "good.toml")
	points, err := filepath.Glob(filepath.Join(l.dir, "runs/good/*/point.json"))
	if err != nil || len(points) != 2 {
		t.Fatalf("%v %v", points, err)
	}
	for _, path := range points {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`API_TOKEN=withheld:[0-9a-f]+`).ReplaceAll(text, []byte("API_TOKEN="+s.list[0]))
		text = regexp.MustCompile(`--password=withheld:[0-9a-f]+`).ReplaceAll(text, []byte("--password="+s.list[1]))
		if len(s.found(text)) != 2 {
			t.Fatalf("%s", text)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("collect", "--db", "again.db")
	if text, err := os.ReadFile(filepath.Join(l.dir, "again.db")); err != nil || len(s.found(text)) > 0 {
		t.Errorf("the database has %v (%v)", s.found(text), err)
	}
}

// No file or folder has more permissions than the umask allows. Files with secrets are always
// readable only by their owner.
func TestModes(t *testing.T) {
	for _, umask := range []fs.FileMode{0o022, 0o027, 0o077, 0o002} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			l, _ := hidingPlace(t)
			before := files(t, l.dir)
			bin := t.TempDir()
			program, err := os.Executable()
			if err == nil {
				err = os.Symlink(program, filepath.Join(bin, "scalebench"))
			}
			if err != nil {
				t.Fatal(err)
			}
			run := func(want int, arguments ...string) {
				t.Helper()
				cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf("umask %03o; exec \"$@\"", umask), "sh", filepath.Join(bin, "scalebench")}, arguments...)...)
				cmd.Dir, cmd.Env = l.dir, append(os.Environ(), "SCALEBENCH_DB="+filepath.Join(l.dir, "data/history.db"), "HOME="+l.dir)
				out, _ := cmd.CombinedOutput()
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Fatalf("%v: exit code %d, want %d\n%s", arguments, got, want, out)
				}
			}
			run(0, "init", "new")
			run(0, "check", "good.toml")
			run(0, "data", "synth", "images", "--train", "100", "--test", "50")
			run(0, "run", "--oversubscribe", "good.toml")
			run(0, "run", "--oversubscribe", "good") // frozen again
			run(3, "run", "--oversubscribe", "bad.toml")
			run(0, "collect")
			run(0, "render", "good.toml", "-o", "scripts")
			run(0, "plot", "speedup", "good", "-o", "speedup.png")
			run(0, "report", "good", "-o", "page.html")
			run(0, "report", "good", "-o", "page.md")
			private := 0
			err = filepath.WalkDir(l.dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || path == l.dir {
					return err
				}
				info, err := e.Info()
				if _, ours := before[path]; ours || err != nil {
					return err
				}
				most := 0o666 &^ umask
				if e.IsDir() || filepath.Ext(path) == ".sh" {
					most = 0o777 &^ umask
				}
				switch name := filepath.Base(path); {
				case name == "data" || strings.HasSuffix(path, "/data/history.db") || strings.HasSuffix(name, ".key"),
					slices.Contains([]string{"command.json", "secrets.json", "nonce"}, name), filepath.Ext(name) == ".sh",
					strings.Contains(path, "/runs/") && (name == "study.toml" || name == "site.toml"):
					most &= 0o700
					private++
				}
				if wider := info.Mode().Perm() &^ most; wider != 0 {
					t.Errorf("%s is %04o, at most %04o is meant", path, info.Mode().Perm(), most)
				}
				return nil
			})
			if err != nil || private < 10 {
				t.Errorf("%d private files, %v", private, err)
			}
		})
	}
}
