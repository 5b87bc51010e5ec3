package collective

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A segment is memory that the ranks of one host share. It is a memfd: it has no name in any file system, so
// nothing remains however its processes end, and the size of /dev/shm does not limit it. Its file descriptor is
// passed over a Unix socket after the hello. A rank that has mapped it provably shares memory with the others,
// regardless of host names.
//
// It begins with a flag for every rank, followed by two slots for every rank; see node for how they are used:
//
//	flag 0 … flag n−1, slot 0 of rank 0 … slot 0 of rank n−1, slot 1 of rank 0 …
type segment struct {
	memory   []byte
	file     *os.File
	ranks    int
	slotSize int
}

const (
	// flagBytes keeps flags apart: processors fetch lines of 64 bytes in pairs.
	flagBytes = 256
	// slotHeader is the size of a slot's header, which says what the slot holds.
	slotHeader = 64
	// roundBytes is the number of bytes of an array that are exchanged in one round. Two slots of
	// this size, for two ranks, fit in a core's second-level cache.
	roundBytes = 256 << 10
)

// A flag is a rank's public state. Only the rank itself writes it, except sleepers.
type flag struct {
	posted   atomic.Uint32 // rounds posted; also the futex that others sleep on
	sleepers atomic.Uint32
	_        [56]byte
	cpus     [16]uint64 // a mask of the first 1024 processors that the rank may use
}

// pieceBytes returns how much of one rank's share is exchanged in one round.
func pieceBytes(ranks int) int { return roundBytes / ranks &^ 63 }

// segmentGeometry returns the size of a slot and of the segment. A slot holds a piece for each
// rank, and the sums of one piece.
func segmentGeometry(ranks int) (slot, whole int) {
	slot = slotHeader + (ranks+1)*pieceBytes(ranks)
	whole = ranks*flagBytes + 2*ranks*slot
	page := os.Getpagesize()
	return slot, (whole + page - 1) / page * page
}

// maxLocalRanks limits the ranks that share memory, so that a piece is large enough to be worth an
// exchange.
const maxLocalRanks = roundBytes / 512

const segmentSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// newSegment makes a segment and reserves its memory: a host with too little memory returns an
// error here instead of killing the process later.
func newSegment(ranks int) (*segment, error) {
	if ranks > maxLocalRanks {
		return nil, fmt.Errorf("%d ranks on one host, but shared memory has room for %d at most", ranks, maxLocalRanks)
	}
	fd, err := unix.MemfdCreate("scalebench", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "shared memory")
	_, whole := segmentGeometry(ranks)
	err = unix.Fchmod(fd, 0o600)
	if err == nil {
		err = unix.Fallocate(fd, 0, 0, int64(whole))
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, segmentSeals)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("reserving %d bytes: %w", whole, err)
	}
	return mapSegment(file, ranks)
}

// mapSegment maps what newSegment made, possibly in another process. It takes ownership of file.
func mapSegment(file *os.File, ranks int) (*segment, error) {
	slot, whole := segmentGeometry(ranks)
	info, err := file.Stat()
	if err == nil && info.Size() != int64(whole) {
		err = fmt.Errorf("it has %d bytes, want %d", info.Size(), whole)
	}
	if err == nil { // memory that shrinks under a process kills it
		var seals int
		if seals, err = unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0); err == nil && seals&segmentSeals != segmentSeals {
			err = errors.New("its size is not sealed")
		}
	}
	var memory []byte
	if err == nil {
		memory, err = unix.Mmap(int(file.Fd()), 0, whole, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("mapping shared memory: %w", err)
	}
	return &segment{memory: memory, file: file, ranks: ranks, slotSize: slot}, nil
}

func (s *segment) unmap() error {
	s.file.Close() // may already be closed
	memory := s.memory
	s.memory = nil
	return unix.Munmap(memory)
}

func (s *segment) flag(i int) *flag { return (*flag)(unsafe.Pointer(&s.memory[i*flagBytes])) }

// slot returns rank i's slot for a round.
func (s *segment) slot(i int, round uint32) []byte {
	at := s.ranks*flagBytes + (int(round&1)*s.ranks+i)*s.slotSize
	return s.memory[at : at+s.slotSize : at+s.slotSize]
}

// send passes the segment's file to another process on this host.
func (s *segment) send(conn *net.UnixConn) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = conn.WriteMsgUnix([]byte{answerAccepted}, unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, sent)
}

// receiveSegment receives the file that send passed.
func receiveSegment(conn *net.UnixConn, ranks int) (*segment, error) {
	word, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, controlLength, _, _, err := conn.ReadMsgUnix(word, control)
	if err != nil {
		return nil, fmt.Errorf("it was not handed over: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlLength])
	if err != nil || n != 1 || len(messages) != 1 {
		return nil, errors.New("it was not handed over")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("it was not handed over: no file came")
	}
	unix.CloseOnExec(fds[0])
	return mapSegment(os.NewFile(uintptr(fds[0]), "shared memory"), ranks)
}
