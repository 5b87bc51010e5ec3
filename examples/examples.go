// Package examples holds studies that run unchanged. "scalebench init"
// writes the first of them into a folder of the user's.
package examples

import "embed"

// First is the study that a new user starts from: study.toml and site.toml in
// the folder "first".
//
//go:embed first/study.toml first/site.toml
var First embed.FS
