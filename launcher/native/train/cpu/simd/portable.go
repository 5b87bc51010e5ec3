package simd

import "unsafe"

// portable is the set in plain Go: the definition of the others.
func portable() *Set {
	return &Set{
		name:       "portable",
		correlates: []correlate{{Group, correlatePortable}},
		outers:     []outer{{Group, 2, outerPortable}, {Group, 1, outerRowPortable}},
		dots:       []dot{{1, 1, dotPortable}},
		normalise: func(dst, x, coefficients *float32, lines, points, channels, dstGap int) {
			normalisePortable(dst, x, nil, coefficients, lines, points, channels, dstGap, 0)
		},
		normaliseAdd: normalisePortable,
		rectify: func(dst, d, y, x, mean *float32, sums *float64, lines, points, channels, yGap int) {
			rectifyPortable(dst, d, nil, y, x, mean, sums, lines, points, channels, yGap)
		},
		rectifyAdd:   rectifyPortable,
		normGradient: normGradientPortable,
		moments:      momentsPortable,
		sgd: func(w, v, g *float32, n int, rate, momentum, decay float32) {
			sgdPortable(unsafe.Slice(w, n), unsafe.Slice(v, n), unsafe.Slice(g, n), rate, momentum, decay)
		},
	}
}

// The kernels have the assembly's arguments, so that they are reached in the same
// way; what they may read has been checked by the methods. all makes a slice of
// everything up to the last element.
func all[T any](first *T, length int) []T { return unsafe.Slice(first, length) }

// correlatePortable has two windows by four channels at a time, whose sums a
// compiler can keep in registers.
func correlatePortable(dst, src, weights *float32, windows, dstStep, srcStep, runs, run, runStep, step, _ int) {
	d, s := all(dst, (windows-1)*dstStep+Group), all(src, (windows-1)*srcStep+(runs-1)*runStep+run)
	w := all(weights, (runs*run-1)*step+Group)
	for p := 0; p < windows; p += 2 {
		q := min(p+1, windows-1) // of an odd number, the last twice
		for c := 0; c < Group; c += 4 {
			var p0, p1, p2, p3, q0, q1, q2, q3 float32
			at := c
			for r := range runs {
				xs := s[p*srcStep+r*runStep:][:run]
				ys := s[q*srcStep+r*runStep:][:run]
				for i, x := range xs {
					y, row := ys[i], (*[4]float32)(w[at:])
					p0, p1, p2, p3 = p0+x*row[0], p1+x*row[1], p2+x*row[2], p3+x*row[3]
					q0, q1, q2, q3 = q0+y*row[0], q1+y*row[1], q2+y*row[2], q3+y*row[3]
					at += step
				}
			}
			*(*[4]float32)(d[p*dstStep+c:]) = [4]float32{p0, p1, p2, p3}
			*(*[4]float32)(d[q*dstStep+c:]) = [4]float32{q0, q1, q2, q3}
		}
	}
}

// outerPortable has two rows of the result by four channels at a time.
func outerPortable(dst, a, b *float32, lines, points, aLine, aStep, bLine, bStep, step, _ int) {
	sums := all(dst, step+Group)
	as, bs := all(a, (lines-1)*aLine+(points-1)*aStep+2), all(b, (lines-1)*bLine+(points-1)*bStep+Group)
	for c := 0; c < Group; c += 4 {
		first, second := (*[4]float32)(sums[c:]), (*[4]float32)(sums[step+c:])
		p0, p1, p2, p3 := first[0], first[1], first[2], first[3]
		q0, q1, q2, q3 := second[0], second[1], second[2], second[3]
		for y := range lines {
			at, bt := y*aLine, y*bLine+c
			for range points {
				pair, row := (*[2]float32)(as[at:]), (*[4]float32)(bs[bt:])
				x, y := pair[0], pair[1]
				p0, p1, p2, p3 = p0+x*row[0], p1+x*row[1], p2+x*row[2], p3+x*row[3]
				q0, q1, q2, q3 = q0+y*row[0], q1+y*row[1], q2+y*row[2], q3+y*row[3]
				at, bt = at+aStep, bt+bStep
			}
		}
		*first, *second = [4]float32{p0, p1, p2, p3}, [4]float32{q0, q1, q2, q3}
	}
}

