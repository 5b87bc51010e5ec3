//go:build !amd64 && !arm64

package collective

func pause() {}
