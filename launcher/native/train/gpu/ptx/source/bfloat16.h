// Single precision and bfloat16, which is its upper half.

// rounded is the nearest bfloat16, and of two equally near the even one; NaN stays a
// NaN.
DEVICE_FUNCTION unsigned short rounded(unsigned bits) {
	if ((bits & 0x7fffffff) > 0x7f800000)
		bits |= 0x400000;
	else
		bits += 0x7fff + (bits >> 16 & 1);
	return (unsigned short)(bits >> 16);
}

struct to_bfloat16_args {
	const unsigned *from;
	unsigned short *to;
	int count;
};

KERNEL(to_bfloat16, a.count) { a.to[index] = rounded(a.from[index]); }

struct from_bfloat16_args {
	const unsigned short *from;
	unsigned *to;
	int count;
};

KERNEL(from_bfloat16, a.count) { a.to[index] = (unsigned)a.from[index] << 16; }
