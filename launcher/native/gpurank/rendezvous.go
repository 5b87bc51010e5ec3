//go:build cgo

package gpurank

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
)

// This file brings the ranks of a run together in NCCL. They have a
// Group already, of connections over TCP; through it they compare what NCCL each
// of them loaded, hear from rank 0 how to meet, and from then on tell each other
// several times a second that they are well. A rank that gives up says why, one
// that dies is missed by its connection, one that is frozen by its silence; in
// each case all others abort their communicators and end with the same reason.

// interval is how often the ranks tell each other that they are well. A rank learns of another's
// end within this time.
const interval = 250 * time.Millisecond

// Comm is a communicator whose ranks look after each other.
type Comm struct {
	*nccl.Comm
	watch *watch
}

// Join makes the ranks of g one communicator of the library. o says what it
// works with; rank, size, identifier and how to abort come from the group, which
// belongs to the communicator from now on, and is closed with it. Let it be one
// over TCP: the others notice that a process is gone by its connection.
func Join(ctx context.Context, l *nccl.Library, g *collective.Group, o nccl.Options) (*Comm, error) {
	if err := sameVersion(ctx, l, g); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	o.Rank, o.Size = g.Rank(), g.Size()
	var err error
	if o.ID, err = exchangeID(ctx, l, g); err != nil {
		g.Abort(err)
		return nil, err
	}
	w := beginWatch(g)
	o.Abort, o.Aborted = w.abort, w.aborted
	c, err := l.Join(ctx, o)
	if err != nil {
		w.abort(err) // for an error outside the communicator, the others have not been told yet
		return nil, err
	}
	return &Comm{c, w}, nil
}

// Close leaves in order, when all ranks have come so far.
func (c *Comm) Close(ctx context.Context) error {
	if err := c.Comm.Close(ctx); err != nil {
		c.watch.abort(err)
		return err
	}
	return c.watch.leave()
}

// doubleMark sets the test double apart from a real NCCL of the same version.
const doubleMark = 1 << 32

// sameVersion compares what all ranks loaded. Ranks of different versions may
// hang or, worse, add up wrongly.
func sameVersion(ctx context.Context, l *nccl.Library, g *collective.Group) error {
	all := make([]int64, g.Size())
	all[g.Rank()] = int64(l.Version())
	if l.Double() {
		all[g.Rank()] |= doubleMark
	}
	if err := g.AllReduceInt64(ctx, all); err != nil {
		return fmt.Errorf("comparing the ranks' versions of NCCL: %w", err)
	}
	return compare(all)
}

// compare is given the version of each rank.
func compare(all []int64) error {
	ranks := map[int64][]int{}
	for rank, v := range all {
		ranks[v] = append(ranks[v], rank)
	}
	if len(ranks) < 2 {
		return nil
	}
	var words []string
	for _, v := range slices.SortedFunc(maps.Keys(ranks), func(a, b int64) int { return ranks[a][0] - ranks[b][0] }) {
		name := nccl.Version(v &^ doubleMark).String()
		if v&doubleMark != 0 {
			name = "a double of " + name
		}
		words = append(words, fmt.Sprintf("%s on rank %s", name, numbers(ranks[v])))
	}
	return fmt.Errorf("the ranks have different versions of NCCL: %s; give all ranks the same version, with %s=FILE if needed", strings.Join(words, "; "), nccl.Variable)
}

// numbers writes "0, 1, 2, …" for a person: a few of them, and how many more.
func numbers(list []int) string {
	const most = 8
	words := make([]string, 0, most+1)
	for i, n := range list {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}

// exchangeID hands rank 0's identifier to everybody: a sum to which the others
// add zeros.
func exchangeID(ctx context.Context, l *nccl.Library, g *collective.Group) (nccl.UniqueID, error) {
	var id nccl.UniqueID
	if g.Rank() == 0 {
		var err error
		if id, err = l.NewUniqueID(); err != nil {
			return id, err
		}
	}
	var words [len(id) / 8]int64
	for i := range words {
		words[i] = int64(binary.LittleEndian.Uint64(id[8*i:]))
	}
	if err := g.AllReduceInt64(ctx, words[:]); err != nil {
		return id, fmt.Errorf("waiting for rank 0's identifier of the communicator: %w", err)
	}
	for i, w := range words {
		binary.LittleEndian.PutUint64(id[8*i:], uint64(w))
	}
	return id, nil
}

// watch is the goroutine that has the group.
type watch struct {
	group   *collective.Group
	aborted chan error // another rank's reason, or why it is missed

	ctx     context.Context
	stop    context.CancelCauseFunc
	leaving chan struct{}
	once    sync.Once // closes leaving
	done    chan struct{}
}

func beginWatch(g *collective.Group) *watch {
	w := &watch{group: g, aborted: make(chan error, 1), leaving: make(chan struct{}), done: make(chan struct{})}
	w.ctx, w.stop = context.WithCancelCause(context.Background())
	go w.run()
	return w
}

// run counts, again and again, who is about to leave, until all are.
func (w *watch) run() {
	defer close(w.done)
	defer w.group.Close()
	leaving := w.leaving
	counted := int64(0)
	for {
		select {
		case <-leaving:
			leaving, counted = nil, 1
		case <-w.ctx.Done():
			w.group.Abort(context.Cause(w.ctx))
			return
		case <-time.After(interval):
		}
		count := []int64{counted}
		if err := w.group.AllReduceInt64(w.ctx, count); err != nil {
			w.aborted <- err
			return
		}
		if count[0] == int64(w.group.Size()) {
			return
		}
	}
}

// abort tells the other ranks why this one gives up, and returns when that is
// on its way.
func (w *watch) abort(reason error) {
	w.stop(reason)
	<-w.done
}

// leave returns when all ranks leave.
func (w *watch) leave() error {
	w.once.Do(func() { close(w.leaving) })
	<-w.done
	select {
	case err := <-w.aborted:
		return err
	default:
		return nil
	}
}
