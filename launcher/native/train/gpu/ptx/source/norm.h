// Batch normalisation (Ioffe and Szegedy 2015), with the shortcut of option A (He et
// al. 2016) and the ReLU behind it. The formulas are those of
// launcher/native/train/cpu/norm.go, and so is the precision: sums and what follows
// from them for a channel are double, elements are single.

// Sums of a channel and behind them sums of its squares.
struct moments_args {
	const float *from; // [rows][channels]
	double *to;        // [chunks][2·channels]
	int rows, channels, chunk;
};

KERNEL(moments, chunks(a.rows, a.chunk) * a.channels) {
	int channel = index % a.channels, chunk = index / a.channels, row = chunk * a.chunk;
	int end = a.rows - row < a.chunk ? a.rows : row + a.chunk;
	double sum = 0, squares = 0;
	for (; row < end; row++) {
		double value = a.from[row * a.channels + channel];
		sum += value;
		squares += value * value;
	}
	a.to[2 * chunk * a.channels + channel] = sum;
	a.to[(2 * chunk + 1) * a.channels + channel] = squares;
}

DEVICE_FUNCTION double inverse_deviation(double variance, double epsilon) { return 1 / __builtin_sqrt(variance + epsilon); }

// What normalise takes: means, then scales, then shifts.
struct norm_statistics_args {
	const double *sums;                    // [rows][2·channels], see moments
	const float *scale, *shift;            // parameters
	float *running_mean, *running_variance; // averages over batches, moved
	double *inverse;                       // 1/√(variance + epsilon)
	float *coefficients;                   // [3][channels]
	double count, epsilon;                 // values of a channel
	float momentum;                        // weight of this batch in the averages
	int rows, channels;
};

KERNEL(norm_statistics, a.channels) {
	int channels = a.channels;
	double mean = column_sum(a.sums, a.rows, 2 * channels, index) / a.count;
	double variance = column_sum(a.sums, a.rows, 2 * channels, channels + index) / a.count - mean * mean;
	if (variance < 0) variance = 0; // but NaN stays
	double inverse = inverse_deviation(variance, a.epsilon);
	a.inverse[index] = inverse;
	a.coefficients[index] = (float)mean;
	a.coefficients[channels + index] = (float)(a.scale[index] * inverse);
	a.coefficients[2 * channels + index] = a.shift[index];
	double unbiased = variance * a.count / (a.count > 2 ? a.count - 1 : 1);
	a.running_mean[index] += a.momentum * ((float)mean - a.running_mean[index]);
	a.running_variance[index] += a.momentum * ((float)unbiased - a.running_variance[index]);
}

// The same from the averages, for evaluation.
struct norm_averages_args {
	const float *running_mean, *running_variance;
	const float *scale, *shift; // parameters
	float *coefficients;        // [3][channels]
	double epsilon;
	int channels;
};

KERNEL(norm_averages, a.channels) {
	int channels = a.channels;
	a.coefficients[index] = a.running_mean[index];
	a.coefficients[channels + index] = (float)(a.scale[index] * inverse_deviation(a.running_variance[index], a.epsilon));
	a.coefficients[2 * channels + index] = a.shift[index];
}

// max(scale·(y − mean) + shift + shortcut, 0). The shortcut is an outcome of another
// shape: every stride-th pixel of every stride-th line, with as many channels of zeros
// on both sides as are lacking.
struct normalise_args {
	const float *from;         // images
	const float *coefficients; // [3][channels]
	const float *shortcut;     // images, or null
	float *to;                 // images
	struct shape shape, shortcut_shape;
	int stride;
};

KERNEL(normalise, pixels(a.shape) * a.shape.channels) {
	int channels = a.shape.channels, channel = index % channels;
	const float *coefficients = a.coefficients;
	float value = (a.from[index] - coefficients[channel]) * coefficients[channels + channel] + coefficients[2 * channels + channel];
	if (a.shortcut) {
		int pixel = index / channels, x = pixel % a.shape.points;
		pixel /= a.shape.points;
		int y = pixel % a.shape.lines, image = pixel / a.shape.lines;
		struct shape s = a.shortcut_shape;
		int own = channel - (channels - s.channels) / 2;
		if (own >= 0 && own < s.channels)
			value += a.shortcut[((image * s.lines + y * a.stride) * s.points + x * a.stride) * s.channels + own];
	}
	a.to[index] = value < 0 ? 0 : value; // NaN stays
}

