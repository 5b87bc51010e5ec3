package examples

import (
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
)

// Every example is a valid study with its own site, if it has one.
func TestExamplesPlan(t *testing.T) {
	files, err := filepath.Glob("*/study.toml")
	if err != nil || len(files) < 3 {
		t.Fatalf("studies %v, %v", files, err)
	}
	for _, file := range files {
		s, err := study.Load(file, framework.ForStudy())
		if err != nil {
			t.Error(err)
			continue
		}
		sites := []*study.Site{study.DefaultSite()}
		if site, err := study.LoadSite(filepath.Join(filepath.Dir(file), "site.toml")); err == nil {
			sites = append(sites, site)
		} else if file == "first/study.toml" {
			t.Error(err)
		}
		for _, site := range sites {
			if _, err := s.Plan(site); err != nil {
				t.Error(err)
			}
		}
	}
}
