package workspace

import (
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
)

// mapped parses the columns of --map and --label.
func (o *ImportOptions) mapped() (map[string]extract.Column, error) {
	if o.From != csvFormat {
		if len(o.Labels) > 0 {
			return nil, Errorf("--label names a column of a CSV file; give a log's labels with --set")
		}
		return o.columns(extract.LogFigures)
	}
	columns, err := o.columns(slices.Concat(extract.TableFigures, extract.WhenColumns, []string{"study", "workers", "replicas", "nodes", "framework"}))
	if err != nil {
		return nil, err
	}
	loads := slices.ContainsFunc(slices.Collect(maps.Keys(columns)), func(name string) bool {
		m, err := measure.Find(name)
		return err == nil && m.At.Has(measure.Rate)
	})
	for _, text := range o.Labels {
		key, column, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || column == "" {
			return nil, Errorf("--label %q: write KEY=COLUMN, like platform=host", text)
		}
		// For a training the batch size is a label; for a load it is the coordinate of figures.
		coordinate := measure.DescribesLoad(key) && !loads
		if _, twice := columns[key]; twice || slices.Contains(slices.Concat(extract.TableFigures, extract.WhenColumns), key) && !coordinate {
			return nil, Errorf("--label %s: a figure or a mapped column has that name; give the label another", text)
		}
		columns[key] = extract.Column{Name: column, Label: true}
	}
	return columns, nil
}

// given parses --set.
func (o *ImportOptions) given() (map[string]any, error) {
	labels := map[string]any{}
	for _, text := range o.Sets {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || value == "" {
			return nil, Errorf("--set %q: write KEY=VALUE; keys consist of letters, digits, _, - and ., like platform or workload.batch", text)
		}
		if _, twice := labels[key]; twice {
			return nil, Errorf("--set gives %s twice", key)
		}
		labels[key] = extract.ParseLabel(value)
		if key == measure.TargetsKey {
			var err error
			if labels[key], err = targetList(labels[key]); err != nil {
				return nil, Errorf("--set %s: %v", key, err)
			}
		}
		if said := labels[key]; o.Workers != 0 && (key == "workers" || key == "replicas") && said != int64(o.Workers) {
			return nil, Errorf("--workers says %d and --set says %s=%s; give one of them", o.Workers, key, value)
		}
	}
	return labels, nil
}

// targetList returns one target, or a list of them, as the store keeps them.
func targetList(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]any, len(list))
	for i, v := range list {
		var t measure.Target
		if err := t.UnmarshalTOML(v); err != nil {
			return nil, err
		}
		if out[i] = t.String(); t.Of == measure.OfAccuracy {
			out[i] = t.Value
		}
	}
	return out, nil
}

func labelKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	}) < 0
}
