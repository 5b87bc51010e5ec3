//go:build slurm

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var strangerClasses = []class{
	{name: "strangers at the ports", fire: strangersCall, lane: onThisHost},
	{name: "strangers on the nodes", fire: strangersCall, lane: onCluster},
	{name: "strangers at doctor's probe", fire: strangersAtDoctor, lane: onCluster},
}

// strangersCall connects to every address on which processes of a run listen, ports and
// unix sockets, until the run ends: silently, with garbage, with 4,000 brackets, or with
// overheard data. The run must end as done or with a cause, and a stranger must receive
// only a greeting.
func strangersCall(tr *trial) error {
	tr.native, tr.workers, tr.steps = true, 3, 20
	tr.files()
	tr.file("limits", lateComers, 0o644)
	args := tr.command()
	if tr.class.lane == onCluster {
		args = append(args, "--wait", "--interval", "1s")
	}
	out, code, err := tr.amongStrangers(func() []int { return tr.processes("") }, args...)
	if err == nil && code != 0 && code != exitRunsFailed {
		tr.problem("with strangers: exit code %d: %s", code, out)
	}
	return err
}

// lateComers delays ranks, because listeners are open only until all ranks or nodes have come.
const lateComers = "sleep ${SLURM_PROCID:-$RANK}\n"

// strangersAtDoctor connects to the listeners of doctor's probe jobs, which measure the network
// between nodes.
func strangersAtDoctor(tr *trial) error {
	tr.native = true
	tr.files()
	tr.file("limits", lateComers, 0o644)
	out, code, err := tr.amongStrangers(func() []int { return tr.nodeProcesses("scalebench-worker\x00probe") },
		"doctor", "study.toml", "--site", "site.toml")
	if err == nil && code != 0 {
		tr.problem("doctor with strangers: exit code %d: %s", code, out)
	}
	return err
}

