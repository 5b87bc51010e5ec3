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
