// Package nccl binds NVIDIA's collective communication library, NCCL, and AMD's RCCL, which has the
// same functions. The library is loaded at run time and not needed to build.
//
// A communicator (Comm) is one rank's end. Operations are queued on a stream of the device and run
// there while the program continues; Wait returns when they have ended. Communicators never block:
// otherwise a rank that died, hangs or enqueues another operation would block all others inside the
// library forever. While it waits, Comm checks the stream, the library's error reports, a deadline
// and the messages of the other ranks. If one of these shows a failure, Comm records what it was
// doing (a Failure), aborts its communicator and tells the others. It cannot recover: a reduction
// without one of the ranks would be wrong.
//
// Apart from its table of functions (package dl), the package is independent of scalebench. The
// caller provides device memory and streams, as numbers, for example from package cuda. The caller
// also brings the ranks together; package nccl/rendezvous does it over TCP.
//
// Cost, measured on a CPU core without a GPU: about 50 ns for a call through the table, 65 ns for
// sixteen operations in one crossing, and 4.4 µs to hand a call to another goroutine's thread. Keep
// a communicator on the goroutine that uses the device, and give it many operations at once.
package nccl

// #include "table.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// Variable names an environment variable with the library's file, instead of a
// search.
const Variable = "SCALEBENCH_NCCL"

// Candidates returns the libraries that Open tries, in order: if Variable is set, only that file;
// otherwise the libraries in the active Python environment (PyTorch's wheels include NCCL), the
// system's, and AMD's.
func Candidates(getenv func(string) string) []string {
	if own := getenv(Variable); own != "" {
		return []string{own}
	}
	var list []string
	if environment := getenv("VIRTUAL_ENV"); environment != "" {
		// The pattern is well formed; a folder that is not there matches nothing.
		list, _ = filepath.Glob(filepath.Join(environment, "lib", "python*", "site-packages", "nvidia", "nccl", "lib", "libnccl.so.2"))
	}
	return append(list, "libnccl.so.2", "librccl.so.1")
}

// A Library is the loaded NCCL.
type Library struct {
	table   *C.struct_nccl_table
	library *dl.Library
	version Version
}

// Open loads the first usable library of Candidates; getenv is usually os.Getenv. The error names
// every library that was tried, with the reason.
func Open(getenv func(string) string) (*Library, error) {
	// Never freed: a Library lives as long as the process.
	l := &Library{table: (*C.struct_nccl_table)(C.calloc(1, C.sizeof_struct_nccl_table))}
	var err error
	if l.library, err = dl.Open("NCCL", Candidates(getenv), l.symbols()); err != nil {
		C.free(unsafe.Pointer(l.table))
		return nil, err
	}
	var v C.int
	if err := l.check("ncclGetVersion", C.nccl_get_version(l.table, &v), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	l.version = Version(v)
	return l, nil
}

func (l *Library) symbols() []dl.Symbol {
	t := l.table
	return []dl.Symbol{
		{Name: "ncclGetVersion", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetVersion))},
		{Name: "ncclGetUniqueId", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetUniqueId))},
		{Name: "ncclCommInitRank", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommInitRank))},
		{Name: "ncclCommDestroy", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommDestroy))},
		{Name: "ncclCommAbort", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommAbort))},
		{Name: "ncclCommGetAsyncError", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommGetAsyncError))},
		{Name: "ncclCommCount", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommCount))},
		{Name: "ncclCommUserRank", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommUserRank))},
		{Name: "ncclGetErrorString", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetErrorString))},
		{Name: "ncclAllReduce", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.AllReduce))},
		{Name: "ncclBroadcast", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Broadcast))},
		{Name: "ncclReduceScatter", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ReduceScatter))},
		{Name: "ncclAllGather", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.AllGather))},
		{Name: "ncclGroupStart", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GroupStart))},
		{Name: "ncclGroupEnd", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GroupEnd))},
		{Name: "ncclGetLastError", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetLastError)), Optional: true},
		{Name: "ncclCommInitRankConfig", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommInitRankConfig)), Optional: true},
		{Name: "ncclCommFinalize", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CommFinalize)), Optional: true},
		{Name: "scalebenchDouble", Address: &t.double_notice, Optional: true},
	}
}

// Path returns the library's file.
func (l *Library) Path() string { return l.library.Path() }

// Version returns the library's version.
func (l *Library) Version() Version { return l.version }

// IsFake reports whether this is scalebench's test fake. It uses no GPU, so its timings say nothing
// about the hardware.
func (l *Library) IsFake() bool { return l.table.double_notice != nil }

// String returns the usual name and version of the library; for the fake, it says so.
func (l *Library) String() string {
	if l.IsFake() {
		return fmt.Sprintf("DOUBLE of NCCL %v (not NCCL, not a GPU)", l.version)
	}
	return fmt.Sprintf("NCCL %v", l.version)
}

// A UniqueID identifies the communicator that ranks join. One rank makes it and must stay alive
// until all have joined, because they connect to its process.
type UniqueID [128]byte

// NewUniqueID makes an identifier; it opens a port on this host.
func (l *Library) NewUniqueID() (UniqueID, error) {
	var id UniqueID
	err := l.check("ncclGetUniqueId", C.nccl_unique_id(l.table, unsafe.Pointer(&id)), nil)
	return id, err
}

// An Error is an NCCL result other than success.
type Error struct {
	Call   string // "ncclAllReduce"
	Result Result
	Words  string // the library's own
	Detail string // the library's last error (from 2.13.4 on); may come from an earlier call
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%v)", e.Call, e.Words, e.Result)
	if e.Detail != "" {
		s += "; NCCL's last error: " + e.Detail
	}
	return s
}

func (l *Library) check(call string, r C.ncclResult_t, comm C.ncclComm_t) error {
	if r == 0 || Result(r) == InProgress {
		return nil
	}
	e := &Error{Call: call, Result: Result(r), Words: "an error unknown to the library"}
	if s := C.nccl_error_string(l.table, r); s != nil {
		e.Words = C.GoString(s)
	}
	if s := C.nccl_last_error(l.table, comm); s != nil {
		e.Detail = C.GoString(s)
	}
	return e
}
