package main

import "testing"

func TestShareFlag(t *testing.T) {
	for text, want := range map[string]float64{"50%": 0.5, "0.5": 0.5, " 5 % ": 0.05, "12.5%": 0.125, "1.05": 1.05} {
		var x float64
		if err := (&shareFlag{&x}).Set(text); err != nil || x != want {
			t.Errorf("%q: %g, %v", text, x, err)
		}
	}
	for _, text := range []string{"", "half", "%", "5 per cent"} {
		if err := (&shareFlag{new(float64)}).Set(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
