package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

var errSilent = errors.New("the cluster does not answer")

func TestPartitions(t *testing.T) {
	site := &study.Site{File: "site.toml", Partitions: []study.Partition{{Name: "main"}, {Name: "gpuu"}}}
	plan := &study.Plan{Points: []study.Planned{{Partition: "main"}, {Partition: "gpuu"}, {Partition: "gpuu"}, {}}}
	for name, c := range map[string]struct {
		known []string
		asked error
		want  string
	}{
		"unknown":    {[]string{"main", "gpu"}, nil, `the cluster has no partition "gpuu"; it has main, gpu`},
		"none shown": {nil, nil, ""},
		"no answer":  {nil, errSilent, ""},
	} {
		problems, err := CheckPartitions(t.Context(), func(context.Context, *study.Site) ([]string, error) { return c.known, c.asked }, site, plan)
		if !errors.Is(err, c.asked) {
			t.Errorf("%s: %v, want %v", name, err, c.asked)
		}
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || problems[0].Message != c.want || problems[0].Path != "partitions[1].name") {
			t.Errorf("%s: %v, want %q", name, problems, c.want)
		}
	}
}
