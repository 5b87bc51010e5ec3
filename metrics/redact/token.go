package redact

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// token describes the tokens of some services: prefixes and the minimum number of characters after
// them. The minimum is lower than for real tokens, and higher than that of ordinary words with
// such a prefix.
type token struct {
	prefixes string // separated by spaces
	least    int
	chars    string // character class of the characters after the prefix; "": any
}

const alphanumeric = `A-Za-z0-9`

var tokens = []token{
	// GitHub, GitLab, Hugging Face, package registries, container registries
	{prefixes: "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", least: 10},
	{prefixes: "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glffct- glimt- glagent- gloas-", least: 16},
	{prefixes: "hf_ npm_", least: 16, chars: alphanumeric}, {prefixes: "pypi- rubygems_ dckr_pat_ dckr_oat_ r8_", least: 10}, {prefixes: "api_org_", least: 20}, {prefixes: "oy2", least: 40},
	// model APIs
	{prefixes: "sk- gsk_ nvapi- pplx- csk- xai- tvly-", least: 16}, {prefixes: "wandb_v1_ esecret_", least: 10}, {prefixes: "fw_", least: 20}, {prefixes: "ABSK", least: 100}, {prefixes: "bedrock-api-key-", least: 20},
	// cloud providers and services
	{prefixes: "AIza ya29. GOCSPX- dop_v1_ doo_v1_ dor_v1_", least: 10}, {prefixes: "LTAI", least: 18}, {prefixes: "fo1_ fm1a_ fm1r_ fm2_", least: 40}, {prefixes: "HRKU-", least: 20}, {prefixes: "nfp_ sbp_", least: 30},
	{prefixes: "pscale_tkn_ pscale_oauth_ pscale_pw_", least: 16}, {prefixes: "tskey- tk-us-", least: 16}, {prefixes: "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", least: 20},
	{prefixes: "hvs. hvb. hvr.", least: 10}, {prefixes: "pnu_", least: 30}, {prefixes: "sha256~", least: 40}, {prefixes: "AGE-SECRET-KEY-", least: 10}, {prefixes: "ops_eyJ", least: 20},
	// monitoring, tickets, documents
	{prefixes: "glsa_ glc_", least: 20}, {prefixes: "ATATT ATCTT ATBB", least: 20}, {prefixes: "sntrys_ sntryu_", least: 20}, {prefixes: "NRAK- NRII-", least: 20}, {prefixes: "dt0c01. dt0s01.", least: 20}, {prefixes: "lin_api_ lin_oauth_", least: 10},
	{prefixes: "ntn_", least: 30}, {prefixes: "figd_", least: 20}, {prefixes: "PMAK-", least: 20}, {prefixes: "rdme_", least: 40}, {prefixes: "sgp_", least: 30}, {prefixes: "AKCp cmVmd", least: 50}, {prefixes: "squ_ sqp_ sqa_", least: 30},
	// messages, payment, shops
	{prefixes: "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xapp-", least: 10}, {prefixes: "SG.", least: 16}, {prefixes: "xkeysib- xsmtpsib-", least: 20},
	{prefixes: "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", least: 10}, {prefixes: "shpat_ shpca_ shppa_ shpss_", least: 10}, {prefixes: "sq0atp- sq0csp-", least: 20}, {prefixes: "EZAK EZTK", least: 50}, {prefixes: "FLWSECK", least: 12},
	{prefixes: "pat-", least: 24}, // HubSpot's
}

// tokenShape returns a shape that matches the tokens of all services.
func tokenShape() shape {
	s := shape{is: func(_, secret string) bool { return mixed(secret) }}
	var ways []string
	for _, t := range tokens {
		for prefix := range strings.FieldsSeq(t.prefixes) {
			ways = append(ways, fmt.Sprintf(`%s[%s]{%d,}=*`, regexp.QuoteMeta(prefix), cmp.Or(t.chars, alphanumeric+`_.~+/-`), t.least))
			s.marks = append(s.marks, strings.ToLower(prefix))
		}
	}
	s.pattern = regexp.MustCompile(`()\b(` + strings.Join(ways, "|") + `)`)
	return s
}
