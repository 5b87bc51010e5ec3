package collective

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"unsafe"
)

// protocolVersion changes with every change of what ranks send each other.
const protocolVersion = 2

// magic begins every hello and every answer.
var magic = [8]byte{'s', 'c', 'a', 'l', 'e', 'b', 'n', '\n'}

// What a caller wants.
const (
	purposeRendezvous uint8 = iota + 1
	purposeRing
	purposeMemory // of a Unix socket: the shared memory
)

// hello is the first thing a caller says. Its size is fixed, so that an unknown
// caller cannot make the other side read more:
//
//	  0  8  magic
//	  8  2  version of the protocol, big-endian
//	 10  1  purpose
//	 11  1  transport that is asked for: 0 any, 1 tcp, 2 shm
//	 12  4  0x01020304 as it lies in the caller's memory
//	 16 32  SHA-256 of the nonce
//	 48  4  rank, big-endian
//	 52  4  world size, big-endian
//	 56 18  where the caller's own end of the ring listens: IPv6 or mapped IPv4, port
//	 74 16  name of the Unix socket where the caller can be asked for shared memory
//	 90 32  SHA-256 of what is known of the caller's host; zero: it shares nothing
//	122 96  the caller's build in words, cut or filled with zeros
type hello struct {
	purpose    uint8
	transport  Transport
	nonce      [sha256.Size]byte
	rank, size int
	ring       netip.AddrPort
	socket     socketName
	host       [sha256.Size]byte
	build      string
}

const (
	helloBytes   = 218
	buildBytes   = 96
	addressBytes = 18
	byteOrder    = 0x01020304
)

// transports are as hellos carry them.
var transports = []Transport{"", TCP, SharedMemory}

func digest(nonce string) [sha256.Size]byte { return sha256.Sum256([]byte(nonce)) }

// nativeOrder is byteOrder as it lies in this machine's memory.
func nativeOrder() (b [4]byte) {
	*(*uint32)(unsafe.Pointer(&b)) = byteOrder
	return b
}

func (h hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = append(b, magic[:]...)
	b = binary.BigEndian.AppendUint16(b, protocolVersion)
	b = append(b, h.purpose, byte(max(0, slices.Index(transports, h.transport))))
	order := nativeOrder()
	b = append(b, order[:]...)
	b = append(b, h.nonce[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(h.rank))
	b = binary.BigEndian.AppendUint32(b, uint32(h.size))
	b = append(b, encodeAddress(h.ring)...)
	b = append(b, h.socket[:]...)
	b = append(b, h.host[:]...)
	b = append(b, h.build[:min(len(h.build), buildBytes)]...)
	return append(b, make([]byte, helloBytes-len(b))...)
}

// readHello reads a caller's hello and judges it. fatal says that the caller
// showed the right nonce and still cannot take part: the run itself is set up
// wrongly.
func readHello(r io.Reader, self hello, purpose uint8) (h hello, err error, fatal bool) {
	var b [helloBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, fmt.Errorf("said no whole hello: %w", err), false
	}
	if !bytes.Equal(b[:8], magic[:]) {
		return h, errors.New("is no rank of a scalebench run"), false
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != protocolVersion {
		return h, fmt.Errorf("speaks version %d of the protocol, not %d: all ranks must run the same build", v, protocolVersion), false
	}
	copy(h.nonce[:], b[16:48])
	if subtle.ConstantTimeCompare(h.nonce[:], self.nonce[:]) != 1 {
		return h, errors.New("wrong nonce: it belongs to another run, or to another attempt at this one"), false
	}
	h.purpose = b[10]
	h.rank = int(binary.BigEndian.Uint32(b[48:]))
	h.size = int(binary.BigEndian.Uint32(b[52:]))
	h.build = string(bytes.TrimRight(b[122:], "\x00"))
	order := nativeOrder()
	switch {
	case h.build != self.build[:min(len(self.build), buildBytes)]:
		return h, fmt.Errorf("rank %d is build %q of the program, rank %d %q; all ranks must run the same", h.rank, h.build, self.rank, self.build), true
	case !bytes.Equal(b[12:16], order[:]):
		return h, errors.New("its processor has another byte order; all ranks must have the same"), true
	case h.size != self.size:
		return h, fmt.Errorf("rank %d was started for a world of %d ranks, rank %d for %d", h.rank, h.size, self.rank, self.size), true
	case h.rank >= h.size:
		return h, fmt.Errorf("rank %d is outside a world of %d", h.rank, h.size), true
	case h.purpose != purpose:
		return h, fmt.Errorf("rank %d called for purpose %d, not %d", h.rank, h.purpose, purpose), true
	}
	if int(b[11]) >= len(transports) || transports[b[11]] != self.transport {
		return h, fmt.Errorf("rank %d and rank %d were told different transports; all ranks must have the same", h.rank, self.rank), true
	}
	h.transport = self.transport
	copy(h.socket[:], b[74:])
	copy(h.host[:], b[90:])
	if h.ring, err = decodeAddress(b[56:74]); err != nil {
		return h, err, true
	}
	return h, nil, false
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

// Answers to a hello: magic, status, the payload's length (2 bytes, big-endian),
// payload. It is empty, or words.
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
		return 0, nil, errors.New("what listens there is no rank of a scalebench run")
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	return status, payload, nil
}