// amongStrangers runs a command while strangers connect to the processes'
// listeners.
func (tr *trial) amongStrangers(processes func() []int, args ...string) (out string, code int, err error) {
	says := tr.one("nothing", "garbage", "brackets")
	if tr.class.lane == onThisHost && tr.rng.IntN(2) == 0 { // on this machine's loopback interface
		says = "what it overheard"
	}
	abreast := 1 + tr.rng.IntN(40)
	tr.how = fmt.Sprintf("%d that say %s", abreast, says)
	ctx, end := context.WithCancel(context.Background())
	s := &strangers{says: says, called: map[string]bool{}}
	if says == "what it overheard" {
		if err := s.listen(ctx); err != nil {
			end()
			tr.how = strings.Replace(tr.how, says, "garbage", 1) // overhearing needs root
			s.says = "garbage"
		}
	}
	s.done.Go(func() {
		for ctx.Err() == nil {
			for _, at := range listeners(processes()) {
				s.seen(at)
				for range abreast {
					if s.open.Load() < 400 {
						s.done.Go(func() { s.call(ctx, at) })
					}
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	out, code = tr.run(args...)
	end()
	s.done.Wait()
	if s.calls.Load() == 0 {
		return out, code, fmt.Errorf("nothing ever listened: exit code %d: %s", code, out)
	}
	tr.how += fmt.Sprintf(" at %d addresses, %d calls, up to %d bytes heard, exit code %d", len(s.called), s.calls.Load(), s.most.Load(), code)
	tr.problems = append(tr.problems, s.letIn()...)
	return out, code, nil
}

// letIn returns a problem for each stranger that was admitted.
func (s *strangers) letIn() []string {
	if most := s.most.Load(); most > greeting {
		return []string{fmt.Sprintf("a stranger was told %d bytes, more than a greeting", most)}
	}
	return nil
}

// greeting is the largest number of bytes that a listener sends to a caller without a proof.
const greeting = 512

type strangers struct {
	says  string
	done  sync.WaitGroup
	open  atomic.Int64
	calls atomic.Int64
	most  atomic.Int64 // most bytes that one of them received

	lock   sync.Mutex
	called map[string]bool
	heard  [][]byte // first bytes that others sent on their connections
}

// address is the address on which a process listens, as seen in its node's network.
type address struct {
	network, at string
	process     int
}

func (s *strangers) seen(a address) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.called[a.network+" "+a.at] = true
}

// call connects once and stays until it is disconnected.
func (s *strangers) call(ctx context.Context, a address) {
	s.open.Add(1)
	defer s.open.Add(-1)
	conn, err := a.dial(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s.calls.Add(1)
	switch s.says {
	case "garbage":
		_, _ = conn.Write(bytes.Repeat([]byte{0xff, 0, '{', '\n', 0x7f}, 2000))
	case "brackets":
		_, _ = conn.Write(append(bytes.Repeat([]byte{'['}, 4000), '\n'))
	case "what it overheard":
		s.lock.Lock()
		heard := s.heard
		s.lock.Unlock()
		if len(heard) > 0 {
			said := heard[int(s.calls.Load())%len(heard)]
			if strings.HasPrefix(string(said), "scaleben\n") && len(said) > 51 {
				said[51] = 2 // a hello in the name of the last rank
			}
			_, _ = conn.Write(said)
		}
	}
	told, buffer := int64(0), make([]byte, 64<<10)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := conn.Read(buffer)
		if told += int64(n); told > s.most.Load() {
			s.most.Store(told)
		}
		if err != nil {
			return
		}
	}
}

// dial connects from within the process's network namespace.
func (a address) dial(ctx context.Context) (net.Conn, error) {
	type answer struct {
		conn net.Conn
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		// The thread is not unlocked: it has left this machine's network, and must end with the
		// goroutine.
		runtime.LockOSThread()
		home, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", a.process))
		if err == nil {
			defer home.Close()
			err = unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil && os.Getuid() == 0 {
			answered <- answer{nil, err}
			return
		}
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, a.network, a.at)
		answered <- answer{conn, err}
	}()
	got := <-answered
	return got.conn, got.err
}

// listen overhears traffic on the loopback interface. Another user on the node cannot do
// that, but an attacker between the nodes can.
func (s *strangers) listen(ctx context.Context) error {
	const all = 0x0300 // ETH_P_ALL in network order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, all)
	if err != nil {
		return err
	}
	lo, err := net.InterfaceByName("lo")
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: all, Ifindex: lo.Index})
	}
	if err == nil {
		err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 100_000})
	}
	if err != nil {
		syscall.Close(fd)
		return err
	}
	s.done.Go(func() {
		defer syscall.Close(fd)
		packet := make([]byte, 1<<17)
		for ctx.Err() == nil {
			n, _, err := syscall.Recvfrom(fd, packet, 0)
			if err != nil || n < 40 || packet[0]>>4 != 4 || packet[9] != syscall.IPPROTO_TCP {
				continue
			}
			tcp := packet[4*int(packet[0]&15) : n]
			if offset := 4 * int(tcp[12]>>4); offset >= 20 && offset < len(tcp) && len(tcp)-offset <= 512 {
				s.lock.Lock()
				s.heard = append(s.heard[max(0, len(s.heard)-50):len(s.heard):len(s.heard)], bytes.Clone(tcp[offset:]))
				s.lock.Unlock()
			}
		}
	})
	return nil
}

// listeners returns the addresses on which the processes listen.
func listeners(pids []int) (list []address) {
	for _, pid := range pids {
		inodes := map[string]bool{}
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
				inodes[strings.Trim(to, "socket:[]")] = true
			}
		}
		for _, line := range procNet(pid, "tcp") {
			if len(line) > 9 && line[3] == "0A" && inodes[line[9]] {
				list = append(list, address{"tcp", tcpAddress(line[1]), pid})
			}
		}
		for _, line := range procNet(pid, "tcp6") {
			if len(line) > 9 && line[3] == "0A" && inodes[line[9]] {
				_, port, _ := strings.Cut(line[1], ":")
				list = append(list, address{"tcp", tcpAddress("00000000:" + port), pid})
			}
		}
		for _, line := range procNet(pid, "unix") {
			// Num RefCount Protocol Flags Type St Inode Path; 00010000 listens
			if len(line) == 8 && line[3] == "00010000" && inodes[line[6]] {
				list = append(list, address{map[string]string{"0001": "unix", "0005": "unixpacket"}[line[4]], line[7], pid})
			}
		}
	}
	return list
}

func procNet(pid int, name string) (lines [][]string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// tcpAddress parses an address of /proc/net/tcp, "0100007F:1F90". It replaces the address
// of all interfaces by 127.0.0.1.
func tcpAddress(hex string) string {
	host, port, _ := strings.Cut(hex, ":")
	h, _ := strconv.ParseUint(host, 16, 32)
	p, _ := strconv.ParseUint(port, 16, 16)
	ip := binary.NativeEndian.AppendUint32(nil, uint32(h))
	if h == 0 {
		ip = []byte{127, 0, 0, 1}
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(p, 10))
}
