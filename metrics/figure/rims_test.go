package figure

import "testing"

// A dot is a filled circle and its rim, which are one element; everything else stays as it is.
func TestJoinRims(t *testing.T) {
	const (
		fill  = `<path d="M12,20A2,2 0 1 1 8,20A2,2 0 1 1 12,20Z" style="fill:#8CC0DC" />` + "\n"
		rim   = `<path d="M12,20A2,2 0 1 1 8,20A2,2 0 1 1 12,20Z" style="fill:none;stroke:#0072B2;stroke-width:0.4" />` + "\n"
		dot   = `<circle cx="10" cy="20" r="2" style="fill:#8CC0DC;stroke:#0072B2;stroke-width:0.4" />` + "\n"
		other = `<path d="M12,21A2,2 0 1 1 8,21A2,2 0 1 1 12,21Z" style="fill:none;stroke:#0072B2;stroke-width:0.4" />` + "\n"
		line  = `<path d="M1,2L3,4" style="fill:#222222" />` + "\n"
		edge  = `<path d="M1,2L3,4" style="fill:none;stroke:#222222" />` + "\n"
	)
	for _, tt := range []struct{ body, want string }{
		{"", ""},
		{fill + rim, dot},
		{line + fill + rim + fill + rim + line + "</svg>\n", line + dot + dot + line + "</svg>\n"},
		{fill + other, fill + other},
		{fill + fill + rim, fill + dot},
		{fill + rim + rim, dot + rim},
		{line + edge, line + edge},
	} {
		if got := joinRims(tt.body); got != tt.want {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", tt.body, got, tt.want)
		}
	}
}
