package metrics

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Impossible values, one of each class: each makes its line a bad line.
func TestReaderRefusesAbsurdNumbers(t *testing.T) {
	start := func(rest string) string { return `{"t":0,"start":{"format":1,"world_size":4,` + rest + `}}` }
	for _, line := range []string{
		`{"t":1e300,"note":{"text":"x"}}`,
		`{"t":1e999,"note":{"text":"x"}}`,
		start(`"unix":1e300`), start(`"unix":-5`), `{"start":{"format":1,"world_size":9223372036854775807}}`, start(`"local_rank":-1`),
		start(`"restart":-1`), start(`"pid":-1`), start(`"rank":99999999999999999999`),
		`{"t":1,"steps":{"first":9223372036854775807,"tick":1e-6,"duration":[1],"samples":[1]}}`,
		`{"t":1,"steps":{"first":1099511627776,"tick":1e-6,"duration":[1],"samples":[1]}}`,
		`{"t":1,"steps":{"tick":1e-300,"duration":[1],"samples":[1]}}`,
		`{"t":1,"steps":{"tick":1e300,"duration":[1],"samples":[1]}}`,
		`{"t":1,"steps":{"tick":1,"duration":[9007199254740992],"samples":[1]}}`,
		`{"t":1,"steps":{"tick":1e-6,"duration":[1],"samples":[9223372036854775807]}}`,
		`{"t":1,"epoch":{"epoch":-1}}`, `{"t":1,"epoch":{"epoch":1,"step":-9223372036854775807}}`, `{"t":1,"epoch":{"epoch":1,"samples":-1}}`,
		`{"t":1,"epoch":{"epoch":1,"seconds":1e300}}`, `{"t":1,"epoch":{"epoch":1,"seconds":-1}}`,
		`{"t":1,"evaluation":{"accuracy":0.5,"epoch":-1}}`, `{"t":1,"evaluation":{"accuracy":0.5,"step":-9223372036854775807}}`,
		`{"t":1,"evaluation":{"accuracy":0.5,"samples":-1}}`, `{"t":1,"evaluation":{"accuracy":0.5,"seconds":-1}}`, `{"t":1,"evaluation":{"accuracy":1e308}}`,
		`{"t":1,"train":{"parameters":-1}}`, `{"t":1,"train":{"global_batch":9223372036854775807}}`, `{"t":1,"train":{"steps_per_epoch":-1}}`,
		`{"t":1,"environment":{"cpus":-4}}`, `{"t":1,"environment":{"memory_bytes":-1}}`, `{"t":1,"environment":{"gpus":[{"memory_bytes":-1}]}}`,
		`{"t":1,"environment":{"gpus":[` + strings.Repeat("{},", maxGPUs) + `{}]}}`,
		`{"t":1,"staged":{"item":"data","path":"p","seconds":1e300}}`, `{"t":1,"staged":{"item":"data","path":"p","bytes":9223372036854775807}}`,
		`{"t":1,"gradients":{"epoch":1,"samples":1,"global_samples":9223372036854775807,"steps":[1],"own":[1],"averaged":[1]}}`,
		`{"t":1,"gradients":{"epoch":1,"step":-1,"samples":1,"global_samples":2,"steps":[1],"own":[1],"averaged":[1]}}`,
		`{"t":1,"figure":{"name":"throughput","value":1e308}}`, `{"t":1,"figure":{"name":"throughput","value":-1}}`,
		`{"t":1,"figure":{"name":"train_seconds","value":1e308}}`, `{"t":1,"figure":{"name":"x","value":1,"of":-1}}`, `{"t":1,"figure":{"name":"x","value":1,"line":-1}}`,
		`{"t":1,"stop":{"status":"finished"}}`, `{"t":1,"stop":{"status":"done","steps":-9223372036854775807}}`, `{"t":1,"stop":{"status":"done","epochs":-1}}`,
		// With two equal keys, it is unknown which one was meant.
		`{"t":1,"epoch":{"epoch":1},"epoch":{"epoch":2}}`, `{"t":1,"epoch":{"epoch":1},"Epoch":{"step":2}}`,
		`{"t":1,"t":2,"epoch":{"epoch":1}}`, `{"t":1,"epoch":{"epoch":1,"ep\u006fch":2}}`, `{"t":1,"stop":{"\u017ftatus":"failed","status":"done"}}`,
		"{\"t\":1,\"note\":{\"text\":\"\xff\"}}",
		`{"t":1,"note":` + strings.Repeat("[", 100_000),
	} {
		r := NewReader(strings.NewReader(line+"\n"+stopLine), "f", 0, 0)
		_, err := r.Next()
		var bad *LineError
		if !errors.As(err, &bad) || len(err.Error()) > maxMessage+100 {
			t.Errorf("%.120s: %.400v, want a bad line in few words", line, err)
		}
		if e, err := r.Next(); err != nil || e.Stop == nil {
			t.Errorf("%.120s: the line after it: %v", line, err)
		}
	}
	// Names of environment variables are case-sensitive.
	for _, line := range []string{`{"t":1,"environment":{"variables":{"http_proxy":"a","HTTP_PROXY":"b"}}}`, `{"t":1,"note":{"text":"\"a\": {"}}`} {
		if _, err := NewReader(strings.NewReader(line+"\n"), "f", 0, 0).Next(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// inDomain returns an error if an accepted event has an impossible number: only losses and reported
// values may be negative, and sums must not overflow.
func inDomain(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return inDomain(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if err := inDomain(path+"."+v.Type().Field(i).Name, v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := inDomain(path, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := inDomain(path, v.MapIndex(key)); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < 0 || n > MaxCount {
			return fmt.Errorf("%s = %d", path, n)
		}
	case reflect.Float64:
		x := v.Float()
		signed := strings.HasSuffix(path, ".Loss") || strings.HasSuffix(path, ".LearningRate") || strings.Contains(path, ".Figure.")
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 && !signed {
			return fmt.Errorf("%s = %g", path, x)
		}
	}
	return nil
}

// For any input, accepted numbers are in the range of their field, and messages on bad lines are
// short.
func FuzzDomain(f *testing.F) {
	f.Add([]byte(`{"t":1,"epoch":{"epoch":1,"step":-9223372036854775807,"loss":-1}}`))
	f.Add([]byte(`{"t":1,"environment":{"cpus":1,"gpus":[{},{"memory_bytes":1}],"variables":{"A":"b"}}}`))
	f.Add([]byte(`{"t":1,"figure":{"name":"throughput","value":1e17,"at":{"epoch":1,"x":"y"},"of":3}}`))
	f.Add([]byte(`{"t":1,"start":{"format":1,"unix":1e9,"rank":1,"world_size":2,"pid":3}}`))
	f.Add([]byte(`{"t":1,"steps":{"first":0,"tick":1e-6,"duration":[1,2],"samples":[3,4],"compute":[1,1]}}`))
	f.Add([]byte(`{"t":1,"gradients":{"epoch":1,"samples":1,"global_samples":2,"steps":[1],"own":[1],"averaged":[1]}}`))
	f.Add([]byte(`{"t":1,"staged":{"item":"data","path":"p","seconds":1,"bytes":5}}`))
	f.Add([]byte(`{"t":1,"train":{"parameters":1,"steps_per_epoch":4}}`))
	f.Add([]byte(`{"t":1,"stop":{"status":"done","steps":4},"stop":{"epochs":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(strings.NewReader(string(data)+"\n"), "f", 0, 0)
		for {
			e, err := r.Next()
			var bad *LineError
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.As(err, &bad):
				if len(err.Error()) > maxMessage+100 {
					t.Fatalf("%d bytes are said of a bad line", len(err.Error()))
				}
				continue
			case err != nil:
				t.Fatal(err)
			}
			if err := inDomain("event", reflect.ValueOf(e)); err != nil {
				t.Fatalf("accepted with %v: %q", err, data)
			}
		}
	})
}

// Even the line that takes the most memory for its length stays within a bound.
func TestReaderMemory(t *testing.T) {
	line := `{"t":1,"environment":{"gpus":[` + strings.Repeat("{},", MaxLine/3-20) + `{}]}}` + "\n"
	if len(line) > MaxLine {
		t.Fatalf("%d bytes", len(line))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(strings.NewReader(line), "f", 0, 0).Next(); err == nil || !strings.Contains(err.Error(), "gpus has") {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
		t.Errorf("a line of %d bytes took %d bytes", len(line), used)
	}
}

// Times survive a round trip, even where UnixNano overflows.
func TestUnix(t *testing.T) {
	for _, at := range []time.Time{time.Unix(1, 0), time.Unix(1_795_000_000, 500_000_000), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		if got := Time(Unix(at)); !got.Equal(at) {
			t.Errorf("%v came back as %v", at, got)
		}
	}
	if Unix(time.Time{}) != 0 {
		t.Error("a time that is not known is not 0")
	}
	for _, seconds := range []float64{math.NaN(), math.Inf(1), -1, 1e300, MaxUnix + 1} {
		if got := Time(seconds); CheckUnix(seconds) == nil || !got.IsZero() {
			t.Errorf("%g seconds are %v", seconds, got)
		}
	}
}
