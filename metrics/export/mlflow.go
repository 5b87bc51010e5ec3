package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/store"
)

var mlflowFormat = Format{
	Name:   "mlflow",
	About:  "MLflow's file store: an experiment with a run for each run (mlflow migrate-filestore, mlflow ui)",
	Suffix: "-mlruns",
	folder: writeMLflow,
}

// mlflowStatuses are MLflow's numbers for how a run ended.
const (
	mlflowRunning   = 1
	mlflowScheduled = 2
	mlflowFinished  = 3
	mlflowFailed    = 4
	mlflowKilled    = 5
)

func mlflowStatus(s metrics.Status) int {
	switch s {
	case metrics.Done:
		return mlflowFinished
	case metrics.Cancelled, metrics.Preempted:
		return mlflowKilled
	case metrics.Running:
		return mlflowRunning
	}
	if s.Terminal() || s == metrics.Unknown {
		return mlflowFailed
	}
	return mlflowScheduled
}

func writeMLflow(ctx context.Context, s *Source, dir string) error {
	// The IDs follow from the names, so that a later export of a run has the same.
	experiment := idNumber(s.Runs[0].Study)
	newest := s.Runs[0].Created.UnixMilli()
	if err := writeYAML(filepath.Join(dir, experiment), map[string]any{"experiment_id": experiment, "name": text(s.Runs[0].Study), "lifecycle_stage": "active",
		"artifact_location": "mlflow-artifacts:/" + experiment, "creation_time": newest, "last_update_time": newest}); err != nil {
		return err
	}
	return s.each(ctx, func(r *store.RunFacts) error {
		return writeMLflowRun(ctx, s, filepath.Join(dir, experiment, digest(r.Run)[:32]), experiment, r)
	})
}

// idNumber returns a decimal number of up to 18 digits that follows from a name, as MLflow makes
// experiment IDs.
func idNumber(name string) string {
	n, _ := new(big.Int).SetString(digest(name)[:14], 16) // cannot fail: hexadecimal digits
	return n.String()
}

// writeYAML writes a folder's meta.yaml. JSON is YAML.
func writeYAML(dir string, v map[string]any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeText(dir, "meta.yaml", string(content)+"\n")
}

func writeText(dir, name, content string) error {
	return create(dir, name, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
}

func writeMLflowRun(ctx context.Context, s *Source, dir, experiment string, r *store.RunFacts) error {
	began := r.Created
	if !r.Started.IsZero() {
		began = r.Started
	}
	id := filepath.Base(dir)
	meta := map[string]any{"run_id": id, "run_uuid": id, "experiment_id": experiment, "run_name": text(r.Run), "user_id": "", "status": mlflowStatus(r.Status),
		"start_time": began.UnixMilli(), "end_time": nil, "lifecycle_stage": "active", "artifact_uri": "mlflow-artifacts:/" + experiment + "/" + id + "/artifacts",
		"tags": []string{}, "source_type": 4, "source_name": "", "source_version": "", "entry_point_name": ""}
	if !r.Ended.IsZero() {
		meta["end_time"] = r.Ended.UnixMilli()
	}
	if err := writeYAML(dir, meta); err != nil {
		return err
	}
	for _, name := range []string{"metrics", "params", "tags", "artifacts"} { // MLflow takes no folder for a run without them
		if err := os.Mkdir(filepath.Join(dir, name), sharedfs.ModeFolder); err != nil {
			return err
		}
	}
	tags := map[string]string{"mlflow.runName": r.Run, "scalebench.status": string(r.Status), "scalebench.detail": r.Detail, "scalebench.counts": strconv.FormatBool(r.Counts),
		"scalebench.series": r.Series, "scalebench.dir": r.Dir, "scalebench.tags": r.Tags, "mlflow.note.content": r.Note, "mlflow.source.git.commit": r.GitCommit}
	lines := map[string]*bytes.Buffer{}
	add := func(name, unit string, at time.Time, value float64, step int) {
		name = mlflowName(name)
		if lines[name] == nil {
			lines[name] = new(bytes.Buffer)
		}
		fmt.Fprintf(lines[name], "%d %s %d\n", at.UnixMilli(), strconv.FormatFloat(value, 'g', -1, 64), step)
		if unit != "" {
			tags["unit."+name] = unit
		}
	}
	for _, v := range r.Results {
		if v.Value != nil {
			name := v.Measure
			if v.At != nil {
				name += " " + strings.ReplaceAll(placed(v.At), "=", ":")
			}
			add(name, v.Unit, began, *v.Value, 0)
		}
	}
	if err := s.eachEvaluation(ctx, r, func(at time.Time, e *metrics.Evaluation) {
		add("evaluation.accuracy", "", at, e.Accuracy, e.Step)
		if e.Loss != nil {
			add("evaluation.loss", "", at, *e.Loss, e.Step)
		}
	}); err != nil {
		return err
	}
	parameters := map[string]string{}
	for key, v := range r.Parameters {
		parameters[mlflowName(key)] = plain(v)
	}
	for name, b := range lines {
		if err := writeText(filepath.Join(dir, "metrics"), name, b.String()); err != nil {
			return err
		}
	}
	const maxParameter, maxTag = 6000, 8000 // characters that MLflow accepts
	return errors.Join(writeTexts(filepath.Join(dir, "params"), parameters, maxParameter), writeTexts(filepath.Join(dir, "tags"), tags, maxTag))
}

// writeTexts writes a file for each text that is not empty. A text longer than most characters is
// cut and ends with "…".
func writeTexts(dir string, texts map[string]string, most int) error {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		content := []rune(text(texts[name]))
		if len(content) == 0 {
			continue
		}
		if len(content) > most {
			content = append(content[:most-1], '…')
		}
		if err := writeText(dir, name, string(content)); err != nil {
			return err
		}
	}
	return nil
}

// eachEvaluation calls f with the evaluations of the restart from which the run's results are.
func (s *Source) eachEvaluation(ctx context.Context, r *store.RunFacts, f func(time.Time, *metrics.Evaluation)) error {
	if !r.Evaluated {
		return nil
	}
	timelines, err := s.DB.Timelines(ctx, r.Run)
	for _, one := range timelines {
		if one.Restart != r.Restart {
			continue
		}
		for _, e := range one.Events {
			if e.Evaluation != nil {
				f(metrics.Time(one.Unix+e.Time).UTC(), e.Evaluation)
			}
		}
	}
	return err
}

// plain returns a parameter's value as text: a list as JSON, a text as it is.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// mlflowName returns a name that MLflow and the file system accept. It has no "/", which would make
// a folder where another name needs a file.
func mlflowName(name string) string {
	const most = 200 // bytes; MLflow accepts 250 characters, file systems 255 bytes
	allowed := func(r rune) bool { return word(r) || r == ' ' || r == ':' }
	safe := safeName(name, allowed)
	if len(safe) > most || strings.Trim(safe, ".") == "" {
		safe = "name-" + digest(name)
	}
	return safe
}
