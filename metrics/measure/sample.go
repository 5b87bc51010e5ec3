package measure

import "slices"

// What a study or an import may say that a sample is; where nobody says, rates are in
// samples/s.
const (
	Sequence = "sequence" // of tokens, in a language model
	Token    = "token"
	Image    = "image"
)

// Samples are the words for what a sample is.
func Samples() []string { return []string{Sequence, Token, Image} }

const samplesPerSecond = "samples/s"

// RateUnit is the unit of rates of samples: "images/s" where a sample is an image.
func RateUnit(sample string) string {
	if slices.Contains(Samples(), sample) {
		return sample + "s/s"
	}
	return samplesPerSecond
}

// Counting is the measure with the unit that it has where that is a sample.
func (m Measure) Counting(sample string) Measure {
	if m.Unit == samplesPerSecond {
		m.Unit = RateUnit(sample)
	}
	return m
}

// RatesSamples reports whether the measure is a rate of samples, whatever these are.
func (m Measure) RatesSamples() bool {
	if m.Unit == samplesPerSecond {
		return true
	}
	declared, err := Find(m.Name)
	return err == nil && declared.Unit == samplesPerSecond
}
