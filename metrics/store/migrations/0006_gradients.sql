-- How large the gradients were, and the gradient noise scale that follows.

-- As each rank recorded it. Lists of numbers are JSON arrays, an entry a block
-- of steps.
CREATE TABLE gradients (
  file           INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line           INTEGER NOT NULL,
  epoch          INTEGER NOT NULL,
  step           INTEGER NOT NULL,  -- steps done so far
  samples        INTEGER NOT NULL,  -- of a step, on this rank
  global_samples INTEGER NOT NULL,  -- of a step, over all ranks
  steps          TEXT NOT NULL,     -- how many each block has
  own            TEXT NOT NULL,     -- mean squared norm of the rank's own gradient
  averaged       TEXT NOT NULL,     -- of the gradient averaged over the ranks
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- Of the incarnation that the result is about, an epoch a row.
CREATE TABLE noise_scale (
  run              INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  epoch            INTEGER NOT NULL,
  step             INTEGER NOT NULL,
  steps            INTEGER NOT NULL,  -- that the estimate is from; 0: there is none
  batch            INTEGER NOT NULL,
  global_batch     INTEGER NOT NULL,
  samples          REAL,              -- the noise scale
  low              REAL,
  high             REAL,
  gradient_squared REAL,
  noise            REAL,
  why              TEXT NOT NULL,     -- what is missing, and the reason; '' when nothing is
  PRIMARY KEY (run, epoch)
) STRICT, WITHOUT ROWID;

ALTER TABLE result ADD COLUMN noise_scale_why TEXT NOT NULL DEFAULT '';

-- One row a run and epoch. The noise scale is in samples, with its interval.
CREATE VIEW noise_scales AS
SELECT r.name AS run, r.study, s.label AS series, r.workers, n.epoch, n.step, n.steps, n.batch, n.global_batch,
       n.samples AS noise_scale, n.low, n.high, n.gradient_squared, n.noise, nullif(n.why, '') AS why
FROM noise_scale n
JOIN run r ON r.id = n.run
JOIN series s ON s.id = r.series;
