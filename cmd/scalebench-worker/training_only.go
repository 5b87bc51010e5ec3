//go:build training

package main

import "github.com/urfave/cli/v2"

// otherCommands returns none: this worker only trains.
func otherCommands() []*cli.Command { return nil }
