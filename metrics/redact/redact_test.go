package redact

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for _, name := range []string{"PASSWORD", "password", "DB_PASSWD", "--api-key", "apikey", "API_KEY", "OpenAIApiKey", "SLURM_vault_token", "hfToken",
		"HF_TOKEN", "token", "client_secret", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "SLURM_JWT", "privateKey",
		"ssh-key", "SSHKEY", "passphrase", "PGPASSWORD", "WANDB_API_KEY", "cred", "OAUTH2", "NCCL_Vault_Token", "accessKey", "parameters.api_key",
		"bearer_token", "X-Auth-Token", "AccountKey", "db.password", "csrfToken", "secrets"} {
		if !secretName(name) {
			t.Errorf("%s does not name a secret", name)
		}
	}
	for _, name := range []string{"--max-tokens", "tokens", "token_count", "KeyError", "tokenizer", "--tokenizer-path", "NCCL_DEBUG", "OMP_NUM_THREADS", "author", "SLURM_JOB_ID",
		"kv_token", "attn.key", "cache-key", "cache_key", "key", "KEY", "opt", "sort_key", "NCCL_IB_PKEY", "pad_token", "eosToken", "token_dim", "num_kv_tokens", "secretary",
		"token_id", "pin", "pass", "auth", "private", "secretary_mode", "tokenise", "keys", "primary.key", "--attn-key", "MAX_TOKEN",
		"--batch", "keyboard", "monotonic", "--compass", "secondary", "SLURM_JOB_NODELIST", "pinned", "credo"[:3]} {
		if secretName(name) {
			t.Errorf("%s names a secret", name)
		}
	}
}

const marker = "s3cr3tMARKERvalue"

// texts are command lines and messages with a marker instead of each secret.
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
	"<password>MARK</password>", "<db:Password type=\"text\">\n  a MARK b\n</db:Password>", `<add key="Password" value="MARK"/>`, `{"name": "DB_PASSWORD", "value": "MARK"}`,
	"- name: API_TOKEN\n  value: MARK", `{\"name\":\"HF_TOKEN\",\"value\":\"MARK\"}`,
	"https://host/login?next=%2Fa%3Ftoken%3DMARK%26x%3D1", "token%3DMARK", "a=1&b=api_key%253DMARK", "password%3da%20MARK", "https%3A%2F%2Fme%3AMARK%40host",
	"mysql -uroot -pMARK db", "/usr/bin/mysqldump --all-databases -pMARK >x", "sh -c 'mariadb-dump -h db -pMARK x'", "sshpass -p MARK ssh host", "sshpass -pMARK ssh host",
	"mongosh host -u me -p MARK", "docker login -u me -p MARK registry", "7z a -pMARK x.7z y", "unzip -P MARK x.zip", "redis-cli -h cache -a MARK", "ldapsearch -D cn=me -w MARK",
	`["mysql", "-pMARK"]`, `["sshpass", "-p", "MARK"]`, "https://discord.com/api/webhooks/123/MARK",
	"client -pMARK", `["client", "-pMARK"]`, "wrote Qm5xT2pZ8vKc4LwRj7NfYb3HsD6gAe9UMARK",
	"https://s3/x?a=1&X-Amz-Signature=MARK&b=2", "https://x/y?sv=2&sig=MARK", "https://x/y?Signature=MARK#z", "https://x?X-Amz-Security-Token=MARK", "Server=db;User=sa;Pwd=MARK;x=1",
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

