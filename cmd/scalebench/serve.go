package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/live"
	"github.com/scalebench/scalebench/launcher/workspace/query"
)

type serveOptions struct {
	live.Options
	listen, once string
	hosts        []string
}

func serveCommand(s *session) *cli.Command {
	var o serveOptions
	return &cli.Command{
		Name:      "serve",
		Usage:     "show studies on a web page that changes as they run",
		ArgsUsage: "[STUDY...]",
		Description: "The page is read-only: states of the runs, the answer so far, figures, what is\n" +
			"undecided, logs. Without STUDY it shows all studies. The printed address contains a\n" +
			"token; whoever has the address can read the page. Ctrl-C ends the server.\n\n" +
			"--once writes the pages as files, without logs, for centres that allow no server.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`: HOST:PORT, or unix:PATH for a socket that only you can open", Value: "127.0.0.1:0", DefaultText: "127.0.0.1 and a free port", Destination: &o.listen},
			&cli.StringSliceFlag{Name: "host", Usage: "also accept requests for host `NAME`, such as that of a proxy"},
			&cli.StringFlag{Name: "once", Usage: "write the pages into folder `DIR` and end", Destination: &o.once},
			intervalFlag(&o.Interval),
			siteFlag(&o.Site),
		},
		Action: func(c *cli.Context) error {
			if err := checkInterval(o.Interval); err != nil {
				return err
			}
			if o.once != "" && (c.IsSet("listen") || c.IsSet("host")) {
				return usagef("--once writes files and listens nowhere; leave --listen and --host out")
			}
			o.Studies, o.hosts = c.Args().Slice(), c.StringSlice("host")
			return runServe(c.Context, s, o)
		},
	}
}

func runServe(ctx context.Context, s *session, o serveOptions) error {
	spareMemory()
	o.Workspace, o.Ask = s.workspace(), questionOf
	site := live.New(o.Options)
	if o.once != "" {
		path, err := site.WriteOnce(ctx, o.once, s.put)
		if err == nil {
			s.note("%s", path)
		}
		return err
	}
	if err := site.Check(ctx); err != nil {
		return err
	}
	l, err := live.Listen(o.listen)
	if err != nil {
		return err
	}
	s.deferInterrupts()
	token := launcher.Token(16)
	if err := s.printAddress(l, token); err != nil {
		l.Close()
		return err
	}
	return site.Serve(ctx, l, site.Handler(token, o.hosts))
}

// questionOf returns the question that options of `decide` ask.
func questionOf(options map[string]string) (query.Wish, error) {
	var o untilOptions
	set := flag.NewFlagSet("decide", flag.ContinueOnError)
	for _, f := range o.questionFlags("") {
		if err := f.Apply(set); err != nil {
			return query.Wish{}, err
		}
	}
	for _, name := range questionNames {
		if value, ok := options[name]; ok {
			if err := set.Set(name, value); err != nil {
				return query.Wish{}, fmt.Errorf("looks.json: question.%s %q: %w", name, value, err)
			}
		}
	}
	w := o.wish.asked()
	if workspace.Exists(options["site"]) {
		w.Site = options["site"]
	}
	return w, nil
}

// printAddress prints the address of the page, and how to reach it from elsewhere.
func (s *session) printAddress(l net.Listener, token string) error {
	host, _ := os.Hostname()
	at := l.Addr().String()
	if l.Addr().Network() == "unix" {
		if _, err := fmt.Fprintf(s.stdout, "http://localhost/%s/\n", token); err != nil {
			return err
		}
		s.note("On your own computer: ssh -L 8080:%s %s, then open http://localhost:8080/%s/", at, host, token)
		return nil
	}
	if _, err := fmt.Fprintf(s.stdout, "http://%s/%s/\n", at, token); err != nil {
		return err
	}
	if live.Loopback(l) {
		_, port, _ := net.SplitHostPort(at)
		s.note("From your own computer: ssh -L %s:%s %s, then open the same address there.", port, at, host)
	} else {
		s.note("Requests are not encrypted: whoever can read the network's traffic can read the token and the page.")
	}
	return nil
}