// outerRowPortable is for the last row of an odd number.
func outerRowPortable(dst, a, b *float32, lines, points, aLine, aStep, bLine, bStep, _, _ int) {
	sums := (*[Group]float32)(unsafe.Pointer(dst))
	as, bs := all(a, (lines-1)*aLine+(points-1)*aStep+1), all(b, (lines-1)*bLine+(points-1)*bStep+Group)
	for y := range lines {
		for x := range points {
			v := as[y*aLine+x*aStep]
			for c, w := range bs[y*bLine+x*bStep:][:Group] {
				sums[c] += v * w
			}
		}
	}
}

func dotPortable(dst, a, b *float32, n, _, _, _ int) {
	var sum float32
	bs := all(b, n)
	for i, v := range all(a, n) {
		sum += v * bs[i]
	}
	*dst += sum
}

// each calls f for every number of an image: its channel, its place without
// gaps, and the line it is in.
func each(lines, points, channels int, f func(channel, at, line int)) {
	at := 0
	for line := range lines {
		for range points {
			for c := range channels {
				f(c, at, line)
				at++
			}
		}
	}
}

func normalisePortable(dst, x, add, coefficients *float32, lines, points, channels, dstGap, addGap int) {
	size := lines * points * channels
	y, in, k := all(dst, size+(lines-1)*dstGap), all(x, size), all(coefficients, 3*channels)
	var shortcut []float32
	if add != nil {
		shortcut = all(add, size+(lines-1)*addGap)
	}
	each(lines, points, channels, func(c, at, line int) {
		v := (in[at]-k[c])*k[channels+c] + k[2*channels+c]
		if shortcut != nil {
			v += shortcut[at+line*addGap]
		}
		y[at+line*dstGap] = max(v, 0)
	})
}

func rectifyPortable(dst, d, add, y, x, mean *float32, sums *float64, lines, points, channels, yGap int) {
	size := lines * points * channels
	out, g, in, m, s := all(dst, size), all(d, size), all(x, size), all(mean, channels), all(sums, 2*channels)
	outcome := all(y, size+(lines-1)*yGap)
	var shortcut []float32
	if add != nil {
		shortcut = all(add, size)
	}
	each(lines, points, channels, func(c, at, line int) {
		v := g[at]
		if shortcut != nil {
			v += shortcut[at]
		}
		if outcome[at+line*yGap] <= 0 {
			v = 0
		}
		out[at] = v
		s[c] += float64(v)
		s[channels+c] += float64(v) * float64(in[at]-m[c])
	})
}

func normGradientPortable(dst, g, x, coefficients *float32, lines, points, channels, dstGap int) {
	size := lines * points * channels
	out, in, d, k := all(dst, size+(lines-1)*dstGap), all(x, size), all(g, size), all(coefficients, 4*channels)
	each(lines, points, channels, func(c, at, line int) {
		out[at+line*dstGap] = k[channels+c]*(d[at]-k[3*channels+c]) + k[2*channels+c]*(in[at]-k[c])
	})
}

func momentsPortable(x *float32, sums *float64, lines, points, channels int) {
	in, s := all(x, lines*points*channels), all(sums, 2*channels)
	each(lines, points, channels, func(c, at, _ int) {
		v := float64(in[at])
		s[c] += v
		s[channels+c] += v * v
	})
}

// sgdPortable rounds each product: the language lets a compiler fuse it with the
// sum otherwise, and some do.
func sgdPortable(w, v, g []float32, rate, momentum, decay float32) {
	for i := range w {
		v[i] = float32(momentum*v[i]) + (g[i] + float32(decay*w[i]))
		w[i] -= float32(rate * v[i])
	}
}
