package store

import (
	"context"
	"database/sql"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/summary"
)

// gradients stores the gradient norms that a rank recorded in an epoch.
func (w *fileWriter) gradients(g *metrics.Gradients, line int) error {
	return w.in.rows.insert(`INSERT INTO gradients (file, line, epoch, step, samples, global_samples, steps, own, averaged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.id, line, g.Epoch, g.Step, g.Samples, g.GlobalSamples, asJSON{g.Steps}, asJSON{g.Own}, asJSON{g.Averaged})
}

// rankGradients returns the gradient norms that the ranks recorded after the given restart,
// sorted by epoch.
func (in *ingest) rankGradients(restart int) ([]summary.RankGradients, error) {
	return listOf(found(in.tx.Query(`SELECT f.rank, g.epoch, g.step, g.samples, g.global_samples, g.steps, g.own, g.averaged
		FROM gradients g JOIN event_file f ON f.id = g.file
		WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? ORDER BY g.epoch, f.rank, g.line`, in.run, restart)), func(rows *sql.Rows, g *summary.RankGradients) error {
		return rows.Scan(&g.Rank, &g.Epoch, &g.Step, &g.Samples, &g.GlobalSamples, asJSON{&g.Steps}, asJSON{&g.Own}, asJSON{&g.Averaged})
	})
}

// noiseScales stores the gradient noise scales of the run.
func (in *ingest) noiseScales(list []summary.NoiseScale) error {
	for _, n := range list {
		var gradient, noise *float64
		if n.Steps > 0 {
			gradient, noise = &n.GradientSquared, &n.Noise
		}
		if err := in.rows.insert(`INSERT INTO noise_scale (run, epoch, step, steps, batch, global_batch, samples, low, high, gradient_squared, noise, why)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			in.run, n.Epoch, n.Step, n.Steps, n.Batch, n.GlobalBatch, n.Samples, n.Low, n.High, gradient, noise, n.Why); err != nil {
			return err
		}
	}
	return nil
}

// noiseScalesOf returns the gradient noise scales of the run, sorted by epoch.
func noiseScalesOf(ctx context.Context, tx *sql.Tx, run int64) ([]summary.NoiseScale, error) {
	return listOf(found(tx.QueryContext(ctx, `SELECT epoch, step, steps, batch, global_batch, samples, low, high, coalesce(gradient_squared, 0), coalesce(noise, 0), why
		FROM noise_scale WHERE run = ? ORDER BY epoch`, run)), func(rows *sql.Rows, n *summary.NoiseScale) error {
		return rows.Scan(&n.Epoch, &n.Step, &n.Steps, &n.Batch, &n.GlobalBatch, &n.Samples, &n.Low, &n.High, &n.GradientSquared, &n.Noise, &n.Why)
	})
}
