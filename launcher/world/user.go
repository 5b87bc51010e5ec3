package world

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownUser is this process's user; a test puts another one.
var ownUser = os.Geteuid

// sameUser rejects the other end of a Unix socket if it belongs to another user. Other connections do not
// reveal the user.
func sameUser(conn net.Conn) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("does not say whose process it is: %w", err)
	}
	if user := ownUser(); int(peer.Uid) != user {
		return fmt.Errorf("belongs to user %d, not to %d", peer.Uid, user)
	}
	return nil
}
