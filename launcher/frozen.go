package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Freeze writes the plan, and the text of the files it was made from, into the
// study's folder: what LoadFrozen reads.
func Freeze(folder rundir.Study, plan *study.Plan, st *study.Study, site *study.Site) error {
	if err := Trusted(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder.Path(), sharedfs.ModeFolder); err != nil {
		return err
	}
	if err := keepKey(folder, st.Key); err != nil {
		return err
	}
	frozen := *plan
	var err error
	if frozen.StudyFile, err = filepath.Abs(st.File); err != nil {
		return err
	}
	if err := rundir.WriteFile(folder.StudyFile(), st.Source(), st.Mode()); err != nil {
		return err
	}
	if site.File != "" {
		if frozen.SiteFile, err = filepath.Abs(site.File); err != nil {
			return err
		}
		if err := rundir.WriteFile(folder.SiteFile(), site.Source(), site.Mode()); err != nil {
			return err
		}
	}
	mode := sharedfs.ModeOpen
	if len(frozen.Exposed()) > 0 {
		mode = sharedfs.ModePrivate
	}
	return rundir.WriteJSON(folder.Plan(), frozen, mode)
}

// Claim makes a folder the study's; see rundir.Study.Claim.
func Claim(folder rundir.Study, its rundir.Identity) (rundir.Identity, error) {
	if err := Trusted(folder); err != nil {
		return its, err
	}
	return folder.Claim(its)
}

// Trusted returns a *trust.Error if another user may have written in a study's folder, whose files must then
// not start or end runs. Reading results does not need it.
func Trusted(folder rundir.Study) error { return trust.Check(folder.Runs(), folder.Path()) }

// LoadFrozen reads the study and site that a frozen plan was made from. Since they will be run, it returns a
// *trust.Error if another user may have written them.
func LoadFrozen(folder rundir.Study, plan *study.Plan, frameworks []study.Framework) (*study.Study, *study.Site, error) {
	if plan.StudyFile == "" {
		return nil, nil, fmt.Errorf("%s does not name its study file, from whose folder relative paths start; give the study file's path", folder.Plan())
	}
	if err := Trusted(folder); err != nil {
		return nil, nil, err
	}
	if err := trust.CheckFilesOnly(folder.Plan()); err != nil {
		return nil, nil, err
	}
	text, err := trust.ReadFile(folder.StudyFile())
	if err != nil {
		return nil, nil, err
	}
	st, err := study.Parse(plan.StudyFile, text, frameworks)
	if err != nil {
		return nil, nil, fmt.Errorf("the study as it was last run or submitted, %s: %w", folder.StudyFile(), err)
	}
	if plan.SiteFile == "" {
		return st, study.DefaultSite(), nil
	}
	if text, err = trust.ReadFile(folder.SiteFile()); err != nil {
		return nil, nil, err
	}
	site, err := usedSite(folder, plan, text)
	return st, site, err
}

// UsedSite reads the copy of the site file that a frozen plan was made from, to price
// its runs by.
func UsedSite(folder rundir.Study, plan *study.Plan) (*study.Site, error) {
	text, err := folder.ReadFile(folder.SiteFile(), maxPlan)
	if err != nil {
		return nil, err
	}
	return usedSite(folder, plan, text)
}

func usedSite(folder rundir.Study, plan *study.Plan, text []byte) (*study.Site, error) {
	site, err := study.ParseSite(plan.SiteFile, text)
	if err != nil {
		return nil, fmt.Errorf("the site file as it was last used, %s: %w", folder.SiteFile(), err)
	}
	return site, nil
}

// ReadPlan reads the plan of a study that was run or submitted.
func ReadPlan(folder rundir.Study) (*study.Plan, error) {
	plan := &study.Plan{}
	text, err := folder.ReadFile(folder.Plan(), maxPlan)
	ok, err := decode(folder.Plan(), text, err, plan)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%s: %w", folder.Plan(), fs.ErrNotExist)
	case plan.Points == nil:
		return nil, fmt.Errorf("%s cannot be read: it has no points", folder.Plan())
	case plan.Study != filepath.Base(folder.Path()):
		return nil, fmt.Errorf("%s is the plan of another study, %q", folder.Plan(), plan.Study)
	}
	seals := &sealer{folder: folder}
	for i := range plan.Points {
		seals.seal(&plan.Points[i].Point)
	}
	return plan, nil
}

// EachPlanned calls each with the point of every run of a study's plan, in order. The plan of 100,000 runs does not
// fit into little memory; each point is valid until each returns.
func EachPlanned(folder rundir.Study, each func(*study.Point)) error {
	seals := &sealer{folder: folder}
	_, err := walkPlan(folder, func(d *json.Decoder) error {
		var p study.Planned
		if err := d.Decode(&p); err != nil {
			return err
		}
		seals.seal(&p.Point)
		each(&p.Point)
		return nil
	})
	return err
}

// PlanFiles returns the study file and the site file that a study's plan was made from, without its points.
func PlanFiles(folder rundir.Study) (*study.Plan, error) {
	var skipped json.RawMessage // one for all points, to reuse its memory
	return walkPlan(folder, func(d *json.Decoder) error { return d.Decode(&skipped) })
}

// walkPlan calls point for every point of a plan, which it decodes, and returns the rest of the plan.
func walkPlan(folder rundir.Study, point func(*json.Decoder) error) (*study.Plan, error) {
	f, err := sharedfs.OpenIn(folder.Path(), folder.Plan())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plan := &study.Plan{}
	if err := walk(json.NewDecoder(f), plan, point); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", folder.Plan(), plainly(err))
	}
	return plan, nil
}

func walk(d *json.Decoder, plan *study.Plan, point func(*json.Decoder) error) error {
	rest := map[string]json.RawMessage{}
	points := false
	_, err := d.Token()
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		if key != "points" {
			var value json.RawMessage
			err = d.Decode(&value)
			rest[fmt.Sprint(key)] = value
			continue
		}
		if begin, _ := d.Token(); begin != json.Delim('[') {
			break
		}
		points = true
		for err == nil && d.More() {
			err = point(d)
		}
		if err == nil {
			_, err = d.Token()
		}
	}
	switch {
	case err != nil:
		return err
	case !points:
		return errors.New("it has no points")
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, plan)
}
