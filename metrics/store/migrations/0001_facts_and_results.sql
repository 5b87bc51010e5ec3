-- The record of every run: what was asked for, what the processes reported,
-- what it came to. Tables are ours to change; the views at the end are
-- promised to users.
--
-- Base units everywhere: seconds, samples, bytes; instants are seconds since
-- the Unix epoch. NULL is "not measured" or "not known", never 0.

-- A series is what remains of a point without its number of workers: the runs
-- that may stand on one curve.
CREATE TABLE series (
  id         INTEGER PRIMARY KEY,
  study      TEXT NOT NULL,
  parameters TEXT NOT NULL,  -- JSON object, keys sorted
  label      TEXT NOT NULL,  -- the parameters that tell the study's series apart
  UNIQUE (study, parameters)
) STRICT;

-- One attempt at a point.
CREATE TABLE run (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL UNIQUE,  -- "STUDY/POINT-r1-a1"
  study     TEXT NOT NULL,
  point     TEXT NOT NULL,
  repeat    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  framework TEXT NOT NULL,
  workers   INTEGER NOT NULL,      -- world size that the plan asks for
  nodes     INTEGER NOT NULL,
  series    INTEGER NOT NULL REFERENCES series,
  status    TEXT NOT NULL,
  detail    TEXT NOT NULL,
  dir       TEXT NOT NULL,
  created   REAL NOT NULL,
  ingested  REAL NOT NULL,         -- when it was last changed here
  facts     TEXT NOT NULL          -- digest of all that the caller said of it
) STRICT;
CREATE INDEX run_created ON run (created, id);
CREATE INDEX run_study ON run (study, created);
CREATE INDEX run_attempts ON run (study, point, repeat, status, attempt);
CREATE INDEX run_series ON run (series, workers);

-- What the scheduler says of a run; no row when none was involved.
CREATE TABLE job (
  run       INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
  cluster   TEXT NOT NULL,
  id        TEXT NOT NULL,
  name      TEXT NOT NULL,
  partition TEXT NOT NULL,
  state     TEXT NOT NULL,  -- the scheduler's own word
  reason    TEXT NOT NULL,
  exit_code TEXT NOT NULL,  -- "CODE:SIGNAL"
  nodes     TEXT NOT NULL,  -- JSON array of names
  submitted REAL,
  started   REAL,
  ended     REAL
) STRICT;

-- The keys of a run's point by TOML path. value has no type of its own, so
-- that numbers compare as numbers: a TEXT column would put 128 before 64.
CREATE TABLE run_parameter (
  run   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  key   TEXT NOT NULL,
  value,                 -- a boolean is 0 or 1, a list a JSON array
  type  TEXT NOT NULL CHECK (type IN ('text', 'integer', 'real', 'boolean', 'list')),
  PRIMARY KEY (run, key)
) WITHOUT ROWID;

