package world

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The handshake (this file, dial.go, guarded.go) lets the two ends of a connection prove to each other that they
// belong to the same run: that they know its nonce, which is in the run folder with mode 0600.
//
// Neither end reveals the nonce or anything that could be reused. Each sends 32 random bytes and answers the
// other's with an HMAC-SHA256, keyed with the nonce, over its role, the purpose of the connection, both random
// values and the addresses of both ends. A recorded proof fits no other connection, a reflected one has the
// wrong role, and a relayed one has the wrong addresses. The listener proves itself first, so that a caller
// detects another program on the port before it reveals anything.
//
//	caller              listener
//	magic, version, random ──▶
//	   ◀── magic, version, random, proof
//	proof ──▶
//	   ◀── welcome
//
// Everything is bounded in size and time. The connection afterwards is neither encrypted nor signed: an
// attacker who can alter packets on the network can still read and change it. Because addresses are part of the
// proof, there must be no address translation between the ends.

// patience limits how long either end waits for the other's proof.
const patience = 5 * time.Second

// version changes whenever the messages or the signed data change.
const version = 1

// magic starts each end's first message.
var magic = [8]byte{'s', 'c', 'a', 'l', 'e', 'h', 's', '\n'}

const (
	randomBytes   = 32
	greetingBytes = len(magic) + 2 + randomBytes
	welcome       = 1
)

// Roles of the two ends, as they are signed.
const (
	callerRole   = "client"
	listenerRole = "server"
)

// Errors about the other end, worded to follow its address.
var (
	errNoRank      = errors.New("is not a rank of a scalebench run; another program may hold the port")
	errUnproven    = errors.New("does not know this run's nonce; another program may hold the port")
	errWrongNonce  = errors.New("wrong nonce: it belongs to another run, or to another attempt at this one")
	errNoNonce     = errors.New("this run's nonce is empty; the file nonce in its folder must hold one")
	errDropped     = errors.New("was dropped to make room for later callers")
	errNotWelcomed = errors.New("knows this run's nonce, but sent no welcome")
)

// A greeting is the first message of either end.
type greeting [randomBytes]byte

func newGreeting() (g greeting) {
	_, _ = rand.Read(g[:]) // never fails
	return g
}

func (g greeting) encode() []byte {
	b := append(make([]byte, 0, greetingBytes), magic[:]...)
	b = binary.BigEndian.AppendUint16(b, version)
	return append(b, g[:]...)
}

// readGreeting takes greetingBytes of r, and no more.
func readGreeting(r io.Reader) (g greeting, err error) {
	var b [greetingBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return g, err
	}
	if [8]byte(b[:]) != magic {
		return g, errNoRank
	}
	if v := binary.BigEndian.Uint16(b[len(magic):]); v != version {
		return g, fmt.Errorf("speaks version %d of the handshake, not %d: all ranks must run the same build", v, version)
	}
	copy(g[:], b[len(magic)+2:])
	return g, nil
}

// An exchange holds what both ends of a connection know about it.
type exchange struct {
	nonce, purpose   string
	caller, listener greeting
	from, to         []byte // addresses of the caller's and the listener's end
}

type proof = [sha256.Size]byte

// proof returns the proof that the end with this role must send. Each field is signed with its
// length before it, so that no two exchanges sign the same bytes.
func (x exchange) proof(role string) (p proof) {
	mac := hmac.New(sha256.New, []byte(x.nonce))
	for _, field := range [][]byte{magic[:], {0, version}, []byte(role), []byte(x.purpose), x.caller[:], x.listener[:], x.from, x.to} {
		mac.Write(binary.BigEndian.AppendUint16(nil, uint16(len(field))))
		mac.Write(field)
	}
	mac.Sum(p[:0])
	return p
}

// ends returns the addresses of a connection's two ends, as both see them. The caller's end of a
// Unix socket has no address.
func ends(caller, listener net.Addr) (from, to []byte, err error) {
	if to, err = end(listener); err != nil {
		return nil, nil, err
	}
	if _, unix := listener.(*net.UnixAddr); unix {
		return nil, to, nil
	}
	from, err = end(caller)
	return from, to, err
}

