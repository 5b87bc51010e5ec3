package slurm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// An EnergyPlugin describes how a cluster measures the energy of its nodes.
type EnergyPlugin struct {
	Name  string // "acct_gather_energy/rapl"; "" if disabled
	Every string // sampling interval in Slurm's format, "30 sec"; "" if not reported
}

// Energy asks the controller for its energy plugin.
func (c *Client) Energy(ctx context.Context) (EnergyPlugin, error) {
	out, _, err := c.run(ctx, "scontrol", "show", "config")
	if err != nil {
		return EnergyPlugin{}, unanswered(err)
	}
	return parseEnergyPlugin(out), nil
}

var configLine = regexp.MustCompile(`(?m)^(AcctGatherEnergyType|AcctGatherNodeFreq)[ \t]*=[ \t]*(.*?)[ \t\r]*$`)

// parseEnergyPlugin parses `scontrol show config`.
func parseEnergyPlugin(out []byte) EnergyPlugin {
	var p EnergyPlugin
	for _, m := range configLine.FindAllSubmatch(out, -1) {
		switch value := known(string(m[2])); {
		case string(m[1]) == "AcctGatherNodeFreq":
			p.Every = value
		case value != "acct_gather_energy/none":
			p.Name = value
		}
	}
	return p
}

// A Consumption is the recorded energy of a job or one of its steps. It covers whole nodes, including what
// other jobs there used.
type Consumption struct {
	ID      string // "7", "95_3", "7.0", "7.batch"
	Name    string
	Nodes   int
	Elapsed time.Duration
	Joules  *float64 // nil if unknown
}

// mostWatts is more than a node draws. Larger values in accounting are misread counters, for example after a
// counter wrapped around to 0.
const mostWatts = 100_000

// errNoEnergy reports that this version of Slurm's accounting has no energy field.
var errNoEnergy = errors.New("this version of sacct has no field ConsumedEnergyRaw")

var energyFields = []string{"JobID", "JobName", "NNodes", "ElapsedRaw", "ConsumedEnergyRaw"}

// Consumed asks the accounting database for the energy of jobs and their steps. It uses a separate call because
// versions without one of these fields refuse the whole query. With an *UnreadableError it also returns the
// lines that could be parsed.
func (c *Client) Consumed(ctx context.Context, jobs []string) ([]Consumption, error) {
	f := Filter{IDs: jobs}
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	var list []Consumption
	var bad []Unreadable
	for _, options := range f.options() {
		out, _, err := c.run(ctx, "sacct", append([]string{"--noheader", "--parsable2", "--delimiter=" + separator,
			"--format=" + strings.Join(energyFields, ",")}, options...)...)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused) && strings.Contains(refused.Message, "accounting storage is disabled"):
			return nil, ErrNoAccounting
		case errors.As(err, &refused) && strings.Contains(refused.Message, "nvalid field"):
			return nil, errNoEnergy
		case err != nil:
			return nil, unanswered(err)
		}
		part, err := parseConsumed(out)
		list = append(list, part...)
		if odd, ok := errors.AsType[*UnreadableError](err); ok {
			bad = append(bad, odd.Lines...)
		}
	}
	return list, unreadable(bad)
}

// parseConsumed parses sacct's answer to Client.Consumed. Lines that cannot be parsed are left out and reported
// in an *UnreadableError.
func parseConsumed(out []byte) ([]Consumption, error) {
	lines, bad := records("sacct", out, len(energyFields))
	var list []Consumption
	for _, f := range lines {
		c := Consumption{ID: f[0], Name: f[1]}
		nodes, err1 := strconv.ParseUint(f[2], 10, 31)
		seconds, err2 := strconv.ParseUint(f[3], 10, 31)
		joules, err3 := parseJoules(f[4])
		if err := errors.Join(err1, err2, err3); err != nil {
			bad = append(bad, Unreadable{strings.Join(f, separator), fmt.Errorf("sacct, job %.40q: %w", f[0], err)})
			continue
		}
		c.Nodes, c.Elapsed = int(nodes), time.Duration(seconds)*time.Second
		// Allow one more second: times are rounded to whole seconds.
		if joules > 0 && joules <= mostWatts*float64(nodes)*float64(seconds+1) {
			c.Joules = &joules
		}
		list = append(list, c)
	}
	return list, unreadable(bad)
}

// parseJoules parses an energy. An empty field, 0, and Slurm's 2^64-2 mean that no sensor was read; parseJoules
// returns 0 for them.
func parseJoules(field string) (float64, error) {
	if field == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(field, 64)
	if err != nil || math.IsNaN(v) || v < 0 {
		return 0, fmt.Errorf("energy %.40q is not a number of joules", field)
	}
	if v >= 1<<63 {
		return 0, nil
	}
	return v, nil
}
