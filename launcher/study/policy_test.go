package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyOverDefaults(t *testing.T) {
	want := Policy{Order: "blocks", ExcludeFailedNodes: true, Packing: "job", Retries: Retries{NodeFailed: 2, Preempted: 2, Lost: 1}}
	if d := cmp.Diff(want, parse(t, minimal).Policy); d != "" {
		t.Errorf("without the table (-want +got):\n%s", d)
	}
	want = Policy{MaxInFlight: 8, Rate: 10, Order: "largest", Chain: true, Requeue: true, ExcludeFailedNodes: false, Packing: "array",
		Retries: Retries{NodeFailed: 2, Preempted: 0, TimedOut: 1, Lost: 1}}
	got := parse(t, minimal+`
[policy]
max_in_flight = 8
rate = 10
order = "largest"
chain = true
requeue = true
exclude_failed_nodes = false
packing = "array"
[policy.retries]
preempted = 0
timed_out = 1
`).Policy
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPolicyProblems(t *testing.T) {
	_, err := Parse("study.toml", []byte(minimal+`
[policy]
max_in_flight = -1
rate = -2.5
order = "random"
retry = 3
chain = "yes"
[policy.retries]
node_failed = 101
cancelled = 1
`), frameworks)
	if err == nil {
		t.Fatal("no problem was found")
	}
	for _, want := range []string{
		"study.toml:11: policy.max_in_flight: want 0 to 100000, got -1",
		"study.toml:12: policy.rate: want 0 or more, got -2.5",
		`study.toml:13: policy.order: "random" is not known; valid: "blocks", "plan", "largest"`,
		"study.toml:14: policy.retry: unknown key; did you mean retries? Valid here: max_in_flight, rate, order, chain, requeue, exclude_failed_nodes, packing, retries",
		"study.toml:15: policy.chain: ",
		"study.toml:17: policy.retries.node_failed: want 0 to 100, got 101",
		"study.toml:18: policy.retries.cancelled: unknown key; valid here: node_failed, preempted, timed_out, out_of_memory, failed, lost",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 7 {
		t.Errorf("%d problems, want 7:\n%v", got, err)
	}
}

// The policy only affects submission: it changes no identity and cannot be swept.
func TestPolicyDoesNotChangeIdentity(t *testing.T) {
	site := DefaultSite()
	plain := plan(t, parse(t, minimal), site)
	ordered := plan(t, parse(t, minimal+"[policy]\norder = \"largest\"\nmax_in_flight = 3\nrequeue = true\n"), site)
	if d := cmp.Diff(plain, ordered); d != "" {
		t.Errorf("the plan differs:\n%s", d)
	}
	_, err := Parse("study.toml", []byte(minimal+"max_in_flight = [1, 2]\n"), frameworks)
	if err == nil || !strings.Contains(err.Error(), "sweep.max_in_flight: cannot be swept") {
		t.Errorf("a swept policy: %v", err)
	}
}
