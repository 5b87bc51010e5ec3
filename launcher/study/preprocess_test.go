package study

import (
	"path/filepath"
	"strings"
	"testing"
)

const preprocessing = `
[study]
name = "prepare"
[workload]
kind = "preprocess"
source = "images"
[sweep]
workers = [1, 2]
cache = ["cold", "warm"]
`

// Folders are relative to the study file; a point has no keys of a training.
func TestPreprocessPoint(t *testing.T) {
	s, err := Parse("/home/u/prepare.toml", []byte(preprocessing), frameworks)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Points) != 4 {
		t.Fatalf("%d points", len(plan.Points))
	}
	p := plan.Points[0].Point
	w := p.Workload.Preprocess
	if w.Source != filepath.FromSlash("/home/u/images") || w.Target != "" || w.Crop != 224 || w.Format != "jpeg" || p.GlobalBatch != 0 || p.Data != (Data{}) {
		t.Errorf("%+v", p)
	}
}

func TestPreprocessProblems(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"no source":  {`source = "images"`, ``, "4: workload.source: missing; name the folder"},
		"format":     {`source = "images"`, "source = \"images\"\nformat = \"gif\"", `workload.format: "gif" is not known; valid: "jpeg", "tar", "tfrecord", "parquet", "cifar10", "csv"`},
		"bucket":     {`source = "images"`, `source = "s3://KEY:SECRET@bucket/images"`, "workload.source: want s3://BUCKET or s3://BUCKET/PREFIX"},
		"prefix":     {`source = "images"`, `source = "s3://bucket/a//b"`, "workload.source: has an empty part in its prefix"},
		"target":     {`source = "images"`, "source = \"images\"\ntarget = \"s3://KEY:SECRET@bucket/out\"", "workload.target: want s3://BUCKET or s3://BUCKET/PREFIX"},
		"shard":      {`source = "images"`, "source = \"images\"\ntarget = \"s3://bucket/out\"\nshard = \"65G\"", "workload.shard: an object is written in 10,000 parts"},
		"generate":   {`source = "images"`, "source = \"s3://bucket/images\"\ngenerate = 5", "workload.generate: makes samples in folders only"},
		"same":       {`workers = [1, 2]`, "workers = [1]\nsource = [\"s3://bucket/a\", \"s3://bucket/a/\"]", "sweep.source[1]: is the path of [0]"},
		"crop":       {`source = "images"`, "source = \"images\"\ncrop = 300", "workload.crop: cannot cut 300 pixels from a shorter side of 256"},
		"model":      {`source = "images"`, "source = \"images\"\nmodel = \"vgg\"", `workload.model: "vgg" is not known; valid: `},
		"unlabelled": {`source = "images"`, "source = \"images\"\nformat = \"tar\"\nmodel = \"cnn\"", `workload.model: is trained on samples whose class is known: those of format = "cifar10" or "jpeg", not "tar"`},
		"both":       {`source = "images"`, "source = \"images\"\nconsumer = 10\nmodel = \"cnn\"", "workload.consumer: is the rate of a simulated trainer"},
		"data":       {`[sweep]`, "[data]\npath = \"x\"\n[sweep]", `kind = "preprocess" uses no data`},
		"device":     {`[sweep]`, "[resources]\ndevice = \"gpu\"\n[sweep]", `resources.device: kind = "preprocess" computes on "cpu" only`},
		"cache":      {`"cold", "warm"`, `"hot"`, `sweep.cache[0]: "hot" is not known; valid: "cold", "warm", "memory"`},
	} {
		s, err := Parse("prepare.toml", []byte(strings.Replace(preprocessing, c.from, c.to, 1)), frameworks)
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A sweep may mix folders and object-store sources, which keep their written form.
func TestObjectSource(t *testing.T) {
	text := strings.Replace(strings.Replace(preprocessing, "source = \"images\"\n", "", 1), "[sweep]", "[sweep]\nsource = [\"images\", \"s3://my.bucket/a/b/\"]", 1)
	s, err := Parse("/home/u/prepare.toml", []byte(text), frameworks)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, p := range plan.Points {
		seen[p.Point.Workload.Preprocess.Source]++
	}
	if len(seen) != 2 || seen["/home/u/images"] != 4 || seen["s3://my.bucket/a/b"] != 4 {
		t.Errorf("%v", seen)
	}
}
