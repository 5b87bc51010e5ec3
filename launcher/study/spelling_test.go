package study

import (
	"fmt"
	"testing"
)

func TestNear(t *testing.T) {
	names := []string{"check", "render", "run", "runs", "--format"}
	for word, want := range map[string]string{"chekc": "[check]", "formt": "[--format]", "rns": "[runs]", "xyzzy": "[]", "": "[]"} {
		if got := fmt.Sprint(NearWords(word, names)); got != want {
			t.Errorf("Near(%q) = %s, want %s", word, got, want)
		}
	}
}
