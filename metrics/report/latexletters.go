package report

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// latexT1 are letters outside of Latin-1 that LaTeX's T1 encoding has.
const latexT1 = "ĂăĄąĆćČčĎďĐđĘęĚěĞğİıĹĺĽľŁłŃńŇňŊŋŐőŒœŔŕŘřŚśŞşŠšŢţŤťŮůŰűŸŹźŻżŽž"

// Greek letters are printed as in formulas; capitals that look like a Latin letter are that letter.
var (
	greek        = []rune("αβγδεζηθικλνξοπρσςτυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ")
	greekInLatex = strings.Fields(`\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \nu \xi o \pi \rho \sigma \varsigma \tau \upsilon \varphi \chi \psi \omega ` +
		`A B \Gamma \Delta E Z H \Theta I K \Lambda M N \Xi O \Pi P \Sigma T \Upsilon \Phi X \Psi \Omega`)
)

// Cyrillic letters are transliterated: their fonts are not part of every TeX distribution.
var (
	cyrillic        = []rune("абвгдежзийклмнопрстуфхцчшщъыьэюяєіґ")
	cyrillicInLatin = strings.Fields("a b v g d e zh z i j k l m n o p r s t u f kh ts ch sh shch ' y ' e yu ya ye i g")
)

// latexLetter returns a letter outside of ASCII as LaTeX; "" if it has none. A letter with an accent that LaTeX lacks
// is printed without.
func latexLetter(r rune) string {
	if r >= 'À' && r <= 'ÿ' || strings.ContainsRune(latexT1, r) {
		return string(r)
	}
	for i, letter := range greek {
		if r == letter {
			return `\ensuremath{` + greekInLatex[i] + `}`
		}
	}
	for i, letter := range cyrillic {
		latin := cyrillicInLatin[i]
		switch r {
		case letter:
			return latin
		case unicode.ToUpper(letter):
			return strings.ToUpper(latin[:1]) + latin[1:]
		}
	}
	if base := []rune(norm.NFD.String(string(r)))[0]; base != r && base > '~' {
		return latexLetter(base)
	} else if base != r && unicode.IsLetter(base) {
		return string(base)
	}
	return ""
}
