//go:build cgo

package nccl

import "fmt"

// sharing is the first version that supports several ranks on one GPU by a setting.
const sharing Version = 23000

// Sharing returns the environment variables that let several ranks, including this one, use one
// GPU. Set them before the library is first called for an identifier or a communicator. Use it only
// to test correctness: the ranks take turns on the GPU, so their timings do not reflect the
// hardware. Before version 2.30, each rank claims to be a separate host, and they communicate over
// loopback.
func (l *Library) Sharing(rank int) map[string]string {
	if !l.version.Before(sharing) {
		return map[string]string{"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
	}
	return map[string]string{"NCCL_HOSTID": fmt.Sprintf("rank%d", rank), "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
}
