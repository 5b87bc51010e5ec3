package slurm

import (
	"strings"
	"testing"
)

func TestMounts(t *testing.T) {
	for mount, valid := range map[string]bool{
		"/a:/b": true, "/a:/b:ro": true, "/a:/b:": true,
		"": false, ":": false, "/a": false, "/a:": false, ":/b": false, "::": false, "/a::ro": false, ":/b:ro": false,
		"/a:/b:ro:x": false, "/a:/b,/c:/d": false, "/a,/b": false,
	} {
		s := plainScript()
		s.Container = Container{Runtime: "pyxis", Image: "x", Mounts: []string{mount}}
		err := s.Validate()
		if valid != (err == nil) {
			t.Errorf("mount %q: %v, want valid: %v", mount, err, valid)
		}
		if err != nil && !strings.Contains(err.Error(), "SOURCE:TARGET") {
			t.Errorf("mount %q: no form in: %v", mount, err)
		}
	}
}
