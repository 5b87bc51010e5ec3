-- The record of every run: what was asked for, what the processes reported,
-- what it came to. Tables are ours to change; the views at the end are
-- promised to users.
--
-- Base units everywhere: seconds, samples, bytes; instants are seconds since
-- the Unix epoch. NULL is "not measured" or "not known", never 0.

-- What a study's name stands for.
CREATE TABLE study (
  name TEXT PRIMARY KEY,
  id   TEXT NOT NULL,      -- as in its run folder
  home TEXT NOT NULL,      -- its run folder, absolute; '' where all of its runs were imported
  file TEXT NOT NULL,      -- the study file, absolute; '' likewise
  arranged INTEGER NOT NULL DEFAULT 0  -- 1: series and member are of its present runs and plan
) STRICT, WITHOUT ROWID;

-- The points of a study's plan, as it was when the runs were collected: a curve
-- is divided by its smallest planned number of workers.
CREATE TABLE planned (
  study      TEXT NOT NULL REFERENCES study,
  point      TEXT NOT NULL,
  framework  TEXT NOT NULL,
  workers    INTEGER NOT NULL,
  parameters TEXT NOT NULL,  -- JSON object of {"type", "value"} as in run_parameter, keys sorted
  PRIMARY KEY (study, point)
) STRICT, WITHOUT ROWID;

-- Looks at a study that is measured until its question is decided.
CREATE TABLE look (
  study       TEXT NOT NULL,
  series      TEXT NOT NULL,
  number      INTEGER NOT NULL,  -- from 1 on
  at          REAL NOT NULL,
  runs        INTEGER NOT NULL,  -- good ones of the series so far
  most        INTEGER NOT NULL,  -- runs of a point that the design allows
  confidence  REAL NOT NULL,     -- of an interval at each look
  workers     INTEGER,           -- the answer
  probability REAL,              -- of the answer
  decided     INTEGER NOT NULL,  -- 1: more runs cannot change it
  rival       INTEGER NOT NULL,  -- workers that it was compared with; 0: none
  ratio       REAL,              -- how many times as fast the larger of the two was
  low         REAL,
  high        REAL,
  price       REAL,              -- what ratio must exceed for the larger to be worth it
  text        TEXT NOT NULL,     -- the answer in words
  PRIMARY KEY (study, series, number)
) STRICT, WITHOUT ROWID;

-- One attempt at a point; also one that a person has had forgotten.
CREATE TABLE every_run (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,         -- "STUDY/POINT-r1-a1", each once
  study     TEXT NOT NULL,
  point     TEXT NOT NULL,
  repeat    INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  framework TEXT NOT NULL,
  workers   INTEGER NOT NULL,
  beside    INTEGER NOT NULL,      -- ranks that are no workers: a service's load generator; the world is of both
  nodes     INTEGER NOT NULL,
  series    TEXT NOT NULL,         -- names of those it is a member of; '' for none
  status    TEXT NOT NULL,
  detail    TEXT NOT NULL,
  dir       TEXT NOT NULL,
  created   REAL NOT NULL,
  ingested  REAL NOT NULL,         -- when it was last changed here
  facts     TEXT NOT NULL          -- digest of all that the caller said of it; '' of what was imported: table import has it
) STRICT;
CREATE UNIQUE INDEX run_name ON every_run (name); -- not a constraint: an import of many runs makes it last
CREATE INDEX run_created ON every_run (created, id);
CREATE INDEX run_study ON every_run (study, created);
CREATE INDEX run_attempts ON every_run (study, point, repeat, status, attempt);

-- What a person has had forgotten, by name: a run that is stored here again, from
-- its folder or its log, stays forgotten.
CREATE TABLE forgotten (
  name  TEXT PRIMARY KEY,
  study TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_study ON forgotten (study);

-- The runs of every table, figure and view. Whoever stores runs goes by every_run.
CREATE VIEW run AS SELECT * FROM every_run e WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.name = e.name);

