package probe

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// Exchange is what one TCP connection from this node to node 0 measured. Sent
// and Received are of one stream each, with the operating system's own buffer
// sizes; a training with several streams may get more.
type Exchange struct {
	RoundTrip       float64 `json:"round_trip"`        // seconds, the shortest of Trips
	RoundTripMedian float64 `json:"round_trip_median"` // seconds
	Trips           int     `json:"trips"`
	// Offset is this node's clock less node 0's, in seconds, by the midpoint
	// rule at the shortest round trip; the truth lies within RoundTrip/2.
	Offset   float64 `json:"offset"`
	Sent     float64 `json:"sent"`     // bytes/s from this node to node 0
	Received float64 `json:"received"` // bytes/s from node 0 to this one
	Error    string  `json:"error,omitempty"`
}

// What an exchange costs at most: two streams of streamBytes or streamTime,
// whatever is first, and trips messages of a few bytes.
const (
	trips       = 200
	streamBytes = 128 << 20
	streamTime  = 2 * time.Second
	chunk       = 256 << 10

	connectWait = 60 * time.Second // for the other node, which may have begun later
	tokenWait   = 5 * time.Second  // for whoever connects to show the token
	streamWait  = 30 * time.Second // for all of the exchange
)

// Requests of the client, a byte each.
const (
	wantTime  = 't' // answered by two clocks of 8 bytes: when it came and when the answer left
	willSend  = 's' // followed by chunks; answered by a byte
	wantBytes = 'r' // answered by chunks
	goodbye   = 'q'
)

type listening struct {
	Address string `json:"address"`
}

// serve takes one connection each of the other nodes.
func serve(ctx context.Context, dir rundir.Probe, token string, at Link, clients int) error {
	if at.Error != "" {
		return errors.Join(errors.New(at.Error), writeJSON(dir.Listen(), listening{})) // so that nobody waits
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at.Address, "0"))
	if err != nil {
		return errors.Join(err, writeJSON(dir.Listen(), listening{}))
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if err := writeJSON(dir.Listen(), listening{l.Addr().String()}); err != nil {
		return err
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(FileWait + connectWait)); err != nil {
		return err
	}
	for served := 0; served < clients; {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("waiting for the other node: %w", err)
		}
		ok, err := answer(c, token)
		c.Close()
		if ok {
			served++
		}
		if ok && err != nil {
			return err
		}
	}
	return nil
}

// answer serves one connection. ok is false for one that is not of this job.
func answer(c net.Conn, token string) (ok bool, err error) {
	if err := c.SetDeadline(time.Now().Add(tokenWait)); err != nil {
		return false, err
	}
	shown := make([]byte, len(token))
	if _, err := io.ReadFull(c, shown); err != nil || subtle.ConstantTimeCompare(shown, []byte(token)) != 1 {
		return false, err
	}
	if err := c.SetDeadline(time.Now().Add(streamWait)); err != nil {
		return true, err
	}
	r := bufio.NewReaderSize(c, chunk)
	for {
		request, err := r.ReadByte()
		came := time.Now()
		if err != nil {
			return true, err
		}
		switch request {
		case wantTime:
			var clocks [16]byte
			binary.BigEndian.PutUint64(clocks[:8], uint64(came.UnixNano()))
			binary.BigEndian.PutUint64(clocks[8:], uint64(time.Now().UnixNano()))
			_, err = c.Write(clocks[:])
		case willSend:
			if _, err = receive(r); err == nil {
				_, err = c.Write([]byte{willSend})
			}
		case wantBytes:
			_, err = send(c)
		case goodbye:
			return true, nil
		default:
			err = fmt.Errorf("request %#x is not known; do both nodes run the same binary?", request)
		}
		if err != nil {
			return true, err
		}
	}
}

// exchange connects to node 0 and measures.
func exchange(ctx context.Context, dir rundir.Probe, token string, from Link) *Exchange {
	x := &Exchange{}
	if err := x.measure(ctx, dir, token, from); err != nil {
		x.Error = err.Error()
	}
	return x
}

