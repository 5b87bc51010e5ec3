package notation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	// As `scontrol show hostnames` of Slurm 22.05 prints them; it refuses names with text after the last
	// bracket, which newer versions may accept.
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"(null)", nil},
		{"None assigned", nil},
		{"node1", []string{"node1"}},
		{"node[1-3,07],gpu9", []string{"node1", "node2", "node3", "node07", "gpu9"}},
		{"n[08-11]", []string{"n08", "n09", "n10", "n11"}},
		{"r[1-2]n[01-02]", []string{"r1n01", "r1n02", "r2n01", "r2n02"}},
		{"a[1-2]-ib,b", []string{"a1-ib", "a2-ib", "b"}},
		{"x,x", []string{"x", "x"}},
		{"[1-2]", []string{"1", "2"}},
		{"n[999999999999999998-999999999999999999]", []string{"n999999999999999998", "n999999999999999999"}},
	}
	for _, tt := range tests {
		got, err := ExpandHosts(tt.in)
		if err != nil {
			t.Errorf("Expand(%q): %v", tt.in, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Expand(%q) (-want +got):\n%s", tt.in, d)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"node[1-3", "never closed"},
		{"node1-3]", "a ']' without '[' at byte 8"},
		{"node[1[2]]", "a second '[' at byte 7 before"},
		{"node[]", "neither a number"},
		{"node[a-b]", "neither a number"},
		{"node[1-]", "neither a number"},
		{"node[-1]", "neither a number"},
		{"node[3-1]", "ends before it starts"},
		{"a,,b", "empty name"},
		{"a,", "empty name"},
		{"a b", "character at byte 2"},
		{"a\x7fb", "character at byte 2"},
		{"node[+1]", "neither a number"},
		{"node[1_0]", "neither a number"},
		{"node[0000000000000000001]", "neither a number"}, // 19 digits
		{"a[1-65537]", "more than 65536"},
		{"a[1-65536],b", "more than 65536"},
		{"a[0-999][0-999]", "more than 65536"},
		{"a[0-999999999999999999][0-999999999999999999][0-999999999999999999]", "more than 65536"},
		{"a[1-9999999999999999999999]", "neither a number"},
		{strings.Repeat("a", maxLength+1), "longer than"},
		{"[" + strings.Repeat("1", 79), "node list \"[" + strings.Repeat("1", 79) + "\": "},
		{"[" + strings.Repeat("1", 80), "node list \"[" + strings.Repeat("1", 79) + "\"…: "},
	}
	for _, tt := range tests {
		got, err := ExpandHosts(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
			t.Errorf("Expand(%.40q) = %d hosts, %v; want an error with %q", tt.in, len(got), err, tt.want)
		}
	}
}

func TestExpandUpToMax(t *testing.T) {
	got, err := ExpandHosts("a[1-65536]")
	if err != nil || len(got) != maxHosts || got[maxHosts-1] != "a65536" {
		t.Fatalf("%d hosts, %v", len(got), err)
	}
}

// FuzzExpand checks that the expanded names, joined with commas, expand to themselves.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"node[1-3,07],gpu9", "r[1-2]n[01-02]", "a[08-11]-ib,b", "a[0-9][0-9][0-9][0-9]",
		"x000000000000000000001", "a[999999999999999998-999999999999999999]", "None assigned", "[1-2],[2-3]", "a[1", "a]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hosts, err := ExpandHosts(s)
		if err != nil {
			if hosts != nil {
				t.Fatalf("hosts beside an error: %q", hosts)
			}
			return
		}
		if len(hosts) > maxHosts {
			t.Fatalf("%d hosts", len(hosts))
		}
		if slices.Contains(hosts, "(null)") { // a valid expression can produce it, but it is not a host
			return
		}
		again, err := ExpandHosts(strings.Join(hosts, ","))
		if err != nil || !slices.Equal(hosts, again) {
			t.Fatalf("%q expands to %q, which expands to %q (%v)", s, hosts, again, err)
		}
	})
}
