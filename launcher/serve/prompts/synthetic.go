package prompts

import (
	"math/rand/v2"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// A synthetic maker draws the lengths of prompts. All prompts begin with the same text if they share a
// prefix; the rest never repeats.
type synthetic struct {
	spec study.PromptSpec
	seed uint64
}

func (s *synthetic) turns() float64 { return float64(max(s.spec.Turns, 1)) }

func (s *synthetic) session(n uint64, scale scale) []Turn {
	r := random(s.seed, n)
	turns := make([]Turn, max(s.spec.Turns, 1))
	for i := range turns {
		tokens := float64(s.spec.Input.Draw(r))
		shared := 0
		if i == 0 { // later turns repeat it as part of the session
			shared = scale.words(s.spec.Prefix * tokens)
			tokens -= scale.overhead
		}
		var b strings.Builder
		write(&b, random(s.seed, 1<<63), shared)
		write(&b, r, max(scale.words(tokens)-shared, 1))
		turns[i].Text = b.String()
		if s.spec.Output.Kind != "" {
			turns[i].Output = s.spec.Output.Draw(r)
		}
	}
	return turns
}

// write appends n random words.
func write(b *strings.Builder, r *rand.Rand, n int) {
	for range n {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
}

// text returns n random words.
func text(r *rand.Rand, n int) string {
	var b strings.Builder
	write(&b, r, n)
	return b.String()
}