-- The runs that figures are made of: each is done, no later attempt at the same
-- repeat of its point is, and its study's plan, if there is one, still has the
-- point. What was imported was never in a plan.
CREATE VIEW counted AS SELECT * FROM run r WHERE r.status = 'done'
  AND NOT EXISTS (
    SELECT 1 FROM run l WHERE l.study = r.study AND l.point = r.point AND l.repeat = r.repeat
                          AND l.status = 'done' AND l.attempt > r.attempt)
  AND (EXISTS (SELECT 1 FROM planned p WHERE p.study = r.study AND p.point = r.point)
    OR NOT EXISTS (SELECT 1 FROM planned p WHERE p.study = r.study)
    OR EXISTS (SELECT 1 FROM import i WHERE i.run = r.id));

-- What people have said of runs, by name for the same reason.
CREATE TABLE tag (
  name TEXT NOT NULL,
  tag  TEXT NOT NULL,
  PRIMARY KEY (name, tag)
) STRICT, WITHOUT ROWID;
CREATE TABLE remark (
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The curves of each study, those of whole runs over the number of workers, as
-- package scaling has them; that package alone knows what makes a curve.
CREATE TABLE series (
  id    INTEGER PRIMARY KEY,
  study TEXT NOT NULL REFERENCES study,
  name  TEXT NOT NULL,
  axis  TEXT NOT NULL,
  base  ANY NOT NULL  -- place on the axis that the others are divided by: a number or a word
) STRICT;
CREATE INDEX series_study ON series (study);

-- Where in a run something was measured.
CREATE TABLE place (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL UNIQUE  -- JSON object, keys sorted; '{}', number 0, is the run as a whole
) STRICT;
INSERT INTO place (id, at) VALUES (0, '{}');

-- Which runs, or places within them, are on which curve. One on which a fact does
-- not bear that divides curves is on several.
CREATE TABLE member (
  run    INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
  series INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
  place  INTEGER NOT NULL REFERENCES place,
  at     ANY NOT NULL,  -- place on the axis
  PRIMARY KEY (run, series, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_series ON member (series);

-- Speedups that are not the ratio of the medians: a drift of the machine is taken out.
CREATE TABLE speedup (
  series  INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
  measure TEXT NOT NULL,
  unit    TEXT NOT NULL,  -- of samples/s the word for the study's samples
  at      ANY NOT NULL,  -- place on the axis
  value   REAL NOT NULL,
  PRIMARY KEY (series, measure, unit, at)
) STRICT, WITHOUT ROWID;

-- What the scheduler says of a run; no row when none was involved.
CREATE TABLE job (
  run       INTEGER PRIMARY KEY REFERENCES every_run ON DELETE CASCADE,
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
  run   INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
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
  run        INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
  writer     TEXT NOT NULL,          -- "rank" or "supervisor"
  rank       INTEGER NOT NULL,
  ranks      INTEGER NOT NULL DEFAULT 1,  -- that it speaks for, from rank on
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
  steps_time REAL
) STRICT;
CREATE UNIQUE INDEX event_file_run ON event_file (run, writer, rank, restart);

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
  trained  INTEGER,           -- samples trained on before it over all ranks: as the program says, else set with the result
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

-- Doubts about the figures of a file, in words.
CREATE TABLE note (
  file INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- What was brought to a node's own disk before the programs were started; the
-- writer's rank is the node's number. Its time is on none of the run's clocks.
CREATE TABLE staged (
  file    INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line    INTEGER NOT NULL,
  item    TEXT NOT NULL,     -- "data" or "python"
  source  TEXT NOT NULL,
  path    TEXT NOT NULL,
  bytes   INTEGER NOT NULL,
  seconds REAL NOT NULL,
  reused  INTEGER NOT NULL,  -- 0 or 1
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- A figure that another program's log states, or that a benchmark measured.
CREATE TABLE figure (
  file          INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line          INTEGER NOT NULL,  -- of the event
  time          REAL NOT NULL,     -- from the writer's start; 0 where a log states none
  name          TEXT NOT NULL,
  value         REAL NOT NULL,
  unit          TEXT NOT NULL,
  better        TEXT NOT NULL,     -- 'higher', 'lower' or ''
  at            TEXT NOT NULL,     -- JSON object: what the value is of; {} for the run
  plus_minus    REAL,
  plus_minus_is TEXT NOT NULL,
  reduce        TEXT NOT NULL,     -- '' where the log states it itself
  of            INTEGER NOT NULL,
  note          TEXT NOT NULL,
  source        TEXT NOT NULL,     -- the log
  source_line   INTEGER NOT NULL,  -- 0: not in one line
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- What a node's sampler has read, a batch of samples to a row: the event as it
-- was written. A row for each value would be ten times as large.
CREATE TABLE telemetry (
  file    INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line    INTEGER NOT NULL,
  tick    REAL NOT NULL,  -- seconds that one unit of at is
  at      TEXT NOT NULL,  -- JSON array: when each sample was taken, from the writer's start
  columns TEXT NOT NULL,  -- JSON array of {"name", "of", "source", "unit", "counter", "scale", "least", "above"}
  missing TEXT NOT NULL,  -- JSON object: why a column is missing, by its name
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- How large the gradients were, as each rank recorded it. Lists of numbers are JSON arrays, an entry a block
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
  run           INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
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
  run            INTEGER PRIMARY KEY REFERENCES every_run ON DELETE CASCADE,
  algorithm      INTEGER NOT NULL,  -- summary.AlgorithmVersion
  restart        INTEGER NOT NULL,  -- the incarnation that it is about
  world          INTEGER NOT NULL,
  steps          INTEGER NOT NULL,
  warmup_steps   INTEGER NOT NULL,
  steady_steps   INTEGER NOT NULL,
  samples        INTEGER NOT NULL,
  epochs         INTEGER NOT NULL,
  slowest        TEXT,              -- JSON array: steps in which each rank was the slowest
  warnings       TEXT NOT NULL,     -- JSON array
  -- What the run ran on, an object, keys sorted, or null: a fact that is not in
  -- it is not known, one that is '' does not bear on the run.
  fingerprint     TEXT NOT NULL,
  git_commit      TEXT NOT NULL,    -- '' when not recorded
  noise_scale_why TEXT NOT NULL     -- why there is none
) STRICT;

-- What is measured: by runs of a kind of workload, as package measure declares
-- it, or as users' programs and logs report it.
CREATE TABLE measure (
  id       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  unit     TEXT NOT NULL,     -- base unit; '' for a fraction or a count
  title    TEXT NOT NULL,
  better   TEXT NOT NULL CHECK (better IN ('higher', 'lower', '')),
  speeds   INTEGER NOT NULL,  -- 0 or 1: its ratio to a base is a speedup
  reported INTEGER NOT NULL,  -- 0 or 1: by programs and logs
  target   REAL,              -- of the time to a target
  target_of TEXT,             -- what the target is of: accuracy, loss, …
  coordinates TEXT NOT NULL,  -- JSON array, sorted: of what places in a run the values are; [] for whole runs
  UNIQUE (name, unit, coordinates)
) STRICT;

-- What each run came to in each measure that it has, or has a reason not to have.
CREATE TABLE value (
  run     INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
  measure INTEGER NOT NULL REFERENCES measure,
  place   INTEGER NOT NULL REFERENCES place,
  value   REAL,              -- in the measure's unit; NULL where there is none
  missed  INTEGER NOT NULL,  -- 0 or 1: there is none because the run missed the target
  why     TEXT NOT NULL,     -- why else there is none; '' where there is one
  PRIMARY KEY (run, measure, place)
) STRICT, WITHOUT ROWID;

-- The gradient noise scale of the incarnation that the result is about, a row
-- an epoch.
CREATE TABLE noise_scale (
  run              INTEGER NOT NULL REFERENCES every_run ON DELETE CASCADE,
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

-- Files that runs were imported from: once for all runs of a table. One of which
-- no run is left is deleted.
CREATE TABLE source (
  id     INTEGER PRIMARY KEY,
  path   TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  format TEXT NOT NULL,
  bytes  INTEGER NOT NULL,
  -- Of a table, '' of a log: its sha256 when it was first imported, however it has
  -- grown since.
  origin TEXT NOT NULL,
  UNIQUE (sha256, path, format, origin)
) STRICT;

-- Which of its runs an imported run is.
CREATE TABLE import (
  run    INTEGER PRIMARY KEY REFERENCES every_run ON DELETE CASCADE,
  source INTEGER NOT NULL REFERENCES source,
  part   TEXT NOT NULL,
  facts  BLOB NOT NULL,  -- SHA-256 of all that was imported
  rows   BLOB NOT NULL,  -- of a table: a digest of the row that the run begins with; x'' of a log
  began  REAL NOT NULL   -- seconds since 1970, or from 1 on a place in the order of a table's runs; 0: not known
) STRICT;
CREATE INDEX import_part ON import (source, part);
CREATE INDEX import_rows ON import (rows) WHERE rows <> x'';

-- ---------------------------------------------------------------- views
-- Promised to users and described in docs/store.md: a column is never removed
-- or given another meaning; new ones may come at the end.

-- Every run with its job and result, a row each.
-- Where each rank of a run ran, as it or its supervisor says, of the incarnation that
-- the result is about. gpu and gpu_uuid are of the GPUs that the rank sees.
CREATE VIEW hosts AS
WITH place AS (
  SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.workers,
         coalesce(max(f.rank, v.rank), f.rank) AS rank,
         coalesce(min(f.rank + f.ranks, v.rank + v.ranks) - max(f.rank, v.rank), f.ranks) AS ranks,
         coalesce(nullif(v.host, ''), f.host, '') AS host,
         coalesce(e.json -> '$.gpus', h.json -> '$.gpus') AS gpus
  FROM run r
  JOIN event_file f ON f.run = r.id AND f.writer = 'rank'
  LEFT JOIN environment e ON e.id = f.environment
  LEFT JOIN event_file v ON v.run = f.run AND v.writer = 'supervisor' AND v.restart = f.restart
    AND v.rank < f.rank + f.ranks AND f.rank < v.rank + v.ranks
  LEFT JOIN environment h ON h.id = v.environment
  LEFT JOIN result x ON x.run = r.id
  WHERE f.restart = coalesce(x.restart, (SELECT max(restart) FROM event_file m WHERE m.run = r.id AND m.writer = 'rank'))
)
SELECT run, study, series, workers, rank, ranks, host,
       (SELECT group_concat(DISTINCT g.value ->> '$.name') FROM json_each(gpus) g) AS gpu,
       (SELECT group_concat(g.value ->> '$.uuid') FROM json_each(gpus) g) AS gpu_uuid
FROM place WHERE host <> '';

CREATE VIEW runs AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.point, r.repeat, r.attempt, r.kind,
       r.framework, r.workers, r.nodes,
       coalesce((SELECT group_concat(value, ',') FROM (SELECT value FROM json_each(j.nodes))),
                (SELECT group_concat(host, ',') FROM (SELECT DISTINCT host FROM hosts h WHERE h.run = r.name ORDER BY host))) AS node_list,
       r.status, r.detail,
       r.created, r.ingested, r.dir,
       j.cluster, j.id AS job, j.partition, j.state AS job_state, j.reason AS job_reason,
       j.exit_code, j.submitted, j.started, j.ended,
       x.world, x.restart, x.steps, x.warmup_steps, x.samples, x.epochs,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'throughput' AND coordinates = '[]')) AS throughput,
       (SELECT why FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'throughput' AND coordinates = '[]')) AS throughput_why,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'end_to_end' AND coordinates = '[]')) AS end_to_end,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'train_seconds' AND coordinates = '[]')) AS train_seconds,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'init_seconds' AND coordinates = '[]')) AS init_seconds,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p50' AND coordinates = '[]')) AS step_p50,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p95' AND coordinates = '[]')) AS step_p95,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p99' AND coordinates = '[]')) AS step_p99,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'skew' AND coordinates = '[]')) AS skew,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'data_wait' AND coordinates = '[]')) AS data_wait,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'compute' AND coordinates = '[]')) AS compute,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'communication' AND coordinates = '[]')) AS communication,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'final_accuracy' AND coordinates = '[]')) AS final_accuracy,
       x.warnings, x.algorithm,
       r.id, nullif(x.git_commit, '') AS git_commit,
       (SELECT group_concat(tag, ' ') FROM (SELECT tag FROM tag t WHERE t.name = r.name ORDER BY tag)) AS tags,
       (SELECT text FROM remark WHERE remark.name = r.name) AS note
