package store

import "golang.org/x/sys/unix"

// networkFileSystems maps the magic numbers of statfs(2) to the names of file systems that
// several hosts can mount. Numbers that <linux/magic.h> lacks are from the sources of the file
// system.
var networkFileSystems = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "FUSE", // may be sshfs, GlusterFS, …: assume a network
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x0bd00bd0:             "Lustre",
	0x47504653:             "GPFS",
	0x19830326:             "BeeGFS",
	0x01161970:             "GFS2",
	0x20030528:             "OrangeFS",
	0xaad7aaea:             "PanFS",
}

// onNetwork reports whether other hosts can write to the file system on which dir is.
func onNetwork(dir string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, err
	}
	_, network := networkFileSystems[uint32(st.Type)]
	return network, nil
}
