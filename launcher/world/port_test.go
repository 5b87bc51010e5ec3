package world

import (
	"testing"
	"testing/fstest"
)

// A free port is outside the range that the kernel assigns automatically.
func TestPortOutside(t *testing.T) {
	for text, want := range map[string][2]int{"32768\t60999\n": {32768, 60999}, "1024 65535": {1024, 65535}, "9000 60000": {9000, 60000},
		"": {32768, 60999}, "7": {32768, 60999}, "9 8": {32768, 60999}, "x y": {32768, 60999}} {
		root := fstest.MapFS{"proc/sys/net/ipv4/ip_local_port_range": {Data: []byte(text)}}
		first, last := ephemeral(root)
		if first != want[0] || last != want[1] {
			t.Errorf("%q: %d to %d, want %d to %d", text, first, last, want[0], want[1])
		}
		for range 1000 {
			p := portOutside(first, last)
			if few := text == "1024 65535"; few != (p == 0) || !few && (p < firstPort || p > lastPort || p >= first && p <= last) {
				t.Fatalf("%q: port %d", text, p)
			}
		}
	}
}
