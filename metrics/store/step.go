package store

import (
	"database/sql"
	"maps"
	"slices"
)

// steps combines the steps of single ranks. For each step that all ranks reported after the same
// restart, it stores a row with maxima, means and sums.
func (in *ingest) steps() error {
	restarts := map[int]bool{}
	for r := range in.worlds {
		restarts[r] = true
	}
	for r := range in.touched {
		restarts[r] = true
	}
	for r := range in.whole {
		restarts[r] = true
	}
	for _, r := range slices.Sorted(maps.Keys(restarts)) {
		if err := in.stepsOf(r); err != nil {
			return err
		}
	}
	return nil
}

func (in *ingest) stepsOf(restart int) error {
	world, present, err := in.world(restart)
	if err != nil {
		return err
	}
	blocks, err := in.staleBlocks(restart, world)
	if err != nil {
		return err
	}
	if present < world || len(blocks) == 0 {
		return nil // no step is complete, or none is new
	}
	read, err := in.tx.Prepare(`SELECT f.rank, f.ranks, ` + blockColumns + `
		FROM event_file f JOIN block b ON b.file = f.id
		WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? AND f.rank < ? AND b.block = ? ORDER BY f.rank`)
	if err != nil {
		return err
	}
	defer read.Close()
	write, err := in.tx.Prepare(`INSERT OR REPLACE INTO step
		(run, restart, step, duration, mean, slowest, samples, data_wait, compute, communication) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer write.Close()
	sum, one := new(stepSum), new(block) // reused for every block
	for _, number := range blocks {
		if err := in.ctx.Err(); err != nil {
			return err
		}
		*sum = stepSum{}
		if err := sum.addAll(found(read.Query(in.run, restart, world, number)), one); err != nil {
			return err
		}
		for i := range blockSteps {
			if sum.ranks[i] != world {
				continue
			}
			if _, err := write.Exec(in.run, restart, number*blockSteps+i, sum.longest[i], sum.mean(duration, i, world), sum.slowest[i], sum.samples[i],
				sum.mean(dataWait, i, world), sum.mean(compute, i, world), sum.mean(communication, i, world)); err != nil {
				return err
			}
		}
	}
	return nil
}

// staleBlocks returns the numbers of the blocks whose steps must be combined: those with new
// steps. If a file was read again, or the world size changed, it deletes the combined steps and
// returns all blocks.
func (in *ingest) staleBlocks(restart, world int) ([]int, error) {
	if before, had := in.worlds[restart]; !in.whole[restart] && (!had || before == world) {
		return slices.Sorted(maps.Keys(in.touched[restart])), nil
	}
	if _, err := in.tx.Exec("DELETE FROM step WHERE run = ? AND restart = ?", in.run, restart); err != nil {
		return nil, err
	}
	return column1[int](in.tx.Query(`SELECT DISTINCT block FROM block JOIN event_file f ON f.id = file
		WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? ORDER BY block`, in.run, restart))
}

// world returns the world size after a restart: the largest that a rank reports, or else the
// planned one. present is the number of ranks that the files cover.
func (in *ingest) world(restart int) (world, present int, err error) {
	err = in.tx.QueryRow(`SELECT coalesce(max(f.world_size), r.workers) FROM every_run r
		LEFT JOIN event_file f ON f.run = r.id AND f.writer = 'rank' AND f.restart = ? WHERE r.id = ?`, restart, in.run).Scan(&world)
	if err != nil {
		return 0, 0, err
	}
	err = in.tx.QueryRow("SELECT coalesce(sum(ranks), 0) FROM event_file WHERE run = ? AND writer = 'rank' AND restart = ? AND rank < ?",
		in.run, restart, world).Scan(&present)
	return world, present, err
}

// stepSum adds up a block over ranks.
type stepSum struct {
	ranks    [blockSteps]int
	longest  [blockSteps]float64 // seconds
	slowest  [blockSteps]int     // the slowest rank; of several, the lowest, because ranks come in ascending order
	samples  [blockSteps]int64
	seconds  [numColumns][blockSteps]float64
	measured [numColumns][blockSteps]int // number of ranks that measured it
}

// mean returns the mean of a column at a step over the ranks; nil unless all ranks measured it.
func (s *stepSum) mean(column, step, world int) any {
	if s.measured[column][step] != world {
		return nil
	}
	return s.seconds[column][step] / float64(world)
}

// addAll adds the blocks of all rows. one is a block that it reuses.
func (s *stepSum) addAll(rows queried, one *block) error {
	return rows.each(func(rows *sql.Rows) error {
		var rank, ranks int
		if err := one.scan(rows, &rank, &ranks); err != nil {
			return err
		}
		s.add(rank, ranks, one)
		return nil
	})
}

// add adds the block of a writer that covers the given number of ranks, of which the first is
// rank.
func (s *stepSum) add(rank, ranks int, b *block) {
	for i := range blockSteps {
		if !b.has(i) {
			continue
		}
		seconds := float64(b.columns[duration][i]) * b.tick
		if s.ranks[i] == 0 || seconds > s.longest[i] {
			s.longest[i], s.slowest[i] = seconds, rank
		}
		s.ranks[i] += ranks
		s.samples[i] += b.columns[samples][i]
	}
	for _, c := range timeColumns {
		for i, v := range b.columns[c] {
			if v != absent {
				s.seconds[c][i] += float64(v) * b.tick * float64(ranks)
				s.measured[c][i] += ranks
			}
		}
	}
}
