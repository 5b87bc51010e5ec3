package cluster

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/metrics/number"
)

// links judges the network interface for collectives on each node.
func (j *job) links() []Finding {
	var list []Finding
	for node := range j.clocks {
		a := j.leader(node)
		if a == nil {
			continue
		}
		f := Finding{Check: "interface", Subject: j.use.subject() + "/" + a.Host, Verdict: OK}
		ip := net.ParseIP(a.Link.Address)
		speed := "speed unknown to the kernel"
		if a.Link.BitPerSec != nil {
			speed = scaled(float64(*a.Link.BitPerSec), "bit/s")
		}
		f.Found = fmt.Sprintf("%s %s, %s", a.Link.Name, a.Link.Address, speed)
		switch {
		case a.Link.Error != "":
			f.Verdict, f.Found, f.Advice = Fail, a.Link.Error, "correct interface in the site file"
		case ip.IsLoopback() && j.script.Nodes > 1:
			f.Verdict, f.Advice = Fail, "other nodes cannot reach a loopback address: name an interface in the site file (interface = …)"
		}
		list = append(list, f)
	}
	return list
}

// farOff is the clock difference in seconds from which times of different hosts in one table mislead readers.
// No measurement combines the clocks of two hosts.
const farOff = 1.0

// clock judges each node's clock against this host's, by files, and against the first node's, by TCP.
func (j *job) clock() []Finding {
	var list []Finding
	judged := func(subject, against string, offset, roundTrip float64) {
		f := Finding{Check: "clock", Subject: subject, Verdict: OK,
			Found: fmt.Sprintf("%s against %s, ± %s", signed(offset), against, number.ShortSeconds(roundTrip/2))}
		if math.Abs(offset)-roundTrip/2 > farOff {
			f.Verdict, f.Advice = Warn, "tell the cluster's administrators; durations are not affected: each comes from one host's clock"
		}
		list = append(list, f)
	}
	for node, c := range j.clocks {
		subject := j.use.subject() + "/" + j.host(node)
		if c.rounds == 0 {
			list = append(list, Finding{"clock", subject, NotTested, "no file went there and back", ""})
			continue
		}
		judged(subject, "this host", c.best.Offset, c.best.RoundTrip)
		if a := j.leader(node); a != nil && a.Exchange != nil && a.Exchange.Error == "" {
			judged(subject, j.host(0), a.Exchange.Offset, a.Exchange.RoundTrip)
		}
	}
	return list
}

// network judges the connection between two nodes.
func (j *job) network() []Finding {
	if j.script.Nodes < 2 {
		return []Finding{{"network", j.use.subject(), NotTested, "the job has one node", ""}}
	}
	var list []Finding
	for node := 1; node < j.script.Nodes; node++ {
		f := Finding{Check: "network", Subject: fmt.Sprintf("%s/%s–%s", j.use.subject(), j.host(0), j.host(node)), Verdict: OK}
		a := j.leader(node)
		switch {
		case a == nil || a.Exchange == nil:
			f.Verdict, f.Found = NotTested, "the task did not get that far"
		case a.Exchange.Error != "":
			f.Verdict, f.Found, f.Advice = Fail, a.Exchange.Error, "correct interface in the site file; a firewall between compute nodes must let TCP through"
		default:
			f.Found = described(a.Exchange)
			// If the link's speed is known, less than a tenth of it is suspicious.
			if s := a.Link.BitPerSec; s != nil && math.Min(a.Exchange.Sent, a.Exchange.Received)*8 < float64(*s)/10 {
				f.Verdict, f.Advice = Warn, fmt.Sprintf("less than a tenth of %s's %s: is this the interface meant for collectives?", a.Link.Name, scaled(float64(*s), "bit/s"))
			}
		}
		list = append(list, f)
	}
	return list
}

func described(x *probe.Exchange) string {
	return fmt.Sprintf("%s out, %s in (one TCP stream); round trip %s, median %s", scaled(x.Sent, "B/s"), scaled(x.Received, "B/s"),
		number.ShortSeconds(x.RoundTrip), number.ShortSeconds(x.RoundTripMedian))
}

// scaled formats a quantity with three digits and a decimal prefix.
func scaled(v float64, unit string) string {
	for _, p := range []struct {
		factor float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= p.factor {
			return number.Short(v/p.factor, 3) + " " + p.prefix + unit
		}
	}
	return number.Short(v, 3) + " " + unit
}

func signed(s float64) string {
	if s < 0 {
		return "−" + number.ShortSeconds(-s)
	}
	return "+" + number.ShortSeconds(s)
}

// ranges formats CPU numbers as Linux does, "0-3,8".
func ranges(cpus []int) string {
	if len(cpus) == 0 {
		return "no known CPU"
	}
	var parts []string
	for i := 0; i < len(cpus); {
		k := i
		for k+1 < len(cpus) && cpus[k+1] == cpus[k]+1 {
			k++
		}
		part := strconv.Itoa(cpus[i])
		if k > i {
			part += "-" + strconv.Itoa(cpus[k])
		}
		parts, i = append(parts, part), k+1
	}
	return "CPUs " + strings.Join(parts, ",")
}

func common(a, b []int) []int {
	var both []int
	for _, n := range a {
		if slices.Contains(b, n) {
			both = append(both, n)
		}
	}
	return both
}

func overlap(a, b []int) bool { return len(common(a, b)) > 0 }

// brief joins the first 4 entries of a list, and says how many more there are.
func brief(list []string) string { return strings.Join(number.Few(list, 4), ", ") }