FROM run r
LEFT JOIN job j ON j.run = r.id
LEFT JOIN result x ON x.run = r.id;

-- The keys of each run's point.
CREATE VIEW parameters AS
SELECT r.name AS run, r.study, p.key, p.value, p.type
FROM run_parameter p JOIN run r ON r.id = p.run;

-- What every run came to in every measure, a row for each place within the run
-- (at, a JSON object) where the measure has coordinates. reached is 0 for a target that the
-- run missed, NULL where nothing can be missed.
CREATE VIEW "values" AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       EXISTS (SELECT 1 FROM counted c WHERE c.id = r.id) AS counts,
       m.name AS measure, nullif(m.unit, '') AS unit, nullif(m.better, '') AS better, v.value,
       CASE WHEN m.target IS NOT NULL THEN NOT v.missed END AS reached, nullif(v.why, '') AS why,
       CASE WHEN v.place <> 0 THEN p.at END AS at
FROM run r
JOIN value v ON v.run = r.id
JOIN measure m ON m.id = v.measure
JOIN place p ON p.id = v.place;

-- Throughput of every run that has a result. counts is 1 for a run in
-- counted.
CREATE VIEW throughput AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       EXISTS (SELECT 1 FROM counted c WHERE c.id = r.id) AS counts,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'throughput' AND coordinates = '[]')) AS throughput,
       (SELECT why FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'throughput' AND coordinates = '[]')) AS throughput_why,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'end_to_end' AND coordinates = '[]')) AS end_to_end,
       x.steps, x.warmup_steps,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p50' AND coordinates = '[]')) AS step_p50,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p95' AND coordinates = '[]')) AS step_p95,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'step_p99' AND coordinates = '[]')) AS step_p99,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'skew' AND coordinates = '[]')) AS skew,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'data_wait' AND coordinates = '[]')) AS data_wait,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'compute' AND coordinates = '[]')) AS compute,
       (SELECT value FROM value WHERE run = r.id AND place = 0 AND measure = (SELECT id FROM measure WHERE name = 'communication' AND coordinates = '[]')) AS communication
