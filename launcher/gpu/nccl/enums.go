package nccl

import "fmt"

// A Version is NCCL's version number: 10000·X + 100·Y + Z for X.Y.Z, and up to 2.8 1000·X + 100·Y + Z
// (NCCL_VERSION in nccl.h).
type Version int

// nonBlocking is the first version with communicators that do not block.
const nonBlocking Version = 21403

func (v Version) String() string {
	major := 10000
	if v < 10000 {
		major = 1000
	}
	return fmt.Sprintf("%d.%d.%d", int(v)/major, int(v)%major/100, int(v)%100)
}

// Before reports whether v is older than w, whichever way each is numbered.
func (v Version) Before(w Version) bool { return v.ordered() < w.ordered() }

func (v Version) ordered() int {
	if v < 10000 {
		return int(v)/1000*10000 + int(v)%1000
	}
	return int(v)
}

// A Result is an ncclResult_t.
type Result int

const (
	Success            Result = 0
	UnhandledCudaError Result = 1
	SystemError        Result = 2
	InternalError      Result = 3
	InvalidArgument    Result = 4
	InvalidUsage       Result = 5
	RemoteError        Result = 6
	InProgress         Result = 7 // no error
)

func (r Result) String() string {
	names := []string{"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError", "ncclInProgress"}
	if r < 0 || int(r) >= len(names) {
		return fmt.Sprintf("ncclResult %d", int(r))
	}
	return names[r]
}

// A DataType is an ncclDataType_t.
type DataType int

const (
	Int8     DataType = 0
	Uint8    DataType = 1
	Int32    DataType = 2
	Uint32   DataType = 3
	Int64    DataType = 4
	Uint64   DataType = 5
	Float16  DataType = 6
	Float32  DataType = 7
	Float64  DataType = 8
	BFloat16 DataType = 9
	Float8E4 DataType = 10 // e4m3, from 2.24 on
	Float8E5 DataType = 11 // e5m2, from 2.24 on
)

var dataTypes = []struct {
	name string
	size int64
}{{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"float16", 2}, {"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}}

func (t DataType) valid() bool { return t >= 0 && int(t) < len(dataTypes) }

// Size returns the size of one element in bytes; 0 for an invalid type.
func (t DataType) Size() int64 {
	if !t.valid() {
		return 0
	}
	return dataTypes[t].size
}

func (t DataType) String() string {
	if !t.valid() {
		return fmt.Sprintf("ncclDataType %d", int(t))
	}
	return dataTypes[t].name
}

// A Reduction is an ncclRedOp_t: how the elements of all ranks are combined.
type Reduction int

const (
	Sum     Reduction = 0
	Product Reduction = 1
	Max     Reduction = 2
	Min     Reduction = 3
	Average Reduction = 4 // the sum divided by the ranks, from 2.10 on
)

var reductions = []string{"sum", "prod", "max", "min", "avg"}

func (r Reduction) valid() bool { return r >= 0 && int(r) < len(reductions) }

func (r Reduction) String() string {
	if !r.valid() {
		return fmt.Sprintf("ncclRedOp %d", int(r))
	}
	return reductions[r]
}

// A Kind is the collective of an Operation.
type Kind int

const (
	AllReduce Kind = iota
	Broadcast
	ReduceScatter
	AllGather
)

var kinds = []string{"all-reduce", "broadcast", "reduce-scatter", "all-gather"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("collective %d", int(k))
	}
	return kinds[k]
}
