#include "double.h"
#include <math.h>
#include <string.h>

static const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

size_t size_of(enum type t) { return sizes[t]; }

static double from_half(uint16_t h) {
	int exponent = h >> 10 & 31, fraction = h & 1023;
	double v = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
	return h & 0x8000 ? -v : v;
}

// Rounds to the nearest, ties to even, which is what rint does by default.
static uint16_t to_half(double v) {
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	v = fabs(v);
	if (isnan(v)) return sign | 0x7e00;
	if (v >= 65520) return sign | 0x7c00;
	int exponent;
	frexp(v, &exponent); // v < 2^exponent
	if (v == 0 || exponent < -13) return sign | (uint16_t)rint(ldexp(v, 24));
	// A fraction that rounds up to 2048 carries into the exponent, as it should.
	return sign | (uint16_t)(((exponent + 13) << 10) + (int)rint(ldexp(v, 11 - exponent)));
}

static double from_bfloat(uint16_t b) {
	uint32_t bits = (uint32_t)b << 16;
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

static uint16_t to_bfloat(double v) {
	float f = (float)v;
	uint32_t bits;
	memcpy(&bits, &f, 4);
	if (isnan(f)) return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double floating(const unsigned char *p, enum type t) {
	uint16_t h;
	float f;
	double d;
	switch (t) {
	case FLOAT16: memcpy(&h, p, 2); return from_half(h);
	case BFLOAT16: memcpy(&h, p, 2); return from_bfloat(h);
	case FLOAT32: memcpy(&f, p, 4); return f;
	default: memcpy(&d, p, 8); return d;
	}
}

static void store_floating(unsigned char *p, double v, enum type t) {
	uint16_t h;
	float f = (float)v;
	switch (t) {
	case FLOAT16: h = to_half(v); memcpy(p, &h, 2); break;
	case BFLOAT16: h = to_bfloat(v); memcpy(p, &h, 2); break;
	case FLOAT32: memcpy(p, &f, 4); break;
	default: memcpy(p, &v, 8);
	}
}

// Integers of all sizes as 64 bits, sign-extended where they have a sign.
static uint64_t integer(const unsigned char *p, enum type t) {
	int8_t a;
	int32_t b;
	uint32_t c;
	uint64_t d;
	switch (t) {
	case INT8: memcpy(&a, p, 1); return (uint64_t)a;
	case UINT8: return *p;
	case INT32: memcpy(&b, p, 4); return (uint64_t)b;
	case UINT32: memcpy(&c, p, 4); return c;
	default: memcpy(&d, p, 8); return d;
	}
}

// The lowest bytes, on a little-endian machine.
static void store_integer(unsigned char *p, uint64_t v, enum type t) { memcpy(p, &v, sizes[t]); }

static double combine_floating(double a, double b, enum reduction r) {
	switch (r) {
	case PROD: return a * b;
	case MAX: return a > b ? a : b;
	case MIN: return a < b ? a : b;
	default: return a + b;
	}
}

static uint64_t combine_integer(uint64_t a, uint64_t b, enum reduction r, int is_signed) {
	int less = is_signed ? (int64_t)a < (int64_t)b : a < b;
	switch (r) {
	case PROD: return a * b;
	case MAX: return less ? b : a;
	case MIN: return less ? a : b;
	default: return a + b;
	}
}

void reduce(unsigned char *to, unsigned char *const *slots, int ranks, size_t count, enum type t, enum reduction r) {
	size_t size = sizes[t];
	int is_signed = t == INT8 || t == INT32 || t == INT64;
	for (size_t i = 0; i < count; i++) {
		size_t at = i * size;
		if (t >= FLOAT16) {
			double v = floating(slots[0] + at, t);
			for (int k = 1; k < ranks; k++) v = combine_floating(v, floating(slots[k] + at, t), r);
			store_floating(to + at, r == AVG ? v / ranks : v, t);
			continue;
		}
		uint64_t v = integer(slots[0] + at, t);
		for (int k = 1; k < ranks; k++) v = combine_integer(v, integer(slots[k] + at, t), r, is_signed);
		if (r == AVG) v = is_signed ? (uint64_t)((int64_t)v / ranks) : v / (uint64_t)ranks;
		store_integer(to + at, v, t);
	}
}
