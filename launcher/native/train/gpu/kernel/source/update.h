// Optimisers, in PyTorch's form: see Engine.Update in
// launcher/native/train/cpu/engine.go. Every operation is rounded by itself.

struct sgd_args {
	float *weights, *velocity;
	const float *gradients;
	int count;
	float rate, momentum, decay;
};

KERNEL(sgd, a.count) {
	float w = a.weights[index];
	float v = a.momentum * a.velocity[index] + (a.gradients[index] + a.decay * w);
	a.velocity[index] = v;
	a.weights[index] = w - a.rate * v;
}

// Adam and AdamW: the fields are those of cpu/adam.go.
struct adam_args {
	float *weights, *mean, *squares;
	const float *gradients;
	int count;
	float beta1, rest1, beta2, rest2;
	float coupled;             // weight decay that is added to the gradient
	float keep;                // what AdamW's leaves of a weight
	float size, root, epsilon; // of the step; √(1−β₂ᵗ)
};

KERNEL(adam, a.count) {
	float w = a.weights[index];
	float g = a.gradients[index] + a.coupled * w;
	float mean = a.beta1 * a.mean[index] + a.rest1 * g;
	float squares = a.beta2 * a.squares[index] + a.rest2 * (g * g);
	a.mean[index] = mean;
	a.squares[index] = squares;
	a.weights[index] = a.keep * w - a.size * (mean / (__builtin_sqrtf(squares) / a.root + a.epsilon));
}

// Single precision to bfloat16, its upper half, rounded to the nearest and of two
// equally near to the even one; NaN stays a NaN.
struct to_bfloat16_args {
	const unsigned *from;
	unsigned short *to;
	int count;
};

KERNEL(to_bfloat16, a.count) {
	unsigned bits = a.from[index];
	if ((bits & 0x7fffffff) > 0x7f800000)
		bits |= 0x400000;
	else
		bits += 0x7fff + (bits >> 16 & 1);
	a.to[index] = (unsigned short)(bits >> 16);
}

struct from_bfloat16_args {
	const unsigned short *from;
	unsigned *to;
	int count;
};

KERNEL(from_bfloat16, a.count) { a.to[index] = (unsigned)a.from[index] << 16; }