// The gradient by what the ReLU read, from that by its outcome, and from that of the
// unit, or null, whose shortcut the outcome is.
struct rectify_args {
	const float *from;    // gradient by the outcome
	const float *outcome; // images
	const float *user;    // gradient by what that unit's ReLU read, or null
	float *to;            // images; may be from
	struct shape shape, user_shape;
	int stride; // between the pixels of the outcome that the unit took
};

KERNEL(rectify, pixels(a.shape) * a.shape.channels) {
	float value = a.from[index];
	if (a.user) {
		int channel = index % a.shape.channels, pixel = index / a.shape.channels;
		int x = pixel % a.shape.points;
		pixel /= a.shape.points;
		int y = pixel % a.shape.lines, image = pixel / a.shape.lines;
		struct shape u = a.user_shape;
		if (x % a.stride == 0 && y % a.stride == 0)
			value += a.user[((image * u.lines + y / a.stride) * u.points + x / a.stride) * u.channels + (u.channels - a.shape.channels) / 2 + channel];
	}
	a.to[index] = a.outcome[index] <= 0 ? 0 : value;
}

// Sums of the gradient g of a channel, and behind them those of g·(y − mean).
struct gradient_moments_args {
	const float *gradient, *from; // g and y, [rows][channels]
	const float *mean;            // [channels]
	double *to;                   // [chunks][2·channels]
	int rows, channels, chunk;
};

KERNEL(gradient_moments, chunks(a.rows, a.chunk) * a.channels) {
	int channel = index % a.channels, chunk = index / a.channels, row = chunk * a.chunk;
	int end = a.rows - row < a.chunk ? a.rows : row + a.chunk;
	float mean = a.mean[channel];
	double sum = 0, products = 0;
	for (; row < end; row++) {
		double g = a.gradient[row * a.channels + channel];
		sum += g;
		products += g * (a.from[row * a.channels + channel] - mean);
	}
	a.to[2 * chunk * a.channels + channel] = sum;
	a.to[(2 * chunk + 1) * a.channels + channel] = products;
}

// The parameters' gradients are of this rank's images; the statistics that the rest
// is about may be of all ranks', and then so are their sums.
struct norm_gradient_coefficients_args {
	const double *own;                    // [own_rows][2·channels], see gradient_moments
	const double *all;                    // [all_rows][2·channels]
	const double *inverse;                // see norm_statistics
	const float *scale;                   // parameter
	const float *mean;                    // [channels]
	float *scale_gradient, *shift_gradient; // set
	float *coefficients;                  // [4][channels]: means, a, c, b of norm_gradient
	double count;                         // values of a channel, in all
	int own_rows, all_rows, channels;
};

KERNEL(norm_gradient_coefficients, a.channels) {
	int channels = a.channels;
	double inverse = a.inverse[index];
	a.shift_gradient[index] = (float)column_sum(a.own, a.own_rows, 2 * channels, index);
	a.scale_gradient[index] = (float)(column_sum(a.own, a.own_rows, 2 * channels, channels + index) * inverse);
	double sum = column_sum(a.all, a.all_rows, 2 * channels, index);
	double products = column_sum(a.all, a.all_rows, 2 * channels, channels + index);
	double factor = a.scale[index] * inverse;
	a.coefficients[index] = a.mean[index];
	a.coefficients[channels + index] = (float)factor;
	a.coefficients[2 * channels + index] = (float)(-factor * inverse * inverse * products / a.count);
	a.coefficients[3 * channels + index] = (float)(sum / a.count);
}

// a·(g − b) + c·(y − mean)
struct norm_gradient_args {
	const float *gradient, *from; // g and y, [rows][channels]
	const float *coefficients;    // [4][channels]
	float *to;                    // [rows][channels]; may be gradient
	int rows, channels;
};

KERNEL(norm_gradient, a.rows * a.channels) {
	int channel = index % a.channels;
	const float *k = a.coefficients + channel;
	a.to[index] = k[a.channels] * (a.gradient[index] - k[3 * a.channels]) + k[2 * a.channels] * (a.from[index] - k[0]);
}
