package world

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// InterfaceAddress returns the first IP address of a network interface, IPv4 before IPv6. The error lists the
// interfaces of this host.
func InterfaceAddress(name string) (net.IP, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("no network interface %q on this host; it has: %s", name, strings.Join(interfaceNames(), ", "))
	}
	if ip := firstAddress(*i); ip != nil {
		return ip, nil
	}
	return nil, fmt.Errorf("the network interface %q has no IP address", name)
}

// RoutableAddress returns an address of this host that other hosts can probably reach: the address of the
// named interface. If name is "", it is the address that the host's name resolves to, since the first interface may
// be a container bridge; else the first interface that is up. The loopback address is the last resort.
func RoutableAddress(name string) (net.IP, error) {
	if name != "" {
		return InterfaceAddress(name)
	}
	if ip := addressOfHostname(); ip != nil {
		return ip, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		if ip := firstAddress(i); ip != nil {
			return ip, nil
		}
	}
	return net.IPv4(127, 0, 0, 1), nil
}

// InterfaceOf returns the name of the network interface that has an IP address; "" if none has it.
func InterfaceOf(ip net.IP) string {
	all, _ := net.Interfaces() // without a list, none has it
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	return ""
}

// LinkSpeed returns the speed of a network interface in bit/s; 0 if the kernel does not know it (it returns -1 or
// an error, as for loopback and InfiniBand).
func LinkSpeed(name string) int64 {
	text, err := os.ReadFile("/sys/class/net/" + name + "/speed")
	if err != nil {
		return 0
	}
	mbit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || mbit <= 0 {
		return 0
	}
	return mbit * 1_000_000
}

// FreePort returns a TCP port that was free a moment ago. It may be taken before use, but that is unlikely: the
// port is outside the range that the kernel assigns automatically.
func FreePort(ip net.IP) (int, error) {
	for range 20 {
		l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(portOutside(ephemeral(os.DirFS("/"))))))
		if err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return 0, fmt.Errorf("no free TCP port on %s: %w", ip, err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// ephemeral returns the first and last port that the kernel assigns automatically
// (https://docs.kernel.org/networking/ip-sysctl.html, ip_local_port_range).
func ephemeral(root fs.FS) (first, last int) {
	text, _ := fs.ReadFile(root, "proc/sys/net/ipv4/ip_local_port_range") // without /proc the text is empty
	if words := strings.Fields(string(text)); len(words) == 2 {
		first, _ = strconv.Atoi(words[0])
		last, _ = strconv.Atoi(words[1])
	}
	if first < 1 || last < first || last > lastPort {
		return 32768, 60999 // the kernel's own choice
	}
	return first, last
}

const (
	// firstPort is above the ports that services usually have.
	firstPort = 10240
	lastPort  = 65535
)

// portOutside returns a random port outside first to last, or 0 (any port) if few others are left.
func portOutside(first, last int) int {
	below, above := max(first-firstPort, 0), lastPort-max(last, firstPort-1)
	if below+above < 1024 {
		return 0
	}
	n := rand.IntN(below + above)
	if n < below {
		return firstPort + n
	}
	return max(last, firstPort-1) + 1 + n - below
}

// addressOfHostname returns the address that this host's name resolves to, if a non-loopback interface of this
// host has it.
func addressOfHostname() net.IP {
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	named, err := net.LookupIP(name)
	if err != nil {
		return nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, ip := range named {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) && !ip.IsLoopback() {
				return ip
			}
		}
	}
	return nil
}

func firstAddress(i net.Interface) net.IP {
	addresses, err := i.Addrs()
	if err != nil {
		return nil
	}
	var v6 net.IP
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast():
		case n.IP.To4() != nil:
			return n.IP
		case v6 == nil:
			v6 = n.IP
		}
	}
	return v6
}

func interfaceNames() []string {
	all, err := net.Interfaces()
	if err != nil {
		return []string{"(" + err.Error() + ")"}
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}
