package simd

// An Image is lines of points of channels. Data begins with the first line's
// first point; behind each line, Gap numbers belong to something else, as the
// margin of a padded image does.
type Image struct {
	Data []float32
	Gap  int
}

// A Shape is the lines of an image, the points of a line, and the channels of a
// point, a multiple of Group.
type Shape struct{ Lines, Points, Channels int }

// Size returns how many numbers an image without gaps has.
func (s Shape) Size() int { return s.Lines * s.Points * s.Channels }

func (s Shape) line() int { return s.Points * s.Channels }

func (s Shape) held(images ...Image) {
	multiple(s.Channels)
	for _, i := range images {
		_ = i.Data[s.Lines*(s.line()+i.Gap)-i.Gap-1]
	}
}

// Normalise computes batch normalisation, adds a shortcut, and applies a ReLU: for each channel of
// x, which has no gaps,
//
//	dst = max(scale·(x − mean) + shift + add, 0)
//
// coefficients are all means, then all scales, then all shifts. If add has no data, nothing is
// added.
func (s *Set) Normalise(dst Image, x []float32, add Image, coefficients []float32, shape Shape) {
	shape.held(dst, Image{x, 0})
	_ = coefficients[3*shape.Channels-1]
	if add.Data == nil {
		s.normalise(&dst.Data[0], &x[0], &coefficients[0], shape.Lines, shape.Points, shape.Channels, dst.Gap)
		return
	}
	shape.held(add)
	s.normaliseAdd(&dst.Data[0], &x[0], &add.Data[0], &coefficients[0], shape.Lines, shape.Points, shape.Channels, dst.Gap, add.Gap)
}

// Rectify is the backward pass of a ReLU of outcome y, and the sums that batch
// normalisation of x needs before its own: without gaps but in y,
//
//	dst = d + add, 0 where y ≤ 0
//
// sums, of all dst in each channel, and behind them of all dst·(x − mean), are
// added to. add may be nil; dst may be d or add.
func (s *Set) Rectify(dst, d, add []float32, y Image, x, mean []float32, sums []float64, shape Shape) {
	shape.held(Image{dst, 0}, Image{d, 0}, y, Image{x, 0})
	_, _ = mean[shape.Channels-1], sums[2*shape.Channels-1]
	if add == nil {
		s.rectify(&dst[0], &d[0], &y.Data[0], &x[0], &mean[0], &sums[0], shape.Lines, shape.Points, shape.Channels, y.Gap)
		return
	}
	shape.held(Image{add, 0})
	s.rectifyAdd(&dst[0], &d[0], &add[0], &y.Data[0], &x[0], &mean[0], &sums[0], shape.Lines, shape.Points, shape.Channels, y.Gap)
}

// NormGradient is the backward pass of batch normalisation: for each channel, of
// g and x without gaps,
//
//	dst = a·(g − b) + c·(x − mean)
//
// coefficients are all means, then all a, then all c, then all b.
func (s *Set) NormGradient(dst Image, g, x, coefficients []float32, shape Shape) {
	shape.held(dst, Image{g, 0}, Image{x, 0})
	_ = coefficients[4*shape.Channels-1]
	s.normGradient(&dst.Data[0], &g[0], &x[0], &coefficients[0], shape.Lines, shape.Points, shape.Channels, dst.Gap)
}

// Moments adds the sum of each channel, and behind them of its squares, to sums.
func (s *Set) Moments(x []float32, sums []float64, points, channels int) {
	shape := Shape{1, points, channels}
	shape.held(Image{x, 0})
	_ = sums[2*channels-1]
	s.moments(&x[0], &sums[0], 1, points, channels)
}

// SGD is a step of stochastic gradient descent with momentum and weight decay:
//
//	v ← momentum·v + (g + decay·w)
//	w ← w − rate·v
//
// Each operation is rounded by itself, so that every set gives the same bits.
func (s *Set) SGD(w, v, g []float32, rate, momentum, decay float32) {
	v, g = v[:len(w)], g[:len(w)]
	n := len(w) &^ (Group - 1)
	if n > 0 {
		s.sgd(&w[0], &v[0], &g[0], n, rate, momentum, decay)
	}
	sgdPortable(w[n:], v[n:], g[n:], rate, momentum, decay)
}