FROM run r
JOIN result x ON x.run = r.id;

-- When each run reached each of its target accuracies: seconds from the start of the
-- training clock to the end of the first evaluation that reached it.
CREATE VIEW time_to_accuracy AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       EXISTS (SELECT 1 FROM counted c WHERE c.id = r.id) AS counts,
       m.target, v.value AS seconds, NOT v.missed AS reached
FROM run r
JOIN value v ON v.run = r.id
JOIN measure m ON m.id = v.measure AND m.target_of = 'accuracy';

-- When each run reached each of its targets, of whatever they are: target_of is
-- accuracy, loss, perplexity or a figure's name.
CREATE VIEW time_to_target AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.point, r.repeat, r.attempt,
       r.framework, r.workers, r.nodes, r.status,
       EXISTS (SELECT 1 FROM counted c WHERE c.id = r.id) AS counts,
       m.target_of, m.target, m.name AS measure, v.value AS seconds, NOT v.missed AS reached
FROM run r
JOIN value v ON v.run = r.id
JOIN measure m ON m.id = v.measure AND m.target_of IS NOT NULL;

-- Throughput against workers, of the runs that count. The mean is harmonic, as
-- a mean of rates must be; the speedup is that of `scalebench scaling`, against the
-- number of workers that it divides by (base_workers), and NULL where no run at it has a
-- throughput. Plain figures without intervals: those need more than SQL.
CREATE VIEW scaling AS
-- Windows throughout, no GROUP BY: through those SQLite carries a condition on
-- the study down to the index.
WITH ranked AS (
  SELECT s.study, s.id, s.name, s.base, r.workers, v.value,
         row_number() OVER (PARTITION BY s.study, s.id, r.workers ORDER BY v.value) AS i,
         count(*) OVER (PARTITION BY s.study, s.id, r.workers) AS n
  FROM series s
  JOIN member m ON m.series = s.id AND m.place = 0
  JOIN counted r ON r.id = m.run
  JOIN value v ON v.run = r.id AND v.place = 0 AND v.value > 0 AND v.measure = (SELECT id FROM measure WHERE name = 'throughput' AND coordinates = '[]')
), groups AS (
  SELECT study, id, name, base, workers, i, n,
         avg(value) FILTER (WHERE i IN ((n + 1) / 2, (n + 2) / 2)) OVER same AS median,
         n / sum(1 / value) OVER same AS mean,
         min(value) OVER same AS low, max(value) OVER same AS high
  FROM ranked
  WINDOW same AS (PARTITION BY study, id, workers)
)
SELECT study, name AS series, workers, n AS runs, median AS throughput_median,
       mean AS throughput_mean, low AS throughput_min, high AS throughput_max,
       coalesce((SELECT value FROM speedup s WHERE s.series = groups.id AND s.measure = 'throughput' AND s.at = groups.workers),
         median / max(median) FILTER (WHERE workers = base) OVER (PARTITION BY study, id)) AS speedup,
       base AS base_workers
