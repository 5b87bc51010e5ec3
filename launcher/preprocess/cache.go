package preprocess

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Evict makes the kernel drop the files from the page cache. It does not need root. Only clean
// pages can be dropped, so it writes dirty pages first. Pages that a process has mapped remain in
// the cache.
func Evict(files []File) error {
	for _, file := range files {
		f, err := os.Open(file.Path)
		if err != nil {
			return err
		}
		if err = f.Sync(); err == nil {
			if err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
				err = fmt.Errorf("%s: fadvise: %w", file.Path, err)
			}
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// window is the number of bytes of a file that Resident maps at a time.
const window = 1 << 30

// Resident returns how many bytes of the files are in the page cache, in whole pages, and the
// total size of the files. Since Linux 5.2 this is only known for files that the user owns or may
// write; the kernel reports all others as resident.
func Resident(files []File) (resident, total int64, err error) {
	page := os.Getpagesize()
	for _, file := range files {
		f, err := os.Open(file.Path)
		if err != nil {
			return 0, 0, err
		}
		for at := int64(0); at < file.Size && err == nil; at += window {
			var n int
			n, err = residentPages(f, at, int(min(window, file.Size-at)), page)
			resident += int64(n) * int64(page)
		}
		f.Close()
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", file.Path, err)
		}
		total += (file.Size + int64(page) - 1) / int64(page) * int64(page)
	}
	return resident, total, nil
}

func residentPages(f *os.File, at int64, length, page int) (n int, err error) {
	memory, err := unix.Mmap(int(f.Fd()), at, length, unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(memory)
	pages := make([]byte, (length+page-1)/page)
	_, _, code := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(length), uintptr(unsafe.Pointer(&pages[0])))
	if code != 0 {
		return 0, fmt.Errorf("mincore: %w", code)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n, nil
}

// fileSystems are the names of file systems by their magic numbers. Most are listed in statfs(2);
// the numbers of Lustre, GPFS and BeeGFS come from their sources.
var fileSystems = map[uint32]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x794c7630: "overlayfs",
	0x6969: "nfs", 0x0bd00bd0: "lustre", 0x65735546: "fuse", 0x47504653: "gpfs", 0x19830326: "beegfs", 0x00c36400: "ceph",
	0x2fc12fc1: "zfs", 0x01021997: "9p", 0xff534d42: "cifs", 0xfe534d42: "smb", 0xf2f52010: "f2fs",
}

// FileSystem returns the name of the file system that a folder is on.
func FileSystem(folder string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return "", fmt.Errorf("%s: %w", folder, err)
	}
	if name, ok := fileSystems[uint32(s.Type)]; ok {
		return name, nil
	}
	return fmt.Sprintf("%#x", uint32(s.Type)), nil
}

// InMemory reports whether a file system keeps its files only in memory. Such files cannot be
// evicted from the cache.
func InMemory(fileSystem string) bool { return fileSystem == "tmpfs" || fileSystem == "ramfs" }
