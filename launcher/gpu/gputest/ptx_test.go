package gputest_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
)

// program returns a module with one entry per body. An entry has eight registers of each type
// and leaves its result in %rd0, or stores another one to %rd7 itself.
func program(bodies []string) string {
	text := ".version 6.0\n.target sm_70\n.address_size 64\n"
	for i, body := range bodies {
		text += fmt.Sprintf(`
.visible .entry k%[1]d(
	.param .align 8 .b8 k%[1]d_param_0[8]
)
{
	.reg .pred %%p<8>;
	.reg .b16 %%rs<8>;
	.reg .b32 %%r<8>;
	.reg .b64 %%rd<8>;
	.reg .f32 %%f<8>;
	.reg .f64 %%fd<8>;
	ld.param.u64 	%%rd6, [k%[1]d_param_0];
	cvta.to.global.u64 	%%rd7, %%rd6;
	%[2]s
	st.global.u64 	[%%rd7], %%rd0;
	ret;
}
`, i, strings.ReplaceAll(body, "; ", ";\n\t"))
	}
	return text
}

// Instructions do what NVIDIA's PTX ISA says; every result is worked out by hand.
func TestInstructions(t *testing.T) {
	u32 := func(v int32) uint64 { return uint64(uint32(v)) }
	single := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	const nan, one, two = "0f7FC00000", "0f3F800000", "0f40000000"
	pick := func(setp string) string { return setp + "; selp.b64 %rd0, 1, 0, %p0;" }
	cases := []struct {
		body string
		want uint64
	}{
		{"mov.u32 %r0, 5; add.s32 %r1, %r0, -7; cvt.u64.u32 %rd0, %r1;", u32(-2)},
		{"mov.u32 %r0, 5; sub.s32 %r1, 3, %r0; cvt.s64.s32 %rd0, %r1;", math.MaxUint64 - 1},
		{"mov.u32 %r0, 2147483647; add.s32 %r1, %r0, 1; cvt.s64.s32 %rd0, %r1;", 0xffffffff80000000}, // wraps around
		{"mov.u32 %r0, -3; mul.wide.s32 %rd0, %r0, 5;", math.MaxUint64 - 14},
		{"mov.u32 %r0, -3; mul.wide.u32 %rd0, %r0, 2;", 0x1fffffffa},
		{"mov.u32 %r0, 65537; mul.lo.s32 %r1, %r0, %r0; cvt.u64.u32 %rd0, %r1;", 0x20001}, // of 0x100020001
		{"mov.u32 %r0, -3; mul.hi.s32 %r1, %r0, 2; cvt.u64.u32 %rd0, %r1;", 0xffffffff},
		{"mov.u32 %r0, -3; mad.lo.s32 %r1, %r0, 4, 2; cvt.s64.s32 %rd0, %r1;", math.MaxUint64 - 9},
		{"mov.u32 %r0, -7; div.s32 %r1, %r0, 2; cvt.s64.s32 %rd0, %r1;", math.MaxUint64 - 2}, // towards 0: -3
		{"mov.u32 %r0, -7; rem.s32 %r1, %r0, 2; cvt.s64.s32 %rd0, %r1;", math.MaxUint64},     // sign of what is divided
		{"mov.u32 %r0, -7; min.s32 %r1, %r0, 2; cvt.u64.u32 %rd0, %r1;", u32(-7)},
		{"mov.u32 %r0, 1; shl.b32 %r1, %r0, 31; cvt.u64.u32 %rd0, %r1;", 1 << 31},
		{"mov.u32 %r0, 1; mov.u32 %r2, 32; shl.b32 %r1, %r0, %r2; cvt.u64.u32 %rd0, %r1;", 0}, // more than there are bits
		{"mov.u32 %r0, -8; mov.u32 %r2, 40; shr.s32 %r1, %r0, %r2; cvt.u64.u32 %rd0, %r1;", 0xffffffff},
		{"mov.u32 %r0, -8; shr.s32 %r1, %r0, 1; cvt.u64.u32 %rd0, %r1;", u32(-4)},
		{"mov.u32 %r0, -8; shr.u32 %r1, %r0, 1; cvt.u64.u32 %rd0, %r1;", 0x7ffffffc},
		{"mov.u32 %r0, 2271560481; bfe.u32 %r1, %r0, 4, 8; cvt.u64.u32 %rd0, %r1;", 0x32}, // of 0x87654321
		{"mov.u32 %r0, 255; cvt.s32.s8 %r1, %r0; cvt.u64.u32 %rd0, %r1;", 0xffffffff},
		{"mov.u32 %r0, 65535; cvt.u16.u32 %rs0, %r0; add.s16 %rs1, %rs0, 2; cvt.u64.u16 %rd0, %rs1;", 1},
		{"mov.u32 %r0, 300; cvt.u16.u32 %rs0, %r0; mul.lo.s16 %rs1, %rs0, 300; cvt.u64.u16 %rd0, %rs1;", 24464}, // 90000 − 65536
		{"mov.u32 %r0, 12; and.b32 %r1, %r0, 10; or.b32 %r1, %r1, 1; cvt.u64.u32 %rd0, %r1;", 9},
		{"mov.b64 %rd1, -1; xor.b64 %rd0, %rd1, 1;", math.MaxUint64 - 1},
		{"mov.u32 %r0, 3; not.b32 %r1, %r0; cvt.u64.u32 %rd0, %r1;", 0xfffffffc},
		{"mov.u32 %r0, 3; neg.s32 %r1, %r0; cvt.s64.s32 %rd0, %r1;", math.MaxUint64 - 2},

		{"mov.f32 %f0, " + one + "; add.rn.f32 %f1, %f0, 0f33800000; mov.b32 %r0, %f1; cvt.u64.u32 %rd0, %r0;", single(1)}, // half an ulp, to even
		{"mov.f32 %f0, 0f3F800001; add.rn.f32 %f1, %f0, 0f33800000; mov.b32 %r0, %f1; cvt.u64.u32 %rd0, %r0;", 0x3f800002},
		{"mov.f32 %f0, " + one + "; div.rn.f32 %f1, %f0, 0f40400000; mov.b32 %r0, %f1; cvt.u64.u32 %rd0, %r0;", 0x3eaaaaab}, // 1/3
		{"mov.f32 %f0, " + two + "; sqrt.rn.f32 %f1, %f0; mov.b32 %r0, %f1; cvt.u64.u32 %rd0, %r0;", 0x3fb504f3},
		{"mov.f64 %fd0, 0d4000000000000000; sqrt.rn.f64 %fd1, %fd0; mov.b64 %rd0, %fd1;", 0x3ff6a09e667f3bcd},
		{"mov.f64 %fd0, 0d4008000000000000; rcp.rn.f64 %fd1, %fd0; mov.b64 %rd0, %fd1;", 0x3fd5555555555555},
		{"mov.u32 %r0, 1073741824; mov.b32 %f0, %r0; cvt.f64.f32 %fd0, %f0; mov.b64 %rd0, %fd0;", math.Float64bits(2)},
		{"mov.f64 %fd0, 0d3FF0000010000000; cvt.rn.f32.f64 %f0, %fd0; mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;", single(1)}, // half way, to even
		{"mov.f64 %fd0, 0dC00BD70A3D70A3D7; cvt.rzi.s32.f64 %r0, %fd0; cvt.s64.s32 %rd0, %r0;", math.MaxUint64 - 2},         // −3.48 to −3
		{"mov.u32 %r0, -3; cvt.rn.f64.s32 %fd0, %r0; mov.b64 %rd0, %fd0;", math.Float64bits(-3)},
		{"mov.u32 %r0, -3; cvt.rn.f64.u32 %fd0, %r0; mov.b64 %rd0, %fd0;", math.Float64bits(4294967293)},

		{pick("mov.u32 %r0, -1; setp.lt.s32 %p0, %r0, 1"), 1},
		{pick("mov.u32 %r0, -1; setp.lt.u32 %p0, %r0, 1"), 0},
		{pick("mov.f32 %f0, " + nan + "; setp.le.f32 %p0, %f0, " + one), 0},
		{pick("mov.f32 %f0, " + nan + "; setp.gtu.f32 %p0, %f0, " + one), 1},
		{pick("mov.f32 %f0, " + nan + "; setp.neu.f32 %p0, %f0, %f0"), 1},
		{pick("mov.f32 %f0, " + nan + "; setp.nan.f32 %p0, %f0, " + one), 1},
		{pick("mov.f32 %f0, " + two + "; setp.num.f32 %p0, %f0, " + one), 1},
		{pick("mov.pred %p1, -1; mov.pred %p2, 0; not.pred %p3, %p2; xor.pred %p0, %p1, %p3"), 0},
		{pick("mov.pred %p1, -1; and.pred %p0, %p1, %p1"), 1},

		{"mov.b64 %rd0, 1; mov.pred %p0, 0; @%p0 bra $L; mov.b64 %rd0, 2; $L:", 2},
		{"mov.b64 %rd0, 1; mov.pred %p0, 0; @!%p0 bra L; mov.b64 %rd0, 2; L:", 1},
		{"mov.u32 %r0, %ntid.x; cvt.u64.u32 %rd0, %r0;", 256},
		{"mov.f32 %f0, " + two + "; st.global.v4.f32 [%rd7+16], {%f0, %f0, %f0, %f0}; ld.global.u64 %rd0, [%rd7+24];", 0x4000000040000000},
		{"mov.u32 %r0, -2; cvt.u16.u32 %rs0, %r0; st.global.u16 [%rd7+8], %rs0; ld.global.u8 %rs1, [%rd7+9]; cvt.u64.u16 %rd0, %rs1;", 255},
		{"st.global.u64 [%rd7+8], %rd6; add.s64 %rd1, %rd7, 16; ld.global.u64 %rd2, [%rd1+-8]; sub.s64 %rd0, %rd2, %rd6;", 0},
	}
	var bodies []string
	for _, c := range cases {
		bodies = append(bodies, c.body)
	}
	text := program(bodies)
	path, err := gputest.BuildKernels(t.TempDir(), "libcuda-double.so", fstest.MapFS{"kernels.ptx": &fstest.MapFile{Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	driver, err := cuda.Open(func(string) string { return path })
	if err != nil {
		t.Fatal(err)
	}
	device, err := driver.Bind(0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Release()
	stream, err := device.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	module, err := device.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	to, err := device.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		function, err := module.Function(fmt.Sprintf("k%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := device.Launch(function, 1, stream, unsafe.Pointer(&to)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 8)
		if err := device.Download(got, to, stream); err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint64(got); v != c.want {
			t.Errorf("%s: %#x, want %#x", c.body, v, c.want)
		}
	}
}

// Any text is either refused or translated, and a translation has a function for each
// entry.
func FuzzTranslate(f *testing.F) {
	f.Add(program([]string{"mov.b64 %rd0, 1;"}))
	f.Add(program([]string{"mov.u32 %r0, -8; shr.s32 %r1, %r0, 1; cvt.u64.u32 %rd0, %r1;", "st.global.v4.f32 [%rd7+16], {%f0, %f0, %f0, %f0};"}))
	f.Add(program([]string{"@!%p0 bra $L; setp.nan.f32 %p0, %f0, 0f7FC00000; selp.b64 %rd0, 1, 0, %p0; $L:"}))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := gputest.Translate([]byte(text))
		if err != nil {
			return
		}
		entries := 0
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "//")
			if strings.HasPrefix(strings.TrimSpace(line), ".visible .entry ") {
				entries++
			}
		}
		if n := strings.Count(string(c), "{ double_kernel("); n != entries {
			t.Errorf("%d functions of %d entries:\n%s", n, entries, text)
		}
	})
}

// Unknown instructions are refused with their line.
func TestUntranslatable(t *testing.T) {
	for _, body := range []string{
		"bar.sync 0;",
		"ld.shared.f32 %f0, [%rd0];",
		"atom.global.add.f32 %f0, [%rd7], %f1;",
		"add.f32 %f0, %f1, %f2;", // may be fused with a product
		"fma.rn.f32 %f0, %f1, %f2, %f3;",
		"div.approx.f32 %f0, %f1, %f2;",
		"add.rz.f32 %f0, %f1, %f2;",
		"sqrt.approx.f32 %f0, %f1;",
		"add.s32 %r0, %f1, %r2;",
		"add.rn.f32 %f0, %r1, %f2;",
		"mul.wide.s32 %rd0, %r1;",
		"setp.lo.u32 %p0, %r0, %r1;",
		"cvt.rzi.u32.f32 %r0, %f0;",
		"cvt.sat.u8.u32 %rs0, %r0;",
		"ld.global.v8.f32 {%f0}, [%rd0];",
		"mov.b64 {%r0, %r1}, %rd0;",
		"call.uni f;",
		"mov.b32 %f0, 1065353216;", // bits of a number, without a register between
		"mov.u32 %f0, %r0;",
		"selp.b32 %r0, 1, 0, %r1;",
		"add.s32 %r0, %r1, ;",
		"st.global.u32 [%rd7], %r0, %r1;",
		"add.s32 %r0, %r1",
	} {
		if c, err := gputest.Translate([]byte(program([]string{body}))); err == nil || !strings.Contains(err.Error(), "PTX, line 17: ") {
			t.Errorf("%s: %v\n%s", body, err, c)
		}
	}
	whole := program([]string{"mov.b64 %rd0, 1;"})
	for _, text := range []string{
		whole[:strings.LastIndex(whole, "}")],
		strings.Replace(whole, ".b8 k0_param_0[8]", ".u64 k0_param_0", 1),
		strings.Replace(whole, ".visible .entry", ".visible .func", 1),
		".shared .align 4 .b8 memory[64];\n" + whole,
	} {
		if _, err := gputest.Translate([]byte(text)); err == nil {
			t.Errorf("translated:\n%s", text)
		}
	}
}