FROM groups WHERE i = 1;

-- Every measure along every curve, of the runs that count: at is a place on the
-- axis, the number of workers or a coordinate. A target that was missed ranks
-- last; where half of the runs or more miss it there is no median. Neither is there one
-- where runs were refused a measure of a load: those may be the slow ones. The speedup is
-- that of `scalebench scaling`, in the direction in which the measure is better; NULL
-- for measures that have none, such as shares and counts.
CREATE VIEW curves AS
WITH refusable AS (
  SELECT id FROM measure
  WHERE coordinates = '["batch","rate","threads"]' AND better <> '' OR name IN ('rate_within_limit', 'cost_per_million', 'cost_per_million_samples')
), ranked AS (
  SELECT s.study, s.id, s.name, s.axis, s.base, m.at, v.measure, coalesce(v.value, 9e999) AS value,
         row_number() OVER (PARTITION BY s.study, s.id, v.measure, m.at ORDER BY coalesce(v.value, 9e999)) AS i,
         count(*) OVER (PARTITION BY s.study, s.id, v.measure, m.at) AS n
  FROM series s
  JOIN member m ON m.series = s.id
  JOIN counted r ON r.id = m.run
  JOIN value v ON v.run = r.id AND v.place = m.place AND (v.value IS NOT NULL OR v.missed)
  JOIN measure x ON x.id = v.measure AND NOT (x.unit = 'samples/s' AND v.value <= 0)
), groups AS (
  SELECT study, id, name, axis, base, at, measure, i, n,
         avg(value) FILTER (WHERE i IN ((n + 1) / 2, (n + 2) / 2)) OVER same AS median,
         min(value) OVER same AS low, max(value) OVER same AS high
  FROM ranked
  WINDOW same AS (PARTITION BY study, id, measure, at)
), medians AS (
  SELECT study, id, name, axis, base, at, measure, n, low, high,
         CASE WHEN median < 9e999 AND (measure NOT IN (SELECT id FROM refusable)
                OR n = (SELECT count(*) FROM member m JOIN counted r ON r.id = m.run WHERE m.series = groups.id AND m.at = groups.at)) THEN median END AS median
  FROM groups WHERE i = 1
), ratios AS (
  SELECT *, max(median) FILTER (WHERE at = base) OVER (PARTITION BY study, id, measure) AS divisor FROM medians
)
SELECT c.study, c.name AS series, m.name AS measure, nullif(m.unit, '') AS unit, c.axis, c.at, c.n AS runs, c.median,
       CASE WHEN c.low < 9e999 THEN c.low END AS min, CASE WHEN c.high < 9e999 THEN c.high END AS max,
       CASE WHEN c.median IS NULL OR m.better = '' OR NOT m.speeds THEN NULL
            WHEN c.at = c.base THEN 1.0 -- of 0 too
            WHEN s.value IS NOT NULL THEN s.value
            WHEN m.better = 'higher' AND c.median / c.divisor > 0 THEN c.median / c.divisor
            WHEN m.better = 'lower' AND c.divisor / c.median > 0 THEN c.divisor / c.median END AS speedup,
       c.base
