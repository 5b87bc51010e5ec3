package sequential

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func onNode(point string, node string, throughput float64) scaling.Observation {
	return scaling.Observation{Point: point, Hosts: []string{node}, Values: map[string]float64{measure.Throughput: throughput}}
}

// By hand, in logarithms: node a has 0 and 2 %, node b 4 and 6 %, of one point. The means are 1 and 5 %
// about 3 %. Between: 2·(2² + 2²) = 16 with 1 degree of freedom. Within: 4·1² = 4 with 2, so 2. The
// groups have 2 runs: (16 - 2)/2 = 7, and its root is 2.646 %. F = 8 with 1 and 2 degrees of freedom:
// t = √8 with 2 has p = 1 - √8/√(8+2) = 0.1056.
func TestComponentsByHand(t *testing.T) {
	var obs []scaling.Observation
	for i, node := range []string{"a", "a", "b", "b"} {
		obs = append(obs, onNode("w1", node, 100*math.Exp(0.02*float64(i))))
	}
	if list := Components(obs); len(list) != 1 || list[0].Name != "nodes" || list[0].Groups != 2 || math.Abs(list[0].SD-0.02646) > 1e-5 || math.Abs(list[0].P-0.1056) > 1e-4 {
		t.Errorf("%+v", list)
	}
}

func TestComponentsOmitted(t *testing.T) {
	for name, obs := range map[string][]scaling.Observation{
		"nothing":        nil,
		"one node":       {onNode("w1", "a", 100), onNode("w1", "a", 101), onNode("w1", "a", 99)},
		"one run a node": {onNode("w1", "a", 100), onNode("w1", "b", 101), onNode("w1", "c", 99)},
		"unknown":        {onNode("w1", "", 100), onNode("w1", "", 101)},
	} {
		for i := range obs {
			if obs[i].Hosts[0] == "" {
				obs[i].Hosts = nil
			}
		}
		if list := Components(obs); list != nil {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// The truth comes first: nodes differ by 3 %, runs by 1 %, days not at all. Over 200 studies, the mean
// of the variance between nodes is right within 10 %, and days differ at p < 0.05 in about 5 %.
func TestComponentsTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	const studies, nodes, days = 200, 6, 3
	variance, wrong := 0.0, 0
	for range studies {
		speed := make([]float64, nodes)
		for i := range speed {
			speed[i] = 0.03 * random.NormFloat64()
		}
		var obs []scaling.Observation
		for i := range 48 {
			node := random.IntN(nodes)
			o := onNode(fmt.Sprint("w", i%2), fmt.Sprint(node), 100*float64(1+i%2)*math.Exp(speed[node]+0.01*random.NormFloat64()))
			o.BeganUnix = 1.79e9 + 86400*float64(random.IntN(days))
			obs = append(obs, o)
		}
		list := Components(obs)
		if len(list) != 2 || list[0].Name != "nodes" || list[1].Name != "days" {
			t.Fatalf("%+v", list)
		}
		variance += list[0].SD * list[0].SD / studies
		if list[1].P < 0.05 {
			wrong++
		}
	}
	if math.Abs(variance/0.0009-1) > 0.1 || wrong > 10+3*4 {
		t.Errorf("nodes differ by %.4f, want 0.03; days differ in %d of %d", math.Sqrt(variance), wrong, studies)
	}
}
