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

-- One row for each node and item.
CREATE VIEW staging AS
SELECT r.name AS run, r.study, f.restart, f.rank AS node, f.host, s.item, s.source, s.path, s.bytes, s.seconds, s.reused
FROM staged s
JOIN event_file f ON f.id = s.file
JOIN run r ON r.id = f.run;