func end(a net.Addr) ([]byte, error) {
	switch a := a.(type) {
	case *net.TCPAddr:
		ip := a.AddrPort().Addr().As16() // IPv4 is mapped; the zone is the host's own affair
		return binary.BigEndian.AppendUint16(ip[:], uint16(a.Port)), nil
	case *net.UnixAddr:
		return []byte(a.Name), nil
	}
	return nil, fmt.Errorf("a handshake over %T is not known", a)
}

// call checks that the listener at the other end of conn knows the nonce, then proves that this end
// knows it. The error text follows "the process listening there"; after an error conn is unusable
// but still open.
func call(ctx context.Context, conn net.Conn, nonce, purpose string) error {
	if nonce == "" {
		return errNoNonce
	}
	release := hold(ctx, conn)
	defer release()
	if err := sameUser(conn); err != nil {
		return err
	}
	x := exchange{nonce: nonce, purpose: purpose, caller: newGreeting()}
	var err error
	if x.from, x.to, err = ends(conn.LocalAddr(), conn.RemoteAddr()); err != nil {
		return err
	}
	if _, err := conn.Write(x.caller.encode()); err != nil {
		return worded(err)
	}
	var shown proof
	if x.listener, err = readGreeting(conn); err == nil {
		_, err = io.ReadFull(conn, shown[:])
	}
	if err != nil {
		return worded(err)
	}
	if own := x.proof(listenerRole); !hmac.Equal(shown[:], own[:]) {
		_, _ = conn.Write(make([]byte, len(shown))) // no proof follows, so the caller need not wait for one
		return errUnproven
	}
	own := x.proof(callerRole)
	if _, err := conn.Write(own[:]); err != nil {
		return worded(err)
	}
	var word [1]byte
	if _, err := io.ReadFull(conn, word[:]); err != nil {
		return worded(err)
	}
	if word[0] != welcome {
		return errNotWelcomed
	}
	return nil
}

// answer is the listener's side of a handshake. It calls admit once the caller has proven itself; if admit
// returns false, the caller is not welcomed.
func answer(ctx context.Context, conn net.Conn, nonce, purpose string, admit func() bool) error {
	if nonce == "" {
		return errNoNonce
	}
	release := hold(ctx, conn)
	defer release()
	if err := sameUser(conn); err != nil {
		return err
	}
	x := exchange{nonce: nonce, purpose: purpose, listener: newGreeting()}
	var err error
	if x.from, x.to, err = ends(conn.RemoteAddr(), conn.LocalAddr()); err != nil {
		return err
	}
	if x.caller, err = readGreeting(conn); errors.Is(err, errNoRank) {
		return errors.New("is not a rank of a scalebench run")
	} else if err != nil {
		return worded(err)
	}
	own := x.proof(listenerRole)
	if _, err := conn.Write(append(x.listener.encode(), own[:]...)); err != nil {
		return worded(err)
	}
	var shown proof
	if _, err := io.ReadFull(conn, shown[:]); err != nil {
		return worded(err)
	}
	if own := x.proof(callerRole); !hmac.Equal(shown[:], own[:]) {
		return errWrongNonce
	}
	if !admit() {
		return errDropped
	}
	_, err = conn.Write([]byte{welcome})
	return worded(err)
}

// hold sets a deadline for all reads and writes until release, from patience and ctx, no matter how slowly the
// other end sends.
func hold(ctx context.Context, conn net.Conn) (release func()) {
	end := time.Now().Add(patience)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	_ = conn.SetDeadline(end)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// worded explains a connection error as what the other end did.
func worded(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("did not prove in time that it knows this run's nonce")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("hung up before proving that it knows this run's nonce")
	case err != nil && !errors.Is(err, errNoRank):
		return fmt.Errorf("broke off: %w", err)
	}
	return err
}
