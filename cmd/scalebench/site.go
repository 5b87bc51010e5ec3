package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/examples"
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/study"
)

func siteCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:        "site",
		Usage:       "describe a cluster",
		Subcommands: []*cli.Command{siteInitCommand(s)},
	}
}

func siteInitCommand(s *session) *cli.Command {
	var out string
	return &cli.Command{
		Name:  "init",
		Usage: "write a site file from what this cluster reports",
		Description: "It reads partitions, nodes and limits from scontrol and, if sacctmgr answers, your\n" +
			"accounts. Partitions that you cannot use are commented out, with the reason. If\n" +
			"nodes of a partition differ, the file has the figures of the smallest.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Destination: &out, Usage: "write to `FILE`, which must not exist yet, or be as init wrote it (default: print)"},
		},
		Action: func(c *cli.Context) error { return runSiteInit(c, s, out) },
	}
}

func runSiteInit(c *cli.Context, s *session, out string) error {
	backend, err := launcher.Scheduler(launcher.Options{})
	if err != nil {
		return err
	}
	describer, ok := backend.(cluster.Describer)
	if !ok {
		return usagef("backend %q does not describe its cluster; write the site file by hand", backend.Name())
	}
	var text bytes.Buffer
	omitted, err := describer.Describe(c.Context, &text, cluster.Origin{Date: time.Now(), Interfaces: interfaces()})
	if err != nil {
		return err
	}
	if omitted != nil {
		s.warn("left out, because it could not be read: %v", omitted)
	}
	if _, err := study.ParseSite(out, text.Bytes()); err != nil {
		return err // a bug: the file must be valid on every cluster
	}
	if out == "" {
		_, err := s.stdout.Write(text.Bytes())
		return err
	}
	replace := os.O_EXCL
	if example, err := examples.First.ReadFile("first/site.toml"); err != nil {
		return err
	} else if old, err := os.ReadFile(out); err == nil && bytes.Equal(old, example) {
		replace = os.O_TRUNC // it is the example that init wrote
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|replace, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s already exists and is unchanged; give another name", out)
	}
	if err != nil {
		return &usageError{err: err}
	}
	_, err = f.Write(text.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.note("%s; next: scalebench doctor --site %s", out, out)
	return nil
}

// interfaces returns this host's network interfaces that are up and have an address,
// without loopback; none if they cannot be listed.
func interfaces() []cluster.Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var list []cluster.Interface
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
				list = append(list, cluster.Interface{Name: i.Name, Address: n.IP.String()})
				break
			}
		}
	}
	return list
}
