//go:build cgo

package nccl

import "fmt"

// sharing is the first version that several ranks on one GPU can be asked of.
const sharing Version = 23000

// Sharing are the environment variables with which several ranks, of which this
// is one, may use one GPU; they have to be set before the library is first
// called for an identifier or a communicator. It is for tests of correctness
// alone: the ranks take turns on the GPU, and what they measure is of nothing.
// Before 2.30 each rank claims to be a host of its own, and they talk through
// the loopback interface.
func (l *Library) Sharing(rank int) map[string]string {
	if !l.version.Before(sharing) {
		return map[string]string{"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
	}
	return map[string]string{"NCCL_HOSTID": fmt.Sprintf("rank%d", rank), "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
}
