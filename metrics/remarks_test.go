package metrics

import (
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	for tag, valid := range map[string]bool{
		"a": true, "paper.2026": true, "été_1+-": true, strings.Repeat("é", 64): true,
		"": false, "-a": false, "a b": false, "a\n": false, "a;b": false, strings.Repeat("é", 65): false,
	} {
		if err := (Remarks{Tags: []string{tag}}).Check(); (err == nil) != valid {
			t.Errorf("%q: %v, want valid: %v", tag, err, valid)
		}
	}
}