// Text without secrets is unchanged.
func TestTextKeeps(t *testing.T) {
	for _, text := range []string{
		"", "rank 3: 4.2 GB/s over eth0", "--batch 64 --epochs 12 --lr 0.1", "tokens/s: 1234", "--max-tokens 512", "--tokenizer gpt2-large",
		"https://example.org/a?page=2#x", "ssh://git@github.com/x", "git@github.com:x/y.git", "the program ended with exit status 1; its output is in rank-00000.log",
		"study.toml:3: workload.batch: want 1 or more", "hf-trainer-state", "risk-averse-optimiser-2024", "basic assumptions hold", "sha256:0123456789abcdef",
		"keyboard interrupt", "author=somebody", "a key that nobody knows", "key: workload.batch", "write key=value, like workers=1",
		"study.toml:12: sweep.api_key: is a key of your own", "parameters.token: looks like a secret", "write KEY=VALUE", `--label "opt": write KEY=COLUMN, like platform=host`, "attn.key=fp16", "--cache-key=8", "kv_token=4k", "path/key=a1", "use_auth_token=True", "cc -pthread -parallel -p8",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Tokens with the lengths and characters that the services use.
func TestTokens(t *testing.T) {
	const letters, hex = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	some := func(of string, n int) string { return strings.Repeat(of, n/len(of)+1)[:n] }
	for _, token := range []string{
		"glsa_" + some(letters, 32) + "_" + some(hex, 8), "glc_" + some(letters, 60) + "==", "ATATT3" + some(letters, 186), "ATCTT3" + some(letters, 180), "ATBB" + some(letters, 32),
		"dapi" + some(hex, 32), "doo_v1_" + some(hex, 64), "dp.pt." + some(letters, 43), "dt0c01." + some(letters, 24) + "." + some(letters, 64), "glptt-" + some(hex, 40),
		"glrt-" + some(letters, 20), "glcbt-64_" + some(letters, 20), "npm_" + some(letters, 36), "rubygems_" + some(hex, 48), "pplx-" + some(letters, 48), "nvapi-" + some(letters, 64),
		"sk-ant-api03-" + some(letters, 93) + "AA", "hf_" + some(letters, 34), "GOCSPX-" + some(letters, 28), "AIza" + some(letters, 35), "HRKU-AA" + some(letters, 58),
		"pscale_tkn_" + some(letters, 43), "NRAK-" + some("QX7", 27), "PMAK-" + some(hex, 24) + "-" + some(hex, 34), "sntryu_" + some(hex, 64), "ntn_" + some("1234567890", 11) + some(letters, 35),
		"xkeysib-" + some(hex, 64) + "-" + some(letters, 16), "shpss_" + some(hex, 32), "rk_test_" + some(letters, 24), "sq0atp-" + some(letters, 22), "pul-" + some(hex, 40),
		"AKCp" + some(letters, 69), "ABSK" + some(letters, 120) + "==", "ops_eyJ" + some(letters, 250), "pat-na1-" + some(hex, 36), "key-" + some(hex, 32), "fo1_" + some(letters, 43),
		"fm2_" + some(letters, 90) + "+/" + some(letters, 9), "dckr_oat_" + some(letters, 27), "xoxe.xoxp-1-" + some(letters, 160), "aB3" + "8Q~" + some(letters, 34),
		"1234567890:AA" + some(letters, 33), some("abcd1", 14) + ".atlasv1." + some(letters, 60), "AROA" + some("ABCDEFGH23", 16), "sbp_" + some(hex, 40), "figd_" + some(letters, 40),
	} {
		for _, text := range []string{token, "error: " + token + " is not valid", "https://host/" + token + "/x", `["` + token + `"]`} {
			if got := Text(text); strings.Contains(got, token[len(token)-8:]) {
				t.Errorf("%q is left as %q", text, got)
			}
		}
	}
}

// ordinary has lines of commands and logs without secrets. It has no options whose names end in
// "key", because these may or may not be secrets.
//
//go:embed testdata/ordinary.txt
var ordinary string

// Text that only resembles a secret (hashes, identifiers, paths, words with a token's prefix) is
// unchanged, as text and as arguments.
func TestOrdinary(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(ordinary), "\n")
	if len(lines) < 100 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if got := Text(line); got != line {
			t.Errorf("%q became %q", line, got)
		}
		if got := Secrets(strings.Fields(line)); len(got) != 0 {
			t.Errorf("%q: as arguments, %q are secrets", line, got)
		}
	}
}

