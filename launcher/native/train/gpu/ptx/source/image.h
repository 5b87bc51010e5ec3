// Images as they lie in memory, NHWC: the channels of a point lie together, then come
// its neighbours in the line.
struct shape {
	int images, lines, points, channels;
};

DEVICE_FUNCTION int pixels(struct shape s) { return s.images * s.lines * s.points; }

// Images as a data set has them, to what a network reads: each a window of itself with
// a margin of zeros, perhaps mirrored, its bytes replaced by what they are after
// normalising. See launcher/native/dataset/decode.go.
struct decode_args {
	const unsigned char *from;    // [image][channel][line][point]
	const unsigned char *changes; // [image][3]: the window's point and line in the margin, and whether it is mirrored
	const float *values;          // [channel][256]
	float *to;                    // images
	struct shape shape;           // of the images
	int margin;
};

KERNEL(decode, pixels(a.shape) * a.shape.channels) {
	int channel = index % a.shape.channels, rest = index / a.shape.channels;
	int x = rest % a.shape.points;
	rest /= a.shape.points;
	int y = rest % a.shape.lines, image = rest / a.shape.lines;
	const unsigned char *change = a.changes + 3 * image;
	if (change[2]) x = a.shape.points - 1 - x;
	x += change[0] - a.margin;
	y += change[1] - a.margin;
	float value = 0;
	if (y >= 0 && y < a.shape.lines && x >= 0 && x < a.shape.points)
		value = a.values[channel * 256 + a.from[((image * a.shape.channels + channel) * a.shape.lines + y) * a.shape.points + x]];
	a.to[index] = value;
}

// 3×3 convolutions with zero padding 1 as products of matrices. A row of columns is
// what one pixel of the output sees: cols[pixel][tap y][tap x][channel], beside the
// weights w[output][tap y][tap x][channel]. See launcher/native/train/cpu/conv.go.

struct im2col_args {
	const float *from; // images
	float *to;         // a row for each pixel of the output
	struct shape in, out;
	int stride;
};

struct im2col_bfloat16_args {
	const float *from;  // images
	unsigned short *to; // a row for each pixel of the output, of bfloat16
	struct shape in, out;
	int stride;
};

// An index of both is of four channels where they come in fours, for the divisions
// that find its pixel cost a GPU more than the copy. Addresses are then multiples of
// 16. Divisions by 4, or else 1, are shifts.
DEVICE_FUNCTION int fours(int channels) { return channels % 4 == 0 ? 2 : 0; }

typedef float four __attribute__((vector_size(16)));
typedef unsigned four_bits __attribute__((vector_size(16)));
typedef unsigned short four_bfloat16 __attribute__((vector_size(8)));

// Where in the images what belongs at an index is; less than 0: in the margin.
DEVICE_FUNCTION int seen(struct shape in, struct shape out, int stride, int index) {
	int shift = fours(in.channels), groups = in.channels >> shift;
	int channel = index % groups << shift, rest = index / groups;
	int tap = rest % 9;
	rest /= 9;
	int x = rest % out.points * stride + tap % 3 - 1;
	rest /= out.points;
	int y = rest % out.lines * stride + tap / 3 - 1;
	int image = rest / out.lines;
	if (y < 0 || y >= in.lines || x < 0 || x >= in.points) return -1;
	return ((image * in.lines + y) * in.points + x) * in.channels + channel;
}

KERNEL(im2col, pixels(a.out) * 9 * a.in.channels >> fours(a.in.channels)) {
	int at = seen(a.in, a.out, a.stride, index);
	if (fours(a.in.channels)) {
		four values = {0, 0, 0, 0};
		if (at >= 0) values = *(const four *)(a.from + at);
		((four *)a.to)[index] = values;
	} else {
		a.to[index] = at >= 0 ? a.from[at] : 0;
	}
}

KERNEL(im2col_bfloat16, pixels(a.out) * 9 * a.in.channels >> fours(a.in.channels)) {
	int at = seen(a.in, a.out, a.stride, index);
	if (fours(a.in.channels)) {
		four_bfloat16 values = {0, 0, 0, 0};
		if (at >= 0) {
			four_bits bits = *(const four_bits *)(a.from + at);
			for (int i = 0; i < 4; i++) values[i] = rounded(bits[i]);
		}
		((four_bfloat16 *)a.to)[index] = values;
	} else {
		a.to[index] = at >= 0 ? rounded(*(const unsigned *)(a.from + at)) : 0;
	}
}

// The transpose of im2col: each element of an image is the sum of what the pixels
// that saw it give back, in order of their taps. Nothing is scattered. A stride of 1
// or 2 is a shift.
struct col2im_args {
	const float *from; // a row for each pixel of the output
	float *to;         // images
	struct shape in, out;
	int stride;
};

KERNEL(col2im, pixels(a.in) * a.in.channels) {
	int channel = index % a.in.channels, rest = index / a.in.channels;
	int x = rest % a.in.points;
	rest /= a.in.points;
	int y = rest % a.in.lines, image = rest / a.in.lines;
	int shift = a.stride - 1;
	float sum = 0;
	for (int ty = 0; ty < 3; ty++) {
		int down = y + 1 - ty, line = down >> shift;
		if (down < 0 || down & shift || line >= a.out.lines) continue;
		for (int tx = 0; tx < 3; tx++) {
			int right = x + 1 - tx, point = right >> shift;
			if (right < 0 || right & shift || point >= a.out.points) continue;
			sum += a.from[(((image * a.out.lines + line) * a.out.points + point) * 9 + ty * 3 + tx) * a.in.channels + channel];
		}
	}
	a.to[index] = sum;
}

// The mean of each channel over an image.
struct pool_args {
	const float *from; // images
	float *to;         // [image][channel]
	struct shape shape; // of the images
};

KERNEL(pool, a.shape.images * a.shape.channels) {
	int channels = a.shape.channels, size = a.shape.lines * a.shape.points;
	const float *from = a.from + index / channels * size * channels + index % channels;
	double sum = 0;
	for (int pixel = 0; pixel < size; pixel++) sum += from[pixel * channels];
	a.to[index] = (float)(sum / size);
}

struct pool_gradient_args {
	const float *from; // gradient by the means, [image][channel]
	float *to;         // gradient by the images
	struct shape shape; // of the images
};

KERNEL(pool_gradient, pixels(a.shape) * a.shape.channels) {
	int channels = a.shape.channels, size = a.shape.lines * a.shape.points;
	int channel = index % channels, image = index / channels / size;
	a.to[index] = (float)((double)a.from[image * channels + channel] / size);
}
