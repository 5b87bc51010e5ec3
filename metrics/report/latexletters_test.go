package report

import "testing"

func TestLatexLetters(t *testing.T) {
	if len(greek) != len(greekInLatex) || len(cyrillic) != len(cyrillicInLatin) {
		t.Fatal(len(greek), len(greekInLatex), len(cyrillic), len(cyrillicInLatin))
	}
	for text, want := range map[string]string{
		"Öl":               "Öl",
		"λ-net":            `\ensuremath{\lambda}-net`,
		"Ωμ":               `\ensuremath{\Omega}\ensuremath{\mu}`,
		"ΑΝΤ":              `\ensuremath{A}\ensuremath{N}\ensuremath{T}`,
		"ά":                `\ensuremath{\alpha}`,
		"Обучение":         "Obuchenie",
		"Щука, Юг, Ёлка":   "Shchuka, Yug, Elka",
		"Київ":             "Kiiv",
		"Łódź Çelik Škoda": "Łódź Çelik Škoda",
		"Ṽ":                "V",
		"中":                "[U+4E2D]",
		"→":                "[U+2192]",
	} {
		if got := latexText(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