func TestArguments(t *testing.T) {
	key := Key("a key")
	got := strings.Join(key.Arguments([]string{"python3", "train.py", "--api-key", "a,b c", "--password=x,y z", "TOKEN=x;y", "--user", "me:pass", "--max-tokens", "5", "--verbose",
		"--env=PASSWORD=x y", "--user=me:pass", "-H", "X-Auth-Token: x y", "Cookie: session=ab1; x=y", "--token", "-x!y", "--use-auth", "--verbose",
		"client", "-pHunter2!", "-p8", "-p8080:80", "-parallel", "-pthread", "--use-auth-token", "true", "--cache-key=8", "-p", "8",
		"/usr/bin/mysql", "-px;y", "-P3306", "sshpass", "-p", "x y", "podman", "login", "-p", "-x"}), "|")
	want := strings.Join([]string{"python3", "train.py", "--api-key", key.Hide("a,b c"), "--password=" + key.Hide("x,y z"), "TOKEN=" + key.Hide("x;y"), "--user", "me:" + key.Hide("pass"), "--max-tokens", "5", "--verbose",
		"--env=PASSWORD=" + key.Hide("x y"), "--user=me:" + key.Hide("pass"), "-H", "X-Auth-Token: " + key.Hide("x y"), "Cookie: " + key.Hide("session=ab1; x=y"), "--token", key.Hide("-x!y"), "--use-auth", "--verbose",
		"client", "-p" + key.Hide("Hunter2!"), "-p8", "-p8080:80", "-parallel", "-pthread", "--use-auth-token", "true", "--cache-key=8", "-p", "8",
		"/usr/bin/mysql", "-p" + key.Hide("x;y"), "-P3306", "sshpass", "-p", key.Hide("x y"), "podman", "login", "-p", key.Hide("-x")}, "|")
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Equal secrets have equal digests, different ones have different digests, and without a key the
// digests cannot be compared.
func TestHide(t *testing.T) {
	a, b := Key("key a"), Key("key b")
	first, again := a.Hide("x"), a.Hide("x")
	switch {
	case first != again, a.Hide("x") == a.Hide("y"), a.Hide("x") == b.Hide("x"):
		t.Error("digests do not tell secrets apart")
	case Key(nil).Hide("x") != Withheld, a.Hide("") != "", a.Hide(b.Hide("x")) != b.Hide("x"), a.Hide("sealed-0123456789abcdef") != "withheld:0123456789abcdef":
		t.Error("hidden otherwise than documented")
	}
}

// The digest is the first 8 bytes of HMAC-SHA-256; RFC 4231, test case 2, has
// this one.
func TestDigest(t *testing.T) {
	if got, want := Key("Jefe").Hide("what do ya want for nothing?"), "withheld:5bdcc146bf60754e"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Texts that differ only in their secrets stay different, and equal texts stay equal. This also
// holds for values, arguments and lists.
func TestHidingKeepsIdentity(t *testing.T) {
	key := Key("a key")
	for _, form := range append(slices.Clone(texts), "attn.key=MARK", "--cache-key=MARK", "kv_token=MARK", "/data/key=MARK", "MARK") {
		seen := map[string]string{}
		for _, value := range []string{"fp16", "fp32", "4k", "8k", "A", "a", "1", "2", marker + "A", marker + "B", "withheld:0123456789abcdef"} {
			text := strings.ReplaceAll(form, "MARK", value)
			for kind, got := range map[string]string{"text": key.Text(text), "arguments": strings.Join(key.Arguments([]string{text}), " "),
				"pair": strings.Join(key.Arguments([]string{"--api-key", value}), " "), "named": key.Value("api_key", value).(string), "list": fmt.Sprint(key.Value("token", []any{value, "x"}))} {
				if other, known := seen[kind+got]; known && other != value {
					t.Errorf("%s of %q: %q and %q both become %q", kind, form, other, value, got)
				}
				seen[kind+got] = value
			}
			first := key.Text(text)
			if again := key.Text(text); again != first || !key.Matches(first, text) {
				t.Errorf("%q becomes %q, then %q, or does not match them", text, first, again)
			}
		}
	}
	if key.Value("password", int64(1)) == key.Value("password", int64(2)) || key.Value("batch", int64(64)) != any(int64(64)) {
		t.Error("numbers are hidden otherwise than texts")
	}
}

func TestMatches(t *testing.T) {
	key := Key("a key")
	old := func(secret string) string { return strings.Replace(key.Hide(secret), "withheld:", "sealed-", 1) }
	for _, c := range []struct {
		hidden, plain string
		want          bool
	}{
		{"COLOR=" + old("blue"), "COLOR=blue", true}, {"COLOR=" + old("blue"), "COLOR=red", false}, {"COLOR=" + key.Hide("blue"), "COLOR=blue", true},
		{"blue", "blue", true}, {"blue", "red", false}, {"a " + old("x") + " b " + old("yy"), "a x b yy", true}, {"a " + old("x") + " b " + old("yy"), "a x b y", false},
		{old("x") + old("y"), "xy", true}, {old("x"), "xy", false}, {"no " + old("x"), "x", false}, {old("x"), "", false}, {old("x"), old("x"), true},
	} {
		if got := key.Matches(c.hidden, c.plain); got != c.want {
			t.Errorf("%q, %q: %t", c.hidden, c.plain, got)
		}
	}
}

func TestMerged(t *testing.T) {
	for text, want := range map[string]bool{"": false, "withheld": true, "--api-key=withheld": true, "withheld:0123456789abcdef": false,
		"withheld:0123456789abcdef,withheld": true, "sealed-0123456789abcdef": false} {
		if Merged(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
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

// Variables with names of secrets are secrets, but not those that contain a path.
func TestVariables(t *testing.T) {
	got := Variables([]string{"API_TOKEN=abc", "PWD=/home/user1/key9", "SSH_AUTH_SOCK=/tmp/ssh-X1/agent.1", "MAX_TOKENS=4096",
		"db_password=/a/b", "KEY=x1y2z3w4", "EMPTY_SECRET=", "PATH=/bin", "no variable"})
	want := []string{"abc", "/a/b", "x1y2z3w4"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
