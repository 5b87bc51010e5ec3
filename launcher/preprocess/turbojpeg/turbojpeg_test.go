package turbojpeg

import (
	"strings"
	"testing"
)

// What cannot be loaded is named, with where to get it.
func TestOpenRefuses(t *testing.T) {
	_, err := Open(func(string) string { return "/nowhere/libturbojpeg.so" })
	if err == nil || !strings.Contains(err.Error(), "/nowhere/libturbojpeg.so") || !strings.Contains(err.Error(), "libturbojpeg0") {
		t.Error(err)
	}
}
