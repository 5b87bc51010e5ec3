package measure

import "testing"

// torchtitan's line of Llama 3 8B on H100s: tps 5,856, tflops 339.16, mfu 34.29 %. That
// is 339.16e12/5856 = 5.792e10 FLOPs a token, and 339.16/0.3429 = 989.1 TFLOP/s. By
// Megatron's count a token takes 51470401536 FLOPs, 301.41 TFLOP/s, 30.48 % of 989. Of
// another's peak, an A100's 312, the same 339.16 would be 108.7 %; of GB200's 2500, 13.57 %.
func TestRestated(t *testing.T) {
	titan := MFUStatement{0.3429, 339.16e12}
	for _, tt := range []struct {
		log, ours  MFUStatement
		name, want string
	}{
		{titan, MFUStatement{0.30476, 301.41e12}, "mfu_megatron",
			"the log's own MFU of 34.29 % is 5.792e+10 FLOPs a token of a peak of 989.1 TFLOP/s; mfu_megatron of 30.48 % is 5.147e+10 FLOPs a token of a peak of 989 TFLOP/s: the counts of FLOPs differ"},
		{titan, MFUStatement{0.34292, 339.15e12}, "mfu_torchtitan",
			"the log's own MFU of 34.29 % is 5.792e+10 FLOPs a token of a peak of 989.1 TFLOP/s; mfu_torchtitan of 34.29 % is 5.791e+10 FLOPs a token of a peak of 989 TFLOP/s: the same"},
		{titan, MFUStatement{0.13566, 339.15e12}, "mfu_torchtitan",
			"the log's own MFU of 34.29 % is 5.792e+10 FLOPs a token of a peak of 989.1 TFLOP/s; mfu_torchtitan of 13.57 % is 5.791e+10 FLOPs a token of a peak of 2500 TFLOP/s: the peaks differ"},
		{MFUStatement{0.966, 0}, MFUStatement{0.3048, 301.41e12}, "mfu_megatron",
			"the log's own MFU, 96.6 %, is 3.17 times mfu_megatron, 30.48 %: its FLOPs per token or its peak must differ, but it states neither"},
		{MFUStatement{0.3, 0}, MFUStatement{0.3001, 300e12}, "mfu_palm", "the log's own MFU, 30 %, is that of mfu_palm"},
	} {
		if got := RestatedMFU(tt.log, tt.ours, tt.name, 5856); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
