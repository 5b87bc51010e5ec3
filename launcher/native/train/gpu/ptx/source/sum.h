// How many chunks there are of so many rows.
DEVICE_FUNCTION int chunks(int rows, int chunk) { return (rows - 1) / chunk + 1; }

// Sums over a batch, in double precision and in an order that depends on nothing but
// the sizes: each thread sums a chunk of rows, and sum_rows then sums what they have,
// until few rows are left, which their reader sums in order.

struct column_sums_args {
	const float *from; // [rows][columns]
	double *to;        // [chunks][columns]
	int rows, columns, chunk;
};

KERNEL(column_sums, chunks(a.rows, a.chunk) * a.columns) {
	int column = index % a.columns, row = index / a.columns * a.chunk;
	int end = a.rows - row < a.chunk ? a.rows : row + a.chunk;
	double sum = 0;
	for (; row < end; row++) sum += a.from[row * a.columns + column];
	a.to[index] = sum;
}

struct sum_rows_args {
	const double *from; // [rows][columns]
	double *to;         // [chunks][columns]
	int rows, columns, chunk;
};

KERNEL(sum_rows, chunks(a.rows, a.chunk) * a.columns) {
	int column = index % a.columns, row = index / a.columns * a.chunk;
	int end = a.rows - row < a.chunk ? a.rows : row + a.chunk;
	double sum = 0;
	for (; row < end; row++) sum += a.from[row * a.columns + column];
	a.to[index] = sum;
}

// A column of the rows that are left.
DEVICE_FUNCTION double column_sum(const double *from, int rows, int columns, int column) {
	double sum = 0;
	for (int row = 0; row < rows; row++) sum += from[row * columns + column];
	return sum;
}

// The elements that are summed to one lie parts apart, so that those of neighbouring
// threads lie together.
struct squared_norm_args {
	const float *from; // [count]
	double *to;        // [parts]
	int count, parts;
};

KERNEL(squared_norm, a.parts) {
	double sum = 0;
	for (long long i = index; i < a.count; i += a.parts) {
		double value = a.from[i];
		sum += value * value;
	}
	a.to[index] = sum;
}
