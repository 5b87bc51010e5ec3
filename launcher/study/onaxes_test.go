package study

import "testing"

func TestOnAxes(t *testing.T) {
	const file = `
[study]
name = "s"
repeats = 2
[workload]
model = "mlp"
epochs = 3
batch = 32
[data]
kind = "synthetic"
[sweep]
framework = ["native"]
workers = [1, 2]
cpus_per_worker = [1, 2]
`
	for _, tt := range []struct {
		words []string
		want  bool
	}{
		{nil, true},
		{[]string{"workers=[4]"}, true},
		{[]string{"workers=4", "repeats=6", "study.first_repeat=3"}, true},
		{[]string{"cpus_per_worker=4"}, true},
		{[]string{"sweep.cpus_per_worker=[4]"}, true},
		{[]string{"sweep.design=one-factor"}, true},
		{[]string{"time=2h", "exclusive=false", "max_in_flight=2"}, true},
		{[]string{"epochs=1"}, false},
		{[]string{"workers=4", "epochs=1"}, false},
		{[]string{"sweep.epochs=[1, 3]"}, false},
		{[]string{"sweep.batch=[32, 64]"}, false},
		{[]string{"workers_per_node=1"}, false},
	} {
		_, _, list, problems := override([]byte(file), tt.words)
		if problems != nil {
			t.Errorf("%q: %v", tt.words, problems)
		}
		if got := OnAxes(list); got != tt.want {
			t.Errorf("%q (%v): %v, want %v", tt.words, list, got, tt.want)
		}
	}
}
