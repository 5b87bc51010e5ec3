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

// A segment is memory that the ranks of one host share. It is a memfd: it has no
// name in any file system, so that nothing is left behind however its processes
// end, and it is not bounded by the size of /dev/shm. Its file descriptor is
// handed over a Unix socket, after the hello; a rank that holds it and has mapped
// it does share memory with the others, whatever hosts are called.
//
// It begins with a flag for every rank. Then come two slots for every rank; see
// node for how they are used:
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
	// slotHeader is the part of a slot that says what is in it.
	slotHeader = 64
	// roundBytes is how much of an array is exchanged at once. Two slots of it,
	// for two ranks, stay within a core's second-level cache.
	roundBytes = 256 << 10
)

// A flag is what a rank shows of itself. Only the rank itself writes it, except
// for sleepers.
type flag struct {
	posted   atomic.Uint32 // rounds; also the futex that others sleep on
	sleepers atomic.Uint32
	_        [56]byte
	cpus     [16]uint64 // a mask of the first 1024 processors that the rank may use
}

// pieceBytes is how much of one rank's share is exchanged at once.
func pieceBytes(ranks int) int { return roundBytes / ranks &^ 63 }

// segmentGeometry is the size of a slot and of the whole: a slot takes a piece
// for each rank, and the sums of one piece.
func segmentGeometry(ranks int) (slot, whole int) {
	slot = slotHeader + (ranks+1)*pieceBytes(ranks)
	whole = ranks*flagBytes + 2*ranks*slot
	page := os.Getpagesize()
	return slot, (whole + page - 1) / page * page
}

// maxLocalRanks bounds the ranks that share memory, so that a piece is still
// worth the exchange.
const maxLocalRanks = roundBytes / 512

const segmentSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// newSegment makes a segment, with its memory reserved: a host that is short of
// it says so here and not by killing the process later.
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

// mapSegment maps what newSegment made, maybe in another process. It owns file.
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
	s.file.Close() // maybe it is already
	memory := s.memory
	s.memory = nil
	return unix.Munmap(memory)
}

func (s *segment) flag(i int) *flag { return (*flag)(unsafe.Pointer(&s.memory[i*flagBytes])) }

// slot is rank i's slot for a round.
func (s *segment) slot(i int, round uint32) []byte {
	at := s.ranks*flagBytes + (int(round&1)*s.ranks+i)*s.slotSize
	return s.memory[at : at+s.slotSize : at+s.slotSize]
}

// send hands the segment's file to another process of this host.
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

// receiveSegment takes what send sent.
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
