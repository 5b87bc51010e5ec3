package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parseConfig parses the "Name = value" lines of `scontrol show config`. It leaves out Slurm's words for
// missing values.
func parseConfig(out []byte) map[string]string {
	settings := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), known(strings.TrimSpace(value))
		if ok && name != "" && value != "" && settings[name] == "" {
			settings[name] = value
		}
	}
	return settings
}

// A key of `scontrol show partition` and `scontrol show node`, such as "MCS_label=". A node's OS and Reason may
// contain spaces.
var describedField = regexp.MustCompile(`(?:^| )([A-Z][A-Za-z_]*)=`)

// described splits a line of KEY=VALUE into fields. The first value of a key counts: free text (Reason,
// Comment) comes last and may look like a key.
func described(line string) map[string]string {
	values := map[string]string{}
	at := describedField.FindAllStringSubmatchIndex(line, -1)
	for i, m := range at {
		end := len(line)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		key := line[m[2]:m[3]]
		if _, seen := values[key]; !seen {
			values[key] = strings.TrimSpace(line[m[1]:end])
		}
	}
	return values
}

// A describing reads the fields of one line and collects the errors.
type describing struct {
	values map[string]string
	reader
}

func (d *describing) text(key string) string { return known(d.values[key]) }

// list returns a comma-separated list; nil for ALL and for an empty value.
func (d *describing) list(key string) []string {
	switch text := d.text(key); text {
	case "", "ALL":
		return nil
	default:
		return strings.Split(text, ",")
	}
}

// limit returns a count; nil for UNLIMITED.
func (d *describing) limit(key string) *int {
	switch text := d.text(key); text {
	case "", "UNLIMITED", "INFINITE":
		return nil
	default:
		n := d.number(key, text)
		return &n
	}
}

func (d *describing) count(key string) int {
	if text := d.text(key); text != "" {
		return d.number(key, text)
	}
	return 0
}

func (d *describing) number(key, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<40 {
		d.note(fmt.Errorf("%s=%.40q is not a count", key, text))
	}
	return n
}

var spanForm = regexp.MustCompile(`^(?:(\d{1,5})-)?(\d{1,4}):(\d\d)(?::(\d\d))?$`)

// span parses a duration, "1-00:00:00" or "05:00"; nil means unlimited.
func (d *describing) span(key string) *time.Duration {
	text := d.text(key)
	switch text {
	case "", "UNLIMITED", "INFINITE", "NONE":
		return nil
	}
	m := spanForm.FindStringSubmatch(text)
	if m == nil {
		d.note(fmt.Errorf("%s=%.40q is not a length of time", key, text))
		return nil
	}
	n := make([]time.Duration, 5)
	for i, digits := range m[1:] {
		v, _ := strconv.Atoi(digits) // at most five digits, or empty
		n[i] = time.Duration(v)
	}
	t := n[0]*24*time.Hour + n[1]*time.Hour + n[2]*time.Minute + n[3]*time.Second
	if m[4] == "" { // minutes and seconds
		t = n[0]*24*time.Hour + n[1]*time.Minute + n[2]*time.Second
	}
	return &t
}

// describedLines parses each line that begins with KEY=. Lines that cannot be parsed are left out and reported
// in the error.
func describedLines[T any](out []byte, key string, read func(*describing) T) ([]T, error) {
	var (
		list     []T
		problems []error
	)
	for i, line := range strings.Split(string(out), "\n") {
		if !strings.HasPrefix(line, key+"=") {
			if strings.Contains(line, "=") {
				problems = append(problems, fmt.Errorf("scontrol, line %d: does not begin with %s=: %.200q", i+1, key, line))
			}
			continue // "No partitions in the system"
		}
		d := &describing{values: described(line)}
		if d.text(key) == "" {
			d.note(errors.New("no name"))
		}
		one := read(d)
		if len(d.problems) > 0 {
			problems = append(problems, fmt.Errorf("scontrol, line %d: %s %.40q: %w", i+1, key, d.values[key], errors.Join(d.problems...)))
			continue
		}
		list = append(list, one)
	}
	return list, errors.Join(problems...)
}