FROM ratios c
JOIN measure m ON m.id = c.measure
LEFT JOIN speedup s ON s.series = c.id AND s.measure = m.name AND (s.unit = m.unit OR m.unit = 'samples/s') AND s.at = c.at;

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
-- is known for those only. Programs that are not ours may not say how many
-- samples an evaluation was of or how long it took; their 0 is no measurement.
CREATE VIEW evaluations AS
SELECT r.name AS run, r.study, f.restart, e.time - t.time AS seconds, e.epoch, e.step,
       e.accuracy, e.loss, e.trained, nullif(e.samples, 0) AS evaluated, nullif(e.seconds, 0) AS evaluation_seconds,
       f.restart IS x.restart AS result
FROM evaluation e
JOIN event_file f ON f.id = e.file AND f.writer = 'rank' AND f.rank = 0
JOIN run r ON r.id = f.run
LEFT JOIN train t ON t.file = f.id
LEFT JOIN result x ON x.run = r.id;

-- One row a run and known fact of its fingerprint.
CREATE VIEW fingerprints AS
SELECT r.name AS run, r.study, f.key AS field, f.value
FROM run r
JOIN result x ON x.run = r.id
JOIN json_each(x.fingerprint) f
WHERE f.value <> '';

-- One row for each node and item.
CREATE VIEW staging AS
SELECT r.name AS run, r.study, f.restart, f.rank AS node, f.host, s.item, s.source, s.path, s.bytes, s.seconds, s.reused
FROM staged s
JOIN event_file f ON f.id = s.file
JOIN run r ON r.id = f.run;

