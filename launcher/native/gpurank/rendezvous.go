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

// This file connects the ranks of a run in NCCL. They already have a Group of TCP connections.
// Through it they compare their versions of NCCL and get the communicator's identifier from rank 0.
// From then on, each rank reports several times per second that it is well. A rank that fails sends
// its reason, a dead one is noticed by its closed connection, and a frozen one by its silence. In
// each case, all other ranks abort their communicators and return the same reason.

// interval is the time between two reports of a rank that it is well. A rank notices another's end
// within this time.
const interval = 250 * time.Millisecond

// Comm is a communicator whose ranks monitor each other.
type Comm struct {
	*nccl.Comm
	watch *watch
}

// Join makes a communicator of the ranks of g. It fills in rank, size, identifier and the abort
// functions of o. The communicator owns the group from now on and closes it. g should use TCP, so
// that the other ranks notice the end of a process by its connection.
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
		w.abort(err) // the other ranks do not know of an error outside the communicator yet
		return nil, err
	}
	return &Comm{c, w}, nil
}

// Close waits until all ranks call it, and leaves the communicator.
func (c *Comm) Close(ctx context.Context) error {
	if err := c.Comm.Close(ctx); err != nil {
		c.watch.abort(err)
		return err
	}
	return c.watch.leave()
}

// doubleMark distinguishes the fake library from a real NCCL with the same version.
const doubleMark = 1 << 32

// sameVersion returns an error if the ranks loaded different versions. They might hang or, worse,
// compute wrong sums.
func sameVersion(ctx context.Context, l *nccl.Library, g *collective.Group) error {
	all := make([]int64, g.Size())
	all[g.Rank()] = int64(l.Version())
	if l.IsFake() {
		all[g.Rank()] |= doubleMark
	}
	if err := g.AllReduceInt64(ctx, all); err != nil {
		return fmt.Errorf("comparing the ranks' versions of NCCL: %w", err)
	}
	return compare(all)
}

// compare returns an error unless all versions, one for each rank, are equal.
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

// numbers formats a list as "0, 1, 2 and 5 more".
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

// exchangeID passes rank 0's identifier to all ranks, by an all-reduce to which the others add
// zeros.
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

// watch is the state of the goroutine that owns the group.
type watch struct {
	group   *collective.Group
	aborted chan error // another rank's reason, or how its end was noticed

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

// run counts at each interval how many ranks are about to leave, until all are.
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

// abort tells the other ranks why this one gives up. It returns when the message is sent.
func (w *watch) abort(reason error) {
	w.stop(reason)
	<-w.done
}

// leave announces that this rank is about to leave, and returns when all ranks are.
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
