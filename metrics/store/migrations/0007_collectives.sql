-- What benchmarks of collectives measured: their figures side by side, and the
-- latency and bandwidth fitted to them.

CREATE TABLE link (
  run      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  op       TEXT NOT NULL,     -- '' where a log does not say
  in_place INTEGER NOT NULL,  -- 0 or 1
  alpha    REAL NOT NULL,     -- seconds
  beta     REAL NOT NULL,     -- bytes/s
  sizes    INTEGER NOT NULL,  -- that it was fitted to
  low      REAL NOT NULL,     -- how far the fit is off, model over measured - 1
  high     REAL NOT NULL,
  PRIMARY KEY (run, op, in_place)
) STRICT, WITHOUT ROWID;

-- A row for each run, operation, size and place; of the incarnation that the
-- result is about.
CREATE VIEW collectives AS
SELECT r.name AS run, r.study, s.label AS series, r.workers, r.nodes, r.status,
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
JOIN series s ON s.id = r.series
LEFT JOIN result x ON x.run = r.id
WHERE f.restart IS x.restart AND g.at ->> '$.bytes' IS NOT NULL AND g.at ->> '$.in_place' IS NOT NULL
GROUP BY r.id, op, in_place, bytes;

-- A row for each run, operation and place: a message of s bytes takes
-- alpha + s / beta seconds.
CREATE VIEW links AS
SELECT r.name AS run, r.study, s.label AS series, r.workers, r.nodes, r.status,
       nullif(l.op, '') AS op, l.in_place, l.alpha, l.beta, l.sizes, l.low, l.high
FROM link l
JOIN run r ON r.id = l.run
JOIN series s ON s.id = r.series;