-- What logs state of a run, as they state it. value is in unit, a base unit.
CREATE VIEW figures AS
SELECT r.name AS run, r.study, f.restart, g.name, g.value, nullif(g.unit, '') AS unit, g.at,
       g.plus_minus, nullif(g.plus_minus_is, '') AS plus_minus_is, nullif(g.reduce, '') AS reduce, nullif(g.of, 0) AS of,
       nullif(g.note, '') AS note, g.source, nullif(g.source_line, 0) AS source_line, nullif(g.better, '') AS better
FROM figure g
JOIN event_file f ON f.id = g.file
JOIN run r ON r.id = f.run;

-- What was read of each node while a run went on; ask for one run. counter is 1
-- where the difference between two rows is what was used between them.
CREATE VIEW telemetries AS
SELECT r.name AS run, r.study, f.restart, f.rank, f.host, f.started + t.tick * a.value AS unix,
       c.value ->> '$.name' AS name, c.value ->> '$.of' AS of, c.value ->> '$.source' AS source, c.value ->> '$.unit' AS unit,
       coalesce(c.value ->> '$.counter', 0) AS counter,
       ((c.value ->> '$.least') + CASE WHEN c.value -> '$.above' IS NULL THEN 0 ELSE c.value ->> ('$.above[' || a.key || ']') END)
         * (c.value ->> '$.scale') AS value