-- The keys that occur, so that an expression with a mistyped one can be refused.
CREATE TABLE parameter_key (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- What a rank ran on, each once.
CREATE TABLE environment (
  id   INTEGER PRIMARY KEY,
  json TEXT NOT NULL UNIQUE
) STRICT;

-- One writer's event file and how far it was read. Everything that came from
-- it refers to it, so that a file that was replaced takes its rows with it.
CREATE TABLE event_file (
  id         INTEGER PRIMARY KEY,
  run        INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  writer     TEXT NOT NULL,          -- "rank" or "supervisor"
  rank       INTEGER NOT NULL,
  restart    INTEGER NOT NULL,       -- incarnation of the run's processes
  path       TEXT NOT NULL,
  inode      INTEGER NOT NULL,
  size       INTEGER NOT NULL,       -- bytes, when it was last looked at
  modified   INTEGER NOT NULL,       -- nanoseconds since the epoch, likewise
  head       BLOB NOT NULL,          -- SHA-256 of the first head_size bytes
  head_size  INTEGER NOT NULL,
  offset     INTEGER NOT NULL,       -- behind the last whole line that was read
  line       INTEGER NOT NULL,       -- lines before offset
  -- From the writer's start event; NULL as long as there is none.
  started    REAL,
  world_size INTEGER,
  host       TEXT,
  pid        INTEGER,
  environment INTEGER REFERENCES environment,
  -- Time of the last steps event, from the writer's start.
  steps_time REAL,
  UNIQUE (run, writer, rank, restart)
) STRICT;

-- Times below are seconds from the writer's start, on its host's monotonic clock.
CREATE TABLE train (
  file             INTEGER PRIMARY KEY REFERENCES event_file ON DELETE CASCADE,
  time             REAL NOT NULL,
  parameters       INTEGER NOT NULL,
  gradient_bytes   INTEGER NOT NULL,
  train_samples    INTEGER NOT NULL,
  test_samples     INTEGER NOT NULL,
  global_batch     INTEGER NOT NULL,
  steps_per_epoch  INTEGER NOT NULL,
  parameter_sha256 TEXT NOT NULL,
  data_sha256      TEXT NOT NULL
) STRICT;

CREATE TABLE epoch (
  file          INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line          INTEGER NOT NULL,
  time          REAL NOT NULL,
  epoch         INTEGER NOT NULL,
  step          INTEGER NOT NULL,
  samples       INTEGER NOT NULL,  -- this rank's
  seconds       REAL NOT NULL,
  loss          REAL,
  learning_rate REAL NOT NULL,
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluation (
  file     INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line     INTEGER NOT NULL,
  time     REAL NOT NULL,
  epoch    INTEGER NOT NULL,
  step     INTEGER NOT NULL,
  accuracy REAL NOT NULL,
  loss     REAL,
  samples  INTEGER NOT NULL,  -- evaluated
  seconds  REAL NOT NULL,     -- that it took
  trained  INTEGER,           -- samples trained on before it over all ranks; set with the result
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE error (
  file    INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line    INTEGER NOT NULL,
  time    REAL NOT NULL,
  phase   TEXT NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE stop (
  file             INTEGER PRIMARY KEY REFERENCES event_file ON DELETE CASCADE,
  time             REAL NOT NULL,
  status           TEXT NOT NULL,
  cause            TEXT NOT NULL,
  steps            INTEGER NOT NULL,
  epochs           INTEGER NOT NULL,
  parameter_sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE bad_line (
  file    INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line    INTEGER NOT NULL,  -- 1-based
  message TEXT NOT NULL,
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- The steps of one rank, 1024 to a row: step s is entry s % 1024 of the row
-- with block = s / 1024. A row per step would be ten times as large.
--
-- A column is a JSON array of whole numbers above its minimum, in ticks; the
-- value of entry i is (minimum + array[i]) * tick seconds, or minimum + array[i]
-- samples. An entry is null when the step was not recorded, or not this
-- component of it; a trailing null is left out. A column in which every
-- recorded step has the minimum has no array; one that was never measured has
-- no minimum either. duration always has its array: it says which steps exist.
CREATE TABLE block (
  file              INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  block             INTEGER NOT NULL,
  tick              REAL NOT NULL,  -- seconds
  duration_min      INTEGER NOT NULL,
  duration          TEXT NOT NULL,
  samples_min       INTEGER NOT NULL,
  samples           TEXT,
  data_wait_min     INTEGER,
  data_wait         TEXT,
  compute_min       INTEGER,
  compute           TEXT,
  communication_min INTEGER,
  communication     TEXT,
  UNIQUE (file, block)
) STRICT;

-- Steps that every rank of an incarnation reported.
CREATE TABLE step (
  run           INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  restart       INTEGER NOT NULL,
  step          INTEGER NOT NULL,
  duration      REAL NOT NULL,     -- of the slowest rank
  mean          REAL NOT NULL,     -- of all ranks
  slowest       INTEGER NOT NULL,  -- that rank
  samples       INTEGER NOT NULL,  -- of all ranks
  data_wait     REAL,              -- means over the ranks; NULL unless all measured it
  compute       REAL,
  communication REAL,
  PRIMARY KEY (run, restart, step)
) STRICT, WITHOUT ROWID;

-- What package summary made of the run.
CREATE TABLE result (
  run            INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
  algorithm      INTEGER NOT NULL,  -- summary.AlgorithmVersion
  restart        INTEGER NOT NULL,  -- the incarnation that it is about
  world          INTEGER NOT NULL,
  steps          INTEGER NOT NULL,
  warmup_steps   INTEGER NOT NULL,
  steady_steps   INTEGER NOT NULL,
  samples        INTEGER NOT NULL,
  epochs         INTEGER NOT NULL,
  throughput     REAL,
  throughput_why TEXT NOT NULL,     -- why there is none
  end_to_end     REAL,
  train_seconds  REAL,
  init_seconds   REAL,
  step_p50       REAL,
  step_p95       REAL,
  step_p99       REAL,
  skew           REAL,
  slowest        TEXT,              -- JSON array: steps in which each rank was the slowest
  data_wait      REAL,              -- shares of the mean rank's step time
  compute        REAL,
  communication  REAL,
  final_accuracy REAL,
  warnings       TEXT NOT NULL      -- JSON array
) STRICT;

CREATE TABLE target (
  run      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  number   INTEGER NOT NULL,  -- order in the plan
  accuracy REAL NOT NULL,
  seconds  REAL,              -- NULL: not reached
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------- views
-- Promised to users and described in docs/store.md: a column is never removed
-- or given another meaning; new ones may come at the end.

-- Every run with its job and result, a row each.
CREATE VIEW runs AS
SELECT r.name AS run, r.study, s.label AS series, r.point, r.repeat, r.attempt, r.kind,
       r.framework, r.workers, r.nodes, r.status, r.detail,
       r.created, r.ingested, r.dir,
       j.cluster, j.id AS job, j.partition, j.state AS job_state, j.reason AS job_reason,
       j.exit_code, j.submitted, j.started, j.ended,
       x.world, x.restart, x.steps, x.warmup_steps, x.samples, x.epochs,
       x.throughput, x.throughput_why, x.end_to_end, x.train_seconds, x.init_seconds,
       x.step_p50, x.step_p95, x.step_p99, x.skew,
       x.data_wait, x.compute, x.communication, x.final_accuracy, x.warnings, x.algorithm,
       r.id
FROM run r
LEFT JOIN series s ON s.id = r.series  -- always there; LEFT keeps run the outer loop, newest first
LEFT JOIN job j ON j.run = r.id
LEFT JOIN result x ON x.run = r.id;

-- The keys of each run's point.
CREATE VIEW parameters AS
SELECT r.name AS run, r.study, p.key, p.value, p.type
FROM run_parameter p JOIN run r ON r.id = p.run;

-- Throughput of every run that has a result. counts is 1 for a run that
-- figures are made of: it is done, and no later attempt at the same repeat of
-- the same point is.
CREATE VIEW throughput AS
SELECT r.name AS run, r.study, s.label AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       r.status = 'done' AND NOT EXISTS (
         SELECT 1 FROM run l WHERE l.study = r.study AND l.point = r.point AND l.repeat = r.repeat
                               AND l.status = 'done' AND l.attempt > r.attempt) AS counts,
       x.throughput, x.throughput_why, x.end_to_end, x.steps, x.warmup_steps,
       x.step_p50, x.step_p95, x.step_p99, x.skew, x.data_wait, x.compute, x.communication
FROM run r
JOIN series s ON s.id = r.series
JOIN result x ON x.run = r.id;

-- When each run reached each of its targets: seconds from the start of the
-- training clock to the end of the first evaluation that reached it.
CREATE VIEW time_to_accuracy AS
SELECT r.name AS run, r.study, s.label AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       r.status = 'done' AND NOT EXISTS (
         SELECT 1 FROM run l WHERE l.study = r.study AND l.point = r.point AND l.repeat = r.repeat
                               AND l.status = 'done' AND l.attempt > r.attempt) AS counts,
       t.accuracy AS target, t.seconds, t.seconds IS NOT NULL AS reached
FROM target t
JOIN run r ON r.id = t.run
JOIN series s ON s.id = r.series;

-- Throughput against workers, of the runs that count. The mean is harmonic, as
-- a mean of rates must be; the speedup is of the medians, against the series'
-- smallest number of workers (base_workers). Plain figures without intervals:
-- those need more than SQL; see `scalebench scaling`.
CREATE VIEW scaling AS
-- Windows throughout, no GROUP BY: through those SQLite carries a condition on
-- the study down to the index.
WITH ranked AS (
  SELECT study, series, workers, throughput,
         row_number() OVER (PARTITION BY study, series, workers ORDER BY throughput) AS i,
         count(*) OVER (PARTITION BY study, series, workers) AS n
  FROM throughput WHERE counts AND throughput IS NOT NULL
), groups AS (
  SELECT study, series, workers, i, n,
         avg(throughput) FILTER (WHERE i IN ((n + 1) / 2, (n + 2) / 2)) OVER same AS median,
         n / sum(1 / nullif(throughput, 0)) OVER same AS mean,
         min(throughput) OVER same AS low, max(throughput) OVER same AS high
  FROM ranked
  WINDOW same AS (PARTITION BY study, series, workers)
)
SELECT study, series, workers, n AS runs, median AS throughput_median,
       CASE WHEN low > 0 THEN mean ELSE 0.0 END AS throughput_mean,
       low AS throughput_min, high AS throughput_max,
       median / first_value(median) OVER by_workers AS speedup,
       first_value(workers) OVER by_workers AS base_workers
FROM groups WHERE i = 1
WINDOW by_workers AS (PARTITION BY study, series ORDER BY workers);

-- Every step of every rank; ask for one run, or one run and rank. Seconds.
CREATE VIEW rank_step AS
SELECT r.name AS run, f.rank, f.restart,
       b.block * 1024 + d.key AS step,
       (b.duration_min + d.value) * b.tick AS duration,
       CASE WHEN b.data_wait IS NULL THEN b.data_wait_min
            ELSE b.data_wait_min + (b.data_wait ->> d.key) END * b.tick AS data_wait,
       CASE WHEN b.compute IS NULL THEN b.compute_min
            ELSE b.compute_min + (b.compute ->> d.key) END * b.tick AS compute,
       CASE WHEN b.communication IS NULL THEN b.communication_min
            ELSE b.communication_min + (b.communication ->> d.key) END * b.tick AS communication,
       CASE WHEN b.samples IS NULL THEN b.samples_min
            ELSE b.samples_min + (b.samples ->> d.key) END AS samples
FROM run r
JOIN event_file f ON f.run = r.id AND f.writer = 'rank'
JOIN block b ON b.file = f.id
JOIN json_each(b.duration) d
WHERE d.value IS NOT NULL;

-- Steps that every rank reported. Seconds; samples of all ranks.
CREATE VIEW steps AS
SELECT r.name AS run, s.restart, s.step, s.duration, s.mean, s.slowest, s.samples,
       s.data_wait, s.compute, s.communication
FROM step s JOIN run r ON r.id = s.run;

-- Every evaluation, seconds from the start of the training clock. result is 1
-- where it belongs to the incarnation that the run's result is about; trained
-- is known for those only.
CREATE VIEW evaluations AS
SELECT r.name AS run, r.study, f.restart, e.time - t.time AS seconds, e.epoch, e.step,
       e.accuracy, e.loss, e.trained, e.samples AS evaluated, e.seconds AS evaluation_seconds,
       f.restart IS x.restart AS result
FROM evaluation e
JOIN event_file f ON f.id = e.file AND f.writer = 'rank' AND f.rank = 0
JOIN run r ON r.id = f.run
LEFT JOIN train t ON t.file = f.id
LEFT JOIN result x ON x.run = r.id;

-- Event lines that could not be read.
CREATE VIEW bad_lines AS
SELECT r.name AS run, r.study, f.path AS file, b.line, b.message
FROM bad_line b
JOIN event_file f ON f.id = b.file
JOIN run r ON r.id = f.run;