func (x *Exchange) measure(ctx context.Context, dir rundir.Probe, token string, from Link) error {
	if from.Error != "" {
		return errors.New(from.Error)
	}
	text, err := AwaitFile(ctx, dir.Listen(), FileWait)
	if err != nil {
		return err
	}
	var to listening
	if err := json.Unmarshal(text, &to); err != nil {
		return fmt.Errorf("%s: %w", dir.Listen(), err)
	}
	if to.Address == "" {
		return errors.New("node 0 cannot take connections on its interface")
	}
	dialer := net.Dialer{Timeout: connectWait, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from.Address)}}
	c, err := dialer.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		host, _ := os.Hostname()
		return fmt.Errorf("%s cannot connect to %s: %w", host, to.Address, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(streamWait)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, token); err != nil {
		return err
	}
	r := bufio.NewReaderSize(c, chunk)
	if err := x.clocks(c, r); err != nil {
		return err
	}
	if err := x.streams(c, r); err != nil {
		return err
	}
	_, err = c.Write([]byte{goodbye})
	return err
}

// clocks measures round trips and the offset of this node's clock.
func (x *Exchange) clocks(c net.Conn, r *bufio.Reader) error {
	var all []float64
	for range trips {
		var clocks [16]byte
		t0 := time.Now()
		if _, err := c.Write([]byte{wantTime}); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, clocks[:]); err != nil {
			return err
		}
		t3 := time.Now()
		t1 := int64(binary.BigEndian.Uint64(clocks[:8]))
		t2 := int64(binary.BigEndian.Uint64(clocks[8:]))
		m := Midpoint(seconds(0), seconds(t1-t0.UnixNano()), seconds(t2-t0.UnixNano()), t3.Sub(t0).Seconds())
		if len(all) == 0 || m.RoundTrip < x.RoundTrip {
			x.RoundTrip, x.Offset = m.RoundTrip, -m.Offset // Midpoint's is node 0's against ours
		}
		all = append(all, m.RoundTrip)
	}
	slices.Sort(all)
	x.Trips, x.RoundTripMedian = len(all), (all[(len(all)-1)/2]+all[len(all)/2])/2
	return nil
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// streams measures the throughput of one stream each way: bytes over the time
// from the request to the receiver's word that all of it is there.
func (x *Exchange) streams(c net.Conn, r *bufio.Reader) error {
	begin := time.Now()
	if _, err := c.Write([]byte{willSend}); err != nil {
		return err
	}
	n, err := send(c)
	if err != nil {
		return err
	}
	if _, err := r.ReadByte(); err != nil {
		return err
	}
	x.Sent = float64(n) / time.Since(begin).Seconds()

	begin = time.Now()
	if _, err := c.Write([]byte{wantBytes}); err != nil {
		return err
	}
	if n, err = receive(r); err != nil {
		return err
	}
	x.Received = float64(n) / time.Since(begin).Seconds()
	return nil
}

// send writes chunks, each after a byte that says that there is one.
func send(w io.Writer) (bytes int64, err error) {
	buffer := make([]byte, 1+chunk)
	buffer[0] = 1
	for end := time.Now().Add(streamTime); bytes < streamBytes && time.Now().Before(end); bytes += chunk {
		if _, err := w.Write(buffer); err != nil {
			return bytes, err
		}
	}
	_, err = w.Write([]byte{0})
	return bytes, err
}

func receive(r *bufio.Reader) (bytes int64, err error) {
	for {
		more, err := r.ReadByte()
		if err != nil {
			return bytes, err
		}
		if more == 0 {
			return bytes, nil
		}
		if _, err := r.Discard(chunk); err != nil {
			return bytes, err
		}
		bytes += chunk
	}
}

// Clocks is what one exchange tells of two clocks.
type Clocks struct {
	Offset    float64 // the other clock less ours, in seconds; the truth lies within RoundTrip/2
	RoundTrip float64 // seconds that were not spent at the other side
}

// Midpoint compares two clocks by one exchange: sent at t0 and back at t3 by
// ours, there from t1 to t2 by the other, all in seconds. The offset is
// ½[(t1−t0)+(t2−t3)] (RFC 5905, section 8).
func Midpoint(t0, t1, t2, t3 float64) Clocks {
	return Clocks{Offset: ((t1 - t0) + (t2 - t3)) / 2, RoundTrip: math.Max(0, (t3-t0)-(t2-t1))}
}
