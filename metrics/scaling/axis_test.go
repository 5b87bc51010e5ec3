package scaling

import (
	"strings"
	"testing"
)

// Words are sorted in natural order along axes, in names of series, and in lists of possible
// baselines.
func TestWordsAreCounted(t *testing.T) {
	var obs []Observation
	for _, platform := range []string{"cpu16", "cpu8", "w12", "cpu64", "w2", "w1"} {
		obs = append(obs, with(runs(1, 100), "platform", platform)...)
	}
	const want = "cpu8 cpu16 cpu64 w1 w2 w12"
	var places, series []string
	for _, p := range analyse(t, obs, Options{Axis: "platform"})[0].Points {
		places = append(places, p.At.String())
	}
	for _, c := range analyse(t, obs, Options{}) {
		series = append(series, strings.TrimPrefix(c.Series, "native platform="))
	}
	if got := strings.Join(places, " "); got != want {
		t.Errorf("along the axis %s, want %s", got, want)
	}
	if got := strings.Join(series, " "); got != want {
		t.Errorf("series %s, want %s", got, want)
	}
	_, err := Analyse(obs, Options{Baseline: []Condition{{"platform", "gpu"}}})
	if err == nil || !strings.HasSuffix(err.Error(), "valid: "+strings.ReplaceAll(want, " ", ", ")) {
		t.Errorf("baseline: %v", err)
	}
	// Numbers come before words, in order of size.
	mixed := append(with(runs(1, 100), "platform", "none"), append(with(runs(1, 100), "platform", int64(10)), with(runs(1, 100), "platform", 9.5)...)...)
	places = nil
	for _, p := range analyse(t, mixed, Options{Axis: "platform"})[0].Points {
		places = append(places, p.At.String())
	}
	if got := strings.Join(places, " "); got != "9.5 10 none" {
		t.Errorf("numbers and words: %s", got)
	}
}

// Amounts of memory and times are sorted by size, each kind separately, after numbers and before
// words. Series that differ in them are sorted in the same way.
func TestAmountsAreInOrder(t *testing.T) {
	var obs []Observation
	for _, amount := range []string{"8G", "plenty", "1536M", "90s", "1m", "512M", "1T", "500ms", "2G", "16G", "2GiB"} {
		obs = append(obs, with(runs(1, 100), "resources.memory", amount)...)
	}
	const want = "512M 1536M 2G 2GiB 8G 16G 1T 500ms 1m 90s plenty"
	var places, series []string
	for _, p := range analyse(t, obs, Options{Axis: "resources.memory"})[0].Points {
		places = append(places, p.At.String())
	}
	for _, c := range analyse(t, obs, Options{}) {
		series = append(series, strings.TrimPrefix(c.Series, "native memory="))
	}
	if got := strings.Join(places, " "); got != want {
		t.Errorf("along the axis %s, want %s", got, want)
	}
	if got := strings.Join(series, " "); got != want {
		t.Errorf("series %s, want %s", got, want)
	}
}
