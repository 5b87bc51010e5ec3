//go:build !training

package main

import "github.com/urfave/cli/v2"

// otherCommands are for workloads that train nothing. The tag training leaves them
// out, and with them two thirds of the program's size.
func otherCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "preprocess", Usage: "one rank of a preprocessing, as run starts it", Action: preprocessSamples},
		{Name: "serve", Usage: "one rank of a service, as run starts it: its load, or a replica", Action: serveReplicas},
		loadCommand(),
		nullCommand(),
		modelServerCommand(),
	}
}
