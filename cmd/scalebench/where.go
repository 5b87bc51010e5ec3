package main

import (
	"github.com/urfave/cli/v2"
)

func siteFlag(path *string) cli.Flag {
	return &cli.StringFlag{Name: "site", Destination: path,
		Usage: "site `FILE` with the settings of this cluster (default: study.site in the study)"}
}

func againFlag(again *bool) cli.Flag {
	return &cli.BoolFlag{Name: "again", Destination: again, DisableDefaultText: true,
		Usage: "repeat runs that used other versions of your own files; earlier results stay"}
}

// whereFlag selects runs; all commands share it. Those that read run folders, which may not
// be collected, apply it with workspace.Runs.Where; those that read the database pass it to
// store.Filter.
func whereFlag(where *string) cli.Flag {
	return &cli.StringFlag{Name: "where", Destination: where,
		Usage: "only runs that match the SQL `CONDITION`: \"batch > 64 AND workers < 16\""}
}
