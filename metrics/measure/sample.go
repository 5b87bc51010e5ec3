package measure

import "slices"

// What a sample is, as a study or an import may state; by default rates are in
// samples/s.
const (
	Sequence = "sequence" // of tokens, in language models
	Token    = "token"
	Image    = "image"
)

// Samples returns the valid words for what a sample is.
func Samples() []string { return []string{Sequence, Token, Image} }

const samplesPerSecond = "samples/s"

// RateUnit returns the unit of sample rates: "images/s" if a sample is an image.
func RateUnit(sample string) string {
	if slices.Contains(Samples(), sample) {
		return sample + "s/s"
	}
	return samplesPerSecond
}

// Counting returns the measure with the unit for this kind of sample.
func (m Measure) Counting(sample string) Measure {
	if m.Unit == samplesPerSecond {
		m.Unit = RateUnit(sample)
	}
	return m
}

// RatesSamples reports whether the measure is a rate of samples of any kind.
func (m Measure) RatesSamples() bool {
	if m.Unit == samplesPerSecond {
		return true
	}
	declared, err := Find(m.Name)
	return err == nil && declared.Unit == samplesPerSecond
}
