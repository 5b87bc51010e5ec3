//go:build !training

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher/preprocess"
)

// ownPart returns the name of this rank's part of the target, which no other rank writes to.
func (r *preprocessing) ownPart() string {
	return fmt.Sprintf("%s-rank%d-", filepath.Base(r.program.run.Path()), r.world.Rank)
}

// openTarget prepares to write objects if the target is an object store.
func (r *preprocessing) openTarget() (err error) {
	if strings.HasPrefix(r.asked.Target, preprocess.ObjectScheme) {
		r.ready, err = preprocess.OpenObjects(r.asked.Target+"/"+r.ownPart()+rand.Text(), preprocess.ObjectAccessFromEnvironment(os.Getenv))
	}
	return err
}

// makeTarget creates this rank's part of the target; remove deletes it with its contents.
func (r *preprocessing) makeTarget(ctx context.Context) (remove func() error, err error) {
	switch {
	case r.asked.Target == "":
		r.clear = func() error { return nil }
		return r.clear, nil
	case r.ready != nil:
		r.target = r.ready
		r.clear = func() error { return r.ready.Clear(ctx) }
		return r.clear, r.phase(fmt.Sprintf("writing to %s at %s", r.asked.Target, r.ready.Endpoint()))
	}
	if err := os.MkdirAll(r.asked.Target, 0o777); err != nil {
		return nil, fmt.Errorf("workload.target: %w", err)
	}
	folder, err := os.MkdirTemp(r.asked.Target, r.ownPart())
	if err != nil {
		return nil, fmt.Errorf("workload.target: %w", err)
	}
	r.target = preprocess.Folder(folder)
	r.clear = func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		return os.Mkdir(folder, 0o777)
	}
	return func() error { return os.RemoveAll(folder) }, nil
}