FROM run r
JOIN event_file f ON f.run = r.id AND f.writer = 'telemetry'
JOIN telemetry t ON t.file = f.id
JOIN json_each(t.columns) c
JOIN json_each(t.at) a;

-- One row a run and epoch. The noise scale is in samples, with its interval.
CREATE VIEW noise_scales AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.workers, n.epoch, n.step, n.steps, n.batch, n.global_batch,
       n.samples AS noise_scale, n.low, n.high, n.gradient_squared, n.noise, nullif(n.why, '') AS why
FROM noise_scale n
JOIN run r ON r.id = n.run;

-- A row for each run, operation, size and place; of the incarnation that the
-- result is about.
CREATE VIEW collectives AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.workers, r.nodes, r.status,
       g.at ->> '$.op' AS op, g.at ->> '$.bytes' AS bytes, g.at ->> '$.in_place' AS in_place,
       nullif(max(g.of), 0) AS iterations,
       max(g.value) FILTER (WHERE g.name = 'time') AS seconds,
       max(g.value) FILTER (WHERE g.name = 'time_min') AS seconds_min,
       max(g.value) FILTER (WHERE g.name = 'time_mean') AS seconds_mean,
       max(g.value) FILTER (WHERE g.name = 'time_p99') AS seconds_p99,
       max(g.value) FILTER (WHERE g.name = 'time_cv') AS cv,
       max(g.value) FILTER (WHERE g.name = 'algbw') AS algbw,
       max(g.value) FILTER (WHERE g.name = 'busbw') AS busbw
FROM figure g
JOIN event_file f ON f.id = g.file
JOIN run r ON r.id = f.run
LEFT JOIN result x ON x.run = r.id
WHERE f.restart IS x.restart AND g.at ->> '$.bytes' IS NOT NULL AND g.at ->> '$.in_place' IS NOT NULL
GROUP BY r.id, op, in_place, bytes;

-- A row for each run, operation and place: a message of s bytes takes
-- alpha + s / beta seconds.
CREATE VIEW links AS
SELECT r.name AS run, r.study, nullif(r.series, '') AS series, r.workers, r.nodes, r.status,
       p.at ->> '$.op' AS op, p.at ->> '$.in_place' AS in_place,
       max(v.value) FILTER (WHERE m.name = 'latency') AS alpha,
       max(v.value) FILTER (WHERE m.name = 'bandwidth') AS beta,
       max(v.value) FILTER (WHERE m.name = 'fit_sizes') AS sizes,
       max(v.value) FILTER (WHERE m.name = 'fit_low') AS low,
       max(v.value) FILTER (WHERE m.name = 'fit_high') AS high
FROM measure m
JOIN value v ON v.measure = m.id
JOIN place p ON p.id = v.place
JOIN run r ON r.id = v.run
WHERE m.coordinates = '["in_place","op"]' AND m.name IN ('latency', 'bandwidth', 'fit_sizes', 'fit_low', 'fit_high')
GROUP BY r.id, p.id;

-- Runs that were imported.
CREATE VIEW imports AS
SELECT r.name AS run, r.study, s.path, s.sha256, i.part, s.format, nullif(i.began, 0) AS began
FROM import i JOIN source s ON s.id = i.source JOIN run r ON r.id = i.run;

-- Studies, and where they are.
CREATE VIEW studies AS
SELECT name AS study, id, nullif(home, '') AS home, nullif(file, '') AS file FROM study;

-- Looks at studies that are measured until their question is decided.
CREATE VIEW looks AS
SELECT study, series, number AS look, at, runs, most AS max_repeats, confidence, workers, probability, decided,
       nullif(rival, 0) AS rival, ratio, low, high, price, text
FROM look;

-- Event lines that could not be read.
CREATE VIEW bad_lines AS
SELECT r.name AS run, r.study, f.path AS file, b.line, b.message
FROM bad_line b
JOIN event_file f ON f.id = b.file
JOIN run r ON r.id = f.run;
