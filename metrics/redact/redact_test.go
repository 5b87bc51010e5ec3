package redact

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for _, name := range []string{"PASSWORD", "password", "DB_PASSWD", "--api-key", "apikey", "API_KEY", "OpenAIApiKey", "SLURM_vault_token", "hfToken",
		"HF_TOKEN", "token", "client_secret", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "SLURM_JWT", "auth", "X-Auth", "privateKey",
		"private", "ssh-key", "SSHKEY", "passphrase", "PGPASSWORD", "WANDB_API_KEY", "cred", "cookie", "OAUTH2", "NCCL_Vault_Token", "pwd", "accessKey"} {
		if !Name(name) {
			t.Errorf("%s does not name a secret", name)
		}
	}
	for _, name := range []string{"--max-tokens", "tokens", "tokenizer", "--tokenizer-path", "NCCL_DEBUG", "OMP_NUM_THREADS", "author", "SLURM_JOB_ID",
		"--batch", "keyboard", "monotonic", "--compass", "secondary", "SLURM_JOB_NODELIST", "pinned", "credo"[:3]} {
		if Name(name) {
			t.Errorf("%s names a secret", name)
		}
	}
}

const marker = "s3cr3tMARKERvalue"

// texts are command lines and messages with the marker in a secret's place.
var texts = []string{
	"--api-key MARK", `data.kind: "--token MARK" is not known`, `["run", "--token", "MARK"]`, "`--token MARK`", "--api-key=MARK", "--API_KEY MARK", "-token MARK", "--password 'MARK'", "--password=MARK --other 1", "TOKEN=MARK run",
	"export DB_PASSWORD=MARK; run", "https://user:MARK@host/path", "postgres://u:MARK@db:5432/x?y=1", "https://MARK@github.com/x.git",
	"https://host/x?api_key=MARK&y=1", "https://host/x?sig=MARK", "Authorization: Bearer MARK", "-H 'Authorization: Basic MARK=='", "authorization=Bearer MARK",
	"bearer MARK", `{"token": "MARK"}`, `{'password': 'MARK'}`, `password: MARK`, "X-Api-Key: MARK", "hf_MARK", "error: hf_MARK is not valid", "ghp_MARK",
	"github_pat_MARK", "glpat-MARK", "AKIAMARKUPPERCASE123", "sk-MARK", "sk-proj-MARK", "xoxb-12-MARK", "eyJhbGciOiJI.MARK.sig", "npm_MARK", "AIzaMARK",
	"-----BEGIN RSA PRIVATE KEY-----\nMARK\n-----END RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\nMARK", "https://hooks.slack.com/services/T0/B0/MARK",
	"curl -u user:MARK https://x", "Server=x;AccountKey=MARK;y=1", "Cookie: a=MARK", "secret='a MARK b'", `"client_secret" : "a \"MARK\" b"`, "ftp://u:p@MARK@host/",
	`"password": MARK`, `"password": [MARK]`, `{\"token\": \"MARK\"}`, `"api_key"='MARK'`, `"secret" => "MARK"`, "PASSWORD = MARK", `password := "MARK"`,
	`password=\"MARK\"`, "--set=password=MARK", "run --from-literal=db.password=MARK", "sh -c \"run --password 'a MARK'\"", `run --password "a MARK"`,
	`["--token","MARK"]`, `[\"--token\",\"MARK\"]`,
	"vault hvs.MARK", "redis://:MARK@cache:6379/0", "--auth.token=MARK", "credentials=MARK",
}

func TestText(t *testing.T) {
	for _, key := range []Key{nil, Key("a key")} {
		for _, text := range texts {
			secret := marker
			if strings.HasPrefix(text, "AKIA") {
				secret = "UPPERCASE"
			}
			text = strings.ReplaceAll(text, "MARK", marker)
			if strings.HasPrefix(text, "AKIA") {
				text = "AKIAUPPERCASE1234567"
			}
			got := key.Text(text)
			if strings.Contains(got, secret) {
				t.Errorf("%q is left as %q", text, got)
			}
			if again := Text(got); again != got {
				t.Errorf("%q hidden twice: %q, then %q", text, got, again)
			}
		}
	}
}

// What is no secret stays as it is.
func TestTextKeeps(t *testing.T) {
	for _, text := range []string{
		"", "rank 3: 4.2 GB/s over eth0", "--batch 64 --epochs 12 --lr 0.1", "tokens/s: 1234", "--max-tokens 512", "--tokenizer gpt2-large",
		"https://example.org/a?page=2#x", "ssh://git@github.com/x", "git@github.com:x/y.git", "the program ended with exit status 1; its output is in rank-00000.log",
		"study.toml:3: workload.batch: want 1 or more", "hf-trainer-state", "risk-averse-optimiser-2024", "basic assumptions hold", "sha256:0123456789abcdef",
		"keyboard interrupt", "author=somebody", "a key that nobody knows", "key: workload.batch", "write key=value, like workers=1",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestArguments(t *testing.T) {
	key := Key("a key")
	got := strings.Join(key.Arguments([]string{"python3", "train.py", "--api-key", "a,b c", "--password=x,y z", "TOKEN=x;y", "--user", "me:pass", "--max-tokens", "5", "--verbose",
		"--env=PASSWORD=x y", "--user=me:pass", "-H", "X-Auth-Token: x y", "--token", "-x!y", "--use-auth", "--verbose"}), "|")
	want := strings.Join([]string{"python3", "train.py", "--api-key", key.Hide("a,b c"), "--password=" + key.Hide("x,y z"), "TOKEN=" + key.Hide("x;y"), "--user", "me:" + key.Hide("pass"), "--max-tokens", "5", "--verbose",
		"--env=PASSWORD=" + key.Hide("x y"), "--user=me:" + key.Hide("pass"), "-H", "X-Auth-Token: " + key.Hide("x y"), "--token", key.Hide("-x!y"), "--use-auth", "--verbose"}, "|")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Equal secrets have equal digests, others have others, and without the key
// nothing can be compared.
func TestHide(t *testing.T) {
	a, b := Key("key a"), Key("key b")
	first, again := a.Hide("x"), a.Hide("x")
	switch {
	case first != again, a.Hide("x") == a.Hide("y"), a.Hide("x") == b.Hide("x"):
		t.Error("digests do not tell secrets apart")
	case Key(nil).Hide("x") != Withheld, a.Hide("") != "", a.Hide(b.Hide("x")) != b.Hide("x"):
		t.Error("hidden otherwise than documented")
	}
}

func TestKnown(t *testing.T) {
	hide := Known([]string{"hunter2hunter2", "hunter2", "INFO", Withheld})
	if got, want := hide("failed with hunter2hunter2 and hunter2, INFO"), "failed with withheld and withheld, INFO"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzText(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if twice := Text(once); twice != once {
			t.Errorf("%q: %q, then %q", text, once, twice)
		}
	})
}
