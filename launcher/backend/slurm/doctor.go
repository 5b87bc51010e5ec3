package slurm

import (
	"context"
	"io"

	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// Examine tries the cluster out for doctor.
func (b *Backend) Examine(ctx context.Context, e cluster.Examination) ([]cluster.Finding, error) {
	script := func(p study.Planned) (slurm.Script, error) { return b.Script(p, b.Draft(p)) }
	return cluster.Cluster{Client: b.Client, Site: b.Site, Script: script, Render: b.render, Examination: e}.Check(ctx)
}

// Describe writes a site file from what Slurm reports.
func (b *Backend) Describe(ctx context.Context, w io.Writer, o cluster.Origin) (omitted, err error) {
	d, err := b.Client.Describe(ctx)
	if d == nil {
		return nil, err
	}
	return err, cluster.WriteSiteFile(w, d, o)
}
