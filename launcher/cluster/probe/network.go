package probe

import (
	"bufio"
	"context"
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
	"github.com/scalebench/scalebench/launcher/world"
)

// An Exchange is a measurement of one TCP connection from this node to node 0. Sent and Received are the rates
// of one stream each, with the operating system's default buffer sizes; a training with several streams may
// reach more.
type Exchange struct {
	RoundTrip       float64 `json:"round_trip"`        // seconds, the shortest of Trips
	RoundTripMedian float64 `json:"round_trip_median"` // seconds
	Trips           int     `json:"trips"`
	// Offset is this node's clock minus node 0's, in seconds, by the midpoint rule at the shortest round trip.
	// The true value is within RoundTrip/2.
	Offset   float64 `json:"offset"`
	Sent     float64 `json:"sent"`     // bytes/s from this node to node 0
	Received float64 `json:"received"` // bytes/s from node 0 to this one
	Error    string  `json:"error,omitempty"`
}

// Limits of an exchange: two streams of streamBytes or streamTime, whichever ends first, and trips messages of
// a few bytes.
const (
	trips       = 200
	streamBytes = 128 << 20
	streamTime  = 2 * time.Second
	chunk       = 256 << 10

	connectWait = 60 * time.Second       // wait for the other node, which may have started later
	turnWait    = FileWait + connectWait // wait of a connected node for its turn
	streamWait  = 30 * time.Second       // limit for the whole exchange
)

// purpose identifies the connection in the handshake between the nodes.
const purpose = "probe"

// yourTurn is node 0's message that starts a node's measurement. The nodes take turns, so that they do not
// share node 0's link.
const yourTurn = "y"

// Requests of the client, one byte each.
const (
	wantTime  = 't' // answered by two clocks of 8 bytes: when the request arrived and when the answer left
	willSend  = 's' // followed by chunks; answered by one byte
	wantBytes = 'r' // answered by chunks
	goodbye   = 'q'
)

type listening struct {
	Address string `json:"address"`
}

// serve measures with each of the other nodes, one after the other. Other callers are rejected and delay
// nothing.
func serve(ctx context.Context, dir rundir.Probe, token string, at Link, clients int) error {
	if at.Error != "" {
		return errors.Join(errors.New(at.Error), writeJSON(dir.Listen(), listening{})) // so that no other node waits for this one
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at.Address, "0"))
	if err != nil {
		return errors.Join(err, writeJSON(dir.Listen(), listening{}))
	}
	defer l.Close()
	if err := writeJSON(dir.Listen(), listening{l.Addr().String()}); err != nil {
		return err
	}
	serving, enough := context.WithTimeout(ctx, turnWait)
	defer enough()
	door := world.NewGuardedListener(l, token, purpose)
	nodes := make(chan net.Conn)
	go door.Serve(serving, func(c net.Conn) error {
		select {
		case nodes <- c:
		case <-serving.Done():
			c.Close()
		}
		return nil
	})
	var failed []error
	for range clients {
		select {
		case c := <-nodes:
			if err := answer(c); err != nil {
				failed = append(failed, fmt.Errorf("with %s: %w", c.RemoteAddr(), err))
			}
			c.Close()
		case <-serving.Done():
			return errors.Join(append(failed, fmt.Errorf("waiting for the other nodes: %w%s", context.Cause(serving), door.Trouble()))...)
		}
	}
	return errors.Join(failed...)
}

// answer serves one node.
func answer(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(streamWait)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, yourTurn); err != nil {
		return err
	}
	r := bufio.NewReaderSize(c, chunk)
	for {
		request, err := r.ReadByte()
		came := time.Now()
		if err != nil {
			return err
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
			return nil
		default:
			err = fmt.Errorf("unknown request %#x; do both nodes run the same binary?", request)
		}
		if err != nil {
			return err
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
	calling, enough := context.WithTimeout(ctx, connectWait)
	defer enough()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from.Address)}}
	c, err := world.Dial(calling, dialer, "tcp", to.Address, token, purpose)
	if err != nil {
		host, _ := os.Hostname()
		return fmt.Errorf("%s cannot connect to %s: %w", host, to.Address, err)
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, chunk)
	if err := c.SetDeadline(time.Now().Add(turnWait)); err != nil {
		return err
	}
	if _, err := io.ReadFull(r, make([]byte, len(yourTurn))); err != nil {
		return fmt.Errorf("node 0 at %s did not start measuring: %w", to.Address, err)
	}
	if err := c.SetDeadline(time.Now().Add(streamWait)); err != nil {
		return err
	}
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
			x.RoundTrip, x.Offset = m.RoundTrip, -m.Offset // Midpoint's is node 0's clock minus ours
		}
		all = append(all, m.RoundTrip)
	}
	slices.Sort(all)
	x.Trips, x.RoundTripMedian = len(all), (all[(len(all)-1)/2]+all[len(all)/2])/2
	return nil
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// streams measures the throughput of one stream each way: bytes divided by the time from the request to the
// receiver's confirmation that all have arrived.
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

// send writes chunks, each preceded by a byte with the value 1.
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

// Clocks is the comparison of two clocks in one exchange.
type Clocks struct {
	Offset    float64 // the other clock minus ours, in seconds; the true value is within RoundTrip/2
	RoundTrip float64 // seconds spent in transit
}

// Midpoint compares two clocks by one exchange: sent at t0 and back at t3 by our clock, received at t1 and
// answered at t2 by the other, all in seconds. The offset is ½[(t1−t0)+(t2−t3)] (RFC 5905, section 8).
func Midpoint(t0, t1, t2, t3 float64) Clocks {
	return Clocks{Offset: ((t1 - t0) + (t2 - t3)) / 2, RoundTrip: math.Max(0, (t3-t0)-(t2-t1))}
}
