package launcher

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// The site's settings are recorded in plain text unless they may be secret, else as keyed digests, and as
// unknown without a key. For processes on this machine only the variables are recorded.
func TestSettingHidesSecrets(t *testing.T) {
	site, key := launchtest.VariedSite(t), redact.Key("k")
	f, err := framework.Find("native")
	if err != nil {
		t.Fatal(err)
	}
	batch := *setting(site, f, key, true)
	want := metrics.Setting{Container: "apptainer /image.sif /a:/b", Modules: "gcc/12 openmpi",
		Setup: key.Hide("export TOKEN=hunter2"), Environment: "TOKEN=" + key.Hide("hunter3")}
	if diff := cmp.Diff(want, batch); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(batch.Setup, "withheld:") || strings.Contains(batch.Environment, "hunter") {
		t.Errorf("%+v", batch)
	}
	if bare := *setting(site.As("bare"), f, key, true); bare.Modules != metrics.None || bare.Container != metrics.None || bare.Setup != batch.Setup {
		t.Errorf("%+v", bare)
	}
	if debug := *setting(site.As("debug"), f, key, true); debug.Environment != "LEVEL="+key.Hide("1")+" "+batch.Environment {
		t.Errorf("%+v", debug)
	}
	if local := *setting(site, f, key, false); local.Modules != metrics.None || local.Container != metrics.None || local.Setup != metrics.None || local.Environment != batch.Environment {
		t.Errorf("%+v", local)
	}
	if unkeyed := *setting(site, f, nil, true); unkeyed.Setup != "" || unkeyed.Environment != "" || unkeyed.Modules != batch.Modules {
		t.Errorf("%+v", unkeyed)
	}
}
