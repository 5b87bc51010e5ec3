//go:build !training

package main

import "github.com/urfave/cli/v2"

// otherCommands returns the commands for services. The tag training leaves them out, and with them two thirds
// of the program's size.
func otherCommands() []*cli.Command {
	return []*cli.Command{
		loadCommand(),
		nullCommand(),
		modelServerCommand(),
	}
}
