package measure

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Places round-trip: numbers and texts stay distinct, places keep their order of
// arrival, and the first value of a measure wins.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := map[string][]any{"bytes": {0.0, 8.0, -1.5, 1e300}, "op": {"all_reduce", "", "8", 8.0}, "x": {"op", 0.0}}
	var places Places
	var want []Place
	at := map[string]int{}
	for range 3000 {
		where := map[string]any{}
		for key, values := range some {
			if n := r.IntN(len(values) + 1); n < len(values) {
				where[key] = values[n]
			}
		}
		name, value := fmt.Sprint("m", r.IntN(3)), r.Float64()
		i, known := at[Key(where)]
		if !known {
			i = len(want)
			at[Key(where)], want = i, append(want, Place{At: where, Values: map[string]float64{}})
		}
		_, has := want[i].Values[name]
		if added := places.Add(where, name, value); added == has {
			t.Fatalf("%v %s: added %v, want %v", where, name, added, !has)
		}
		if !has {
			want[i].Values[name] = value
		}
	}
	if diff := cmp.Diff(want, places.List()); diff != "" || len(want) != 5*5*3 {
		t.Errorf("%d places (-want +got):\n%s", len(want), diff)
	}
	if none := (*Places)(nil).List(); none != nil || (&Places{}).List() != nil {
		t.Errorf("none: %v", none)
	}
}

// A benchmark of a million sizes has two million places, with three values each.
func TestPlacesUseLittleMemory(t *testing.T) {
	live := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const n = 100_000
	before := live()
	var places Places
	for i := range n {
		for _, name := range []string{Time, AlgBW, BusBW} {
			places.Add(map[string]any{Bytes: float64(i), InPlace: 0.0, Op: "all_reduce"}, name, 1)
		}
	}
	// A place takes three numbers of 8 bytes, a key of 10 in 16, its header twice, and
	// its index. Slices and the map may have room for twice as many.
	if each := (live() - before) / n; each > 2*(3*8+16+2*16+4+1) {
		t.Errorf("a place takes %d bytes", each)
	}
	runtime.KeepAlive(&places)
}
