//go:build !linux

package store

// onNetwork returns true, because it cannot be determined on this system. The rollback journal
// that is then used is slower but always correct.
func onNetwork(string) (bool, error) { return true, nil }
