-- A writer may speak for several ranks (a process that drives several devices,
-- a log), and may say what its figures really are.

ALTER TABLE event_file ADD COLUMN ranks INTEGER NOT NULL DEFAULT 1;  -- from rank on

-- Doubts about the figures of a file, in words.
CREATE TABLE note (
  file INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- Programs that are not ours may not say how many samples an evaluation was of
-- or how long it took; their 0 is no measurement.
DROP VIEW evaluations;
CREATE VIEW evaluations AS
SELECT r.name AS run, r.study, f.restart, e.time - t.time AS seconds, e.epoch, e.step,
       e.accuracy, e.loss, e.trained, nullif(e.samples, 0) AS evaluated, nullif(e.seconds, 0) AS evaluation_seconds,
       f.restart IS x.restart AS result
FROM evaluation e
JOIN event_file f ON f.id = e.file AND f.writer = 'rank' AND f.rank = 0
JOIN run r ON r.id = f.run
LEFT JOIN train t ON t.file = f.id
LEFT JOIN result x ON x.run = r.id;
