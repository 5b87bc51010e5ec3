package main

import (
	"github.com/urfave/cli/v2"
)

// whereFlag is the one way in which commands are told which runs they are about.
// Those that read run folders, which may not be collected, apply it by
// workspace.Runs.Where; those that read the database pass it to store.Filter.
func whereFlag(where *string) cli.Flag {
	return &cli.StringFlag{Name: "where", Destination: where,
		Usage: "only runs that match the SQL `CONDITION`: \"batch > 64 AND workers < 16\""}
}
