package model

import "math"

// term is one way in which the time of a sample grows with the number of
// workers. The time is in worker-seconds a sample, y = N/X: the constant is
// what one sample costs in computing, the rest what working together adds.
type term struct {
	name string
	of   func(d *Data, n float64) float64
}

// Number of parties that exchange gradients over the slower network: nodes
// where workers share one, else workers.
func (d *Data) parties(n float64) float64 { return n / float64(max(d.NodeSize, 1)) }

// perStep is the cost of a step's term for one sample. With a fixed batch per
// worker a step is as many samples per worker whatever N; with a fixed global
// batch each worker has 1/N of it, and what a step costs weighs N times as
// much.
func (d *Data) perStep(n, cost float64) float64 {
	if d.Strong {
		return cost * d.parties(n)
	}
	return cost
}

var compute = term{"compute", func(d *Data, n float64) float64 { return 1 }}

// alphaBeta are the terms of Hockney's model for the all-reduces in use: the
// bandwidth term of ring and halving-doubling, the latency of a ring, that of
// halving-doubling and trees (Thakur, Rabenseifner and Gropp 2005).
var alphaBeta = []term{
	{"bandwidth", func(d *Data, n float64) float64 {
		m := d.parties(n)
		return d.perStep(n, (m-1)/m)
	}},
	{"ring latency", func(d *Data, n float64) float64 { return d.perStep(n, d.parties(n)-1) }},
	{"tree latency", func(d *Data, n float64) float64 { return d.perStep(n, math.Log2(d.parties(n))) }},
}

// launch is what a step costs beyond its samples. Only with a fixed global
// batch can it be told from computing.
var launch = term{"step", func(d *Data, n float64) float64 { return d.parties(n) }}

// beyond is a resource that all workers share, a file server or a switch, and
// that is enough for so many of them: from there on each further worker waits
// in line (the asymptotic bound X ≤ 1/D of operational analysis; Denning &
// Buzen 1978).
func beyond(parties float64) term {
	return term{"shared resource", func(d *Data, n float64) float64 { return max(0, d.parties(n)-parties) }}
}
