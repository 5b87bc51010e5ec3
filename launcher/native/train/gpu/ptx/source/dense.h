// Fully connected layers beside their products, and the loss. See
// launcher/native/train/cpu/dense.go.

struct bias_args {
	const float *from; // [rows][columns]
	const float *bias; // [columns]
	float *to;         // [rows][columns]; may be from
	int rows, columns;
	int relu; // or 0
};

KERNEL(bias, a.rows * a.columns) {
	float value = a.from[index] + a.bias[index % a.columns];
	a.to[index] = a.relu && value < 0 ? 0 : value; // NaN stays
}

// The end of column_sums: a bias's gradient.
struct bias_gradient_args {
	const double *from; // [rows][columns]
	float *to;          // [columns]
	int rows, columns;
};

KERNEL(bias_gradient, a.columns) { a.to[index] = (float)column_sum(a.from, a.rows, a.columns, index); }

// e to the power of x, for x ≤ 0: 2^k·e^r with |r| ≤ ln 2/2, by the Taylor series to
// r¹³/13!, whose rest is below 5e-18. ln 2 is in two parts, of which k times the first
// is exact. What is below the smallest normal number is 0.
DEVICE_FUNCTION double exponential(double x) {
	if (x != x) return x;
	if (x < -708) return 0;
	double k = (double)(int)(x * 0x1.71547652b82fep0 - 0.5);
	double r = x - k * 0x1.62e42fee00000p-1 - k * 0x1.a39ef35793c76p-33;
	double sum = 1.0 / 6227020800;
	sum = sum * r + 1.0 / 479001600;
	sum = sum * r + 1.0 / 39916800;
	sum = sum * r + 1.0 / 3628800;
	sum = sum * r + 1.0 / 362880;
	sum = sum * r + 1.0 / 40320;
	sum = sum * r + 1.0 / 5040;
	sum = sum * r + 1.0 / 720;
	sum = sum * r + 1.0 / 120;
	sum = sum * r + 1.0 / 24;
	sum = sum * r + 1.0 / 6;
	sum = sum * r + 0.5;
	sum = sum * r + 1;
	sum = sum * r + 1;
	union {
		long long bits;
		double value;
	} power;
	power.bits = ((long long)k + 1023) << 52;
	return sum * power.value;
}

// The natural logarithm of x ≥ 1: of 2^k·m with m in [√½, √2), k·ln 2 + 2·artanh s
// with s = (m − 1)/(m + 1), by the series to s²³, whose rest is below 1e-19.
DEVICE_FUNCTION double logarithm(double x) {
	union {
		double value;
		long long bits;
	} number;
	number.value = x;
	int k = (int)(number.bits >> 52) - 1023;
	number.bits = (number.bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
	if (number.value > 0x1.6a09e667f3bcdp0) {
		number.value /= 2;
		k++;
	}
	double s = (number.value - 1) / (number.value + 1), sum = 0;
	for (int i = 23; i > 0; i -= 2) sum = sum * s * s + 1.0 / i;
	return x - x != 0 ? x : k * 0x1.62e42fefa39efp-1 + 2 * s * sum;
}

// Softmax cross-entropy of each image: −log of the probability that the logits give
// to its label; and whether no other class is likelier, where of equals the first
// counts. A label that is no class has NaN.
//
// An image is one thread's, which reads its logits three times: for 512 images and 10
// classes 20 kB, in a cache, and some microseconds of a step of milliseconds. Sharing an
// image among a warp would pay for a thousand classes, which no model here has.
struct cross_entropy_args {
	const float *logits;          // [image][class]
	const unsigned char *labels;  // [image]
	float *gradient;              // [image][class], scale times the gradient by the logits; null: none
	double *to;                   // [image][2]: loss, and 1 if it is classified rightly, else 0
	float scale;
	int images, classes;
};

KERNEL(cross_entropy, a.images) {
	const float *logits = a.logits + index * a.classes;
	int label = a.labels[index];
	float largest = logits[0];
	int first = 0;
	for (int i = 1; i < a.classes; i++) {
		if (logits[i] > largest || logits[i] != logits[i]) {
			largest = logits[i]; // and stays so if it is NaN
			first = i;
		}
	}
	double sum = 0;
	for (int i = 0; i < a.classes; i++) sum += exponential((double)(logits[i] - largest));
	if (a.gradient) {
		for (int i = 0; i < a.classes; i++) {
			double p = exponential((double)(logits[i] - largest)) / sum;
			if (i == label) p--;
			a.gradient[index * a.classes + i] = a.scale * (float)p;
		}
	}
	double *to = a.to + 2 * index;
	if (label >= a.classes) {
		to[0] = __builtin_nan("");
		to[1] = 0;
		return;
	}
	to[0] = logarithm(sum) - (double)(logits[label] - largest);
	to[1] = largest == largest && label == first;
}
