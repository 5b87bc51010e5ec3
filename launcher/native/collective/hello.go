package collective

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"unsafe"
)

// protocolVersion changes whenever what ranks send each other changes.
const protocolVersion = 3

// magic begins every hello and every answer.
var magic = [8]byte{'s', 'c', 'a', 'l', 'e', 'b', 'n', '\n'}

// The purposes of a connection, which both ends prove to each other.
const (
	purposeRendezvous = "rendezvous"
	purposeRing       = "ring"
	purposeMemory     = "memory" // a Unix socket that passes the shared memory's file descriptor
)

// hello is the first thing a caller says once both sides have proven that they
// are of this run. Its size is fixed:
//
//	 0  8  magic
//	 8  2  version of the protocol, big-endian
//	10  1  requested transport: 0 any, 1 tcp, 2 shm
//	11  1  zero
//	12  4  0x01020304 as it lies in the caller's memory
//	16  4  rank, big-endian
//	20  4  world size, big-endian
//	24 18  where the caller's own end of the ring listens: IPv6 or mapped IPv4, port
//	42 16  name of the Unix socket where the caller can be asked for shared memory
//	58 32  SHA-256 of what is known of the caller's host; zero: it shares nothing
//	90 96  the caller's build in words, cut or filled with zeros
type hello struct {
	transport  Transport
	rank, size int
	ring       netip.AddrPort
	socket     socketName
	host       [sha256.Size]byte
	build      string
}

const (
	helloBytes   = 186
	buildBytes   = 96
	addressBytes = 18
	byteOrder    = 0x01020304
)

// transports are in the order of their codes in a hello.
var transports = []Transport{"", TCP, SharedMemory}

// nativeOrder returns byteOrder as it lies in this machine's memory.
func nativeOrder() (b [4]byte) {
	*(*uint32)(unsafe.Pointer(&b)) = byteOrder
	return b
}

func (h hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = append(b, magic[:]...)
	b = binary.BigEndian.AppendUint16(b, protocolVersion)
	b = append(b, byte(max(0, slices.Index(transports, h.transport))), 0)
	order := nativeOrder()
	b = append(b, order[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(h.rank))
	b = binary.BigEndian.AppendUint32(b, uint32(h.size))
	b = append(b, encodeAddress(h.ring)...)
	b = append(b, h.socket[:]...)
	b = append(b, h.host[:]...)
	b = append(b, h.build[:min(len(h.build), buildBytes)]...)
	return append(b, make([]byte, helloBytes-len(b))...)
}

// receiveHello reads a caller's hello. An error means that the connection has broken.
func receiveHello(r io.Reader) (b [helloBytes]byte, err error) {
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return b, fmt.Errorf("sent no complete hello: %w", err)
	}
	return b, nil
}

// readHello parses and checks a caller's hello. The caller has proven that it belongs to this run,
// so an error means that the run is set up wrongly.
func readHello(b [helloBytes]byte, self hello) (h hello, err error) {
	if !bytes.Equal(b[:8], magic[:]) {
		return h, errors.New("sent something other than a hello; all ranks must run the same build")
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != protocolVersion {
		return h, fmt.Errorf("speaks version %d of the protocol, not %d: all ranks must run the same build", v, protocolVersion)
	}
	h.rank = int(binary.BigEndian.Uint32(b[16:]))
	h.size = int(binary.BigEndian.Uint32(b[20:]))
	h.build = string(bytes.TrimRight(b[90:], "\x00"))
	order := nativeOrder()
	switch {
	case h.build != self.build[:min(len(self.build), buildBytes)]:
		return h, fmt.Errorf("rank %d is build %q of the program, rank %d %q; all ranks must run the same", h.rank, h.build, self.rank, self.build)
	case !bytes.Equal(b[12:16], order[:]):
		return h, errors.New("its processor has another byte order; all ranks must have the same")
	case h.size != self.size:
		return h, fmt.Errorf("rank %d was started for a world of %d ranks, rank %d for %d", h.rank, h.size, self.rank, self.size)
	case h.rank >= h.size:
		return h, fmt.Errorf("rank %d is outside a world of %d", h.rank, h.size)
	}
	if int(b[10]) >= len(transports) || transports[b[10]] != self.transport {
		return h, fmt.Errorf("rank %d and rank %d were started with different transports; all ranks must use the same", h.rank, self.rank)
	}
	h.transport = self.transport
	copy(h.socket[:], b[42:])
	copy(h.host[:], b[58:])
	if h.ring, err = decodeAddress(b[24:42]); err != nil {
		return h, err
	}
	return h, nil
}

func encodeAddress(a netip.AddrPort) []byte {
	ip := netip.IPv6Unspecified()
	if a.IsValid() {
		ip = a.Addr()
	}
	b := ip.As16()
	return binary.BigEndian.AppendUint16(b[:], a.Port())
}

func decodeAddress(b []byte) (netip.AddrPort, error) {
	if len(b) != addressBytes {
		return netip.AddrPort{}, fmt.Errorf("an address of %d bytes, want %d", len(b), addressBytes)
	}
	ip := netip.AddrFrom16([16]byte(b)).Unmap()
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[16:])), nil
}

// An answer to a hello: magic, status, the payload's length (2 bytes, big-endian), payload. The
// payload is empty or an error text.
const (
	answerAccepted uint8 = iota + 1
	answerRefused
)

const maxAnswer = 1024

func encodeAnswer(status uint8, payload []byte) []byte {
	payload = payload[:min(len(payload), maxAnswer)]
	b := append(magic[:], status)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, payload...)
}

func decodeAnswer(r io.Reader) (status uint8, payload []byte, err error) {
	var b [11]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint16(b[9:])
	status = b[8]
	if !bytes.Equal(b[:8], magic[:]) || length > maxAnswer || (status != answerAccepted && status != answerRefused) {
		return 0, nil, errors.New("the process listening there is not a rank of a scalebench run")
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	return status, payload, nil
}