// ParsePartitions parses `scontrol show partition --oneliner`. Partitions that cannot be parsed are left out
// and reported in the error.
func ParsePartitions(out []byte) ([]Partition, error) {
	return describedLines(out, "PartitionName", func(d *describing) Partition {
		p := Partition{
			Name: d.text("PartitionName"), Default: d.text("Default") == "YES", State: d.text("State"), Nodes: d.hosts(d.values["Nodes"]),
			MaxTime: d.span("MaxTime"), MaxNodes: d.limit("MaxNodes"), MaxCPUsPerNode: d.limit("MaxCPUsPerNode"),
			MaxMemPerNodeMB: d.limit("MaxMemPerNode"), RootOnly: d.text("RootOnly") == "YES",
			AllowAccounts: d.list("AllowAccounts"), DenyAccounts: d.list("DenyAccounts"),
			AllowGroups: d.list("AllowGroups"), AllowQOS: d.list("AllowQos"),
		}
		if p.State == "" {
			d.note(errors.New("no State"))
		}
		return p
	})
}

// ParseNodes parses `scontrol show node --oneliner`. Nodes that cannot be parsed are left out and reported in
// the error.
func ParseNodes(out []byte) ([]Node, error) {
	return describedLines(out, "NodeName", func(d *describing) Node {
		n := Node{
			Name: d.text("NodeName"), State: d.text("State"), Reason: d.text("Reason"),
			CPUs: d.count("CPUTot"), Threads: max(1, d.count("ThreadsPerCore")),
			MemoryMB: d.count("RealMemory"), Features: d.list("AvailableFeatures"), Partitions: d.list("Partitions"),
		}
		// CPUs reserved for daemons are not available to jobs.
		if effective := d.count("CPUEfctv"); effective > 0 {
			n.CPUs = effective
		}
		n.MemoryMB = max(0, n.MemoryMB-d.count("MemSpecLimit"))
		var err error
		n.GPUs, err = parseGRES(d.text("Gres"))
		d.note(err)
		if n.State == "" {
			d.note(errors.New("no State"))
		}
		return n
	})
}

// gpuForm matches one generic resource: "gpu:a100:4(S:0-1)", "gpu:4", "gpu:a100".
var gpuForm = regexp.MustCompile(`^gpu(?::([^:()]*[^:()0-9][^:()]*))?(?::(?:no_consume:)?(\d{1,9}))?(?:\(.*\))?$`)

// parseGRES returns the GPUs among a node's generic resources. It adds up several entries of one type (one per
// socket).
func parseGRES(text string) ([]GPUs, error) {
	var list []GPUs
	for _, entry := range splitOutside(text) {
		if entry != "gpu" && !strings.HasPrefix(entry, "gpu:") && !strings.HasPrefix(entry, "gpu(") {
			continue
		}
		m := gpuForm.FindStringSubmatch(entry)
		if m == nil {
			return nil, fmt.Errorf("resource %.60q is not of the form gpu:TYPE:COUNT", entry)
		}
		count := 1 // as in slurm.conf, where a missing count means one
		if m[2] != "" {
			count, _ = strconv.Atoi(m[2]) // at most nine digits
		}
		merged := false
		for i := range list {
			if list[i].Type == m[1] {
				list[i].Count += count
				merged = true
			}
		}
		if !merged {
			list = append(list, GPUs{m[1], count})
		}
	}
	return list, nil
}

// splitOutside splits at the commas outside parentheses.
func splitOutside(text string) []string {
	var list []string
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			list = append(list, text[from:i])
			from = i + 1
		}
	}
	return append(list, text[from:])
}

// ParseAccounts parses sacctmgr's answers to Client.Describe: one line "ACCOUNT|PARTITION" per association, and
// the user's default account.
func ParseAccounts(associations, standard []byte) ([]Account, error) {
	favourite := strings.TrimSpace(string(standard))
	var list []Account
	seen := map[Account]bool{}
	for i, line := range strings.Split(string(associations), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, partition, ok := strings.Cut(line, "|")
		if !ok || name == "" || strings.Contains(partition, "|") {
			return nil, fmt.Errorf("sacctmgr, line %d: not of the form ACCOUNT|PARTITION: %.200q", i+1, line)
		}
		a := Account{name, partition, name == favourite}
		if !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	return list, nil
}
