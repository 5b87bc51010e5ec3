package launcher

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// The user's files are copied when the attempt is created; later changes to them do not affect it.
func TestOwnFilesAreCopied(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "net.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	s, err := study.Parse(filepath.Join(dir, "study.toml"), []byte(`
[study]
name = "s"
[workload]
model = "net.py:build"
epochs = 1
[data]
path = "data"
[sweep]
framework = ["pytorch-ddp"]
workers = [1]
`), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	folder := rundir.OpenStudy(dir, "s")
	a, err := Creator{Folder: folder}.Create(Todo{Planned: plan.Points[0], Number: 1}, Record{Backend: "fake-beside"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	write("after")
	copied, err := os.ReadFile(filepath.Join(a.Run.OwnFiles(), "net.py"))
	if err != nil || string(copied) != "before" {
		t.Errorf("%q, %v; want the file as it was", copied, err)
	}
	var record Record
	text, err := os.ReadFile(a.Run.Attempt())
	if err != nil {
		t.Fatal(err)
	}
	// printf before | sha256sum
	if err := json.Unmarshal(text, &record); err != nil || record.Own["net.py"] != "6db7d803e74f1ffa7d8f5adc0bf95b3e15bf4c8373fffadf546227cc6c6742cb" {
		t.Errorf("%v, %v", record.Own, err)
	}
	if err := os.Remove(filepath.Join(dir, "net.py")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Creator{Folder: folder}).Create(Todo{Planned: plan.Points[0], Number: 2}, Record{Backend: "fake-beside"}, nil); err == nil {
		t.Error("an attempt is made without the file that it needs")
	}
}
