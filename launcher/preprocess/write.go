package preprocess

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/minio/minio-go/v7"
)

// partSize is the size of a part of an upload, in bytes. Stores require at least 5 MiB for every
// part except the last.
const partSize = 8 << 20

// mostParts is the maximum number of parts of an object.
const mostParts = 10_000

// Create implements Target. An object does not exist until Commit, which makes it exist completely.
// A small object is sent in one request, a larger one as the parts of a multipart upload.
func (s *ObjectStore) Create(ctx context.Context, name string) (Output, error) {
	return &upload{store: s, ctx: ctx, key: s.prefix + name, part: make([]byte, 0, partSize)}, nil
}

// An upload is an object being written by one thread.
type upload struct {
	store *ObjectStore
	ctx   context.Context
	key   string
	part  []byte // the part that is being filled
	id    string // ID of the multipart upload; "" until it is started
	parts []minio.CompletePart
	size  int64
	ended bool // the store reported that the upload no longer exists
}

func (u *upload) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if len(u.part) == partSize { // the part is full and more data follows
			if err := u.send(); err != nil {
				return n, err
			}
		}
		k := min(len(p), partSize-len(u.part))
		u.part = append(u.part, p[:k]...)
		p, n, u.size = p[k:], n+k, u.size+int64(k)
	}
	return n, nil
}

// send uploads the filled part.
func (u *upload) send() error {
	if len(u.parts) == mostParts {
		return fmt.Errorf("cannot write %s: an object has %d parts of %d bytes at most; lower workload.shard", u.name(), mostParts, partSize)
	}
	if u.id == "" {
		if err := u.ask(u.ctx, func(g *guard) (err error) {
			u.id, err = u.store.core.NewMultipartUpload(g.ctx, u.store.bucket, u.key, minio.PutObjectOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	return u.ask(u.ctx, func(g *guard) error {
		md5Sum, sha256Sum := sums(u.part)
		part, err := u.store.core.PutObjectPart(g.ctx, u.store.bucket, u.key, u.id, len(u.parts)+1, sending{bytes.NewReader(u.part), g}, int64(len(u.part)),
			minio.PutObjectPartOptions{Md5Base64: md5Sum, Sha256Hex: sha256Sum, DisableContentSha256: true})
		if err == nil {
			u.parts = append(u.parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
			u.part = u.part[:0]
		}
		return err
	})
}

// Commit returns when the store confirms that it has the whole object.
func (u *upload) Commit() error {
	// Record the object for removal before the request: it may exist even if the store's answer is
	// lost.
	u.store.wrote(u.key)
	if u.id == "" {
		if err := u.ask(u.ctx, func(g *guard) error {
			md5Sum, sha256Sum := sums(u.part)
			_, err := u.store.core.PutObject(g.ctx, u.store.bucket, u.key, sending{bytes.NewReader(u.part), g}, int64(len(u.part)), md5Sum, sha256Sum, minio.PutObjectOptions{DisableContentSha256: true})
			return err
		}); err != nil {
			return err
		}
		return u.check()
	}
	if err := u.send(); err != nil {
		return errors.Join(err, u.Abandon())
	}
	err := u.ask(u.ctx, func(g *guard) error {
		_, err := u.store.core.CompleteMultipartUpload(g.ctx, u.store.bucket, u.key, u.id, u.parts, minio.PutObjectOptions{})
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			u.ended = true
			return nil // the upload may be complete, if the answer to an earlier request was lost: check finds out
		}
		return err
	})
	if err != nil {
		return errors.Join(err, u.Abandon())
	}
	u.id = ""
	return u.check()
}

// check returns an error unless the object exists with the length that was written.
func (u *upload) check() error {
	var info minio.ObjectInfo
	err := u.ask(u.ctx, func(g *guard) (err error) {
		info, err = u.store.core.StatObject(g.ctx, u.store.bucket, u.key, minio.StatObjectOptions{})
		if answer := minio.ToErrorResponse(err); answer.Code == minio.NoSuchKey {
			return errLost
		}
		return err
	})
	switch {
	case errors.Is(err, errLost) && u.ended:
		return u.notWhole()
	case errors.Is(err, errLost):
		return fmt.Errorf("%s took %s and does not have it", u.store.access.Endpoint, u.name())
	case err != nil:
		return err
	case info.Size != u.size:
		return fmt.Errorf("%s has %d bytes of %s, of which %d were written", u.store.access.Endpoint, info.Size, u.name(), u.size)
	}
	return nil
}

var errLost = errors.New("lost")

// Abandon asks the store to delete the uploaded parts. It also works after the run was cancelled.
func (u *upload) Abandon() error {
	if u.id == "" {
		return nil
	}
	id := u.id
	u.id = ""
	return u.ask(context.WithoutCancel(u.ctx), func(g *guard) error {
		err := u.store.core.AbortMultipartUpload(g.ctx, u.store.bucket, u.key, id)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			return nil
		}
		return err
	})
}

func (u *upload) name() string { return u.store.path(u.key) }

// ask sends a request about the object. Its error explains why the request failed.
func (u *upload) ask(ctx context.Context, request func(*guard) error) error {
	g := u.store.guard(ctx)
	defer g.end()
	err := request(g)
	if err == nil || errors.Is(err, errLost) {
		return err
	}
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		return u.notWhole()
	}
	return u.store.explain(g, "write "+u.name(), err)
}

func (u *upload) notWhole() error {
	return fmt.Errorf("cannot write %s: %s ended the upload before it was complete", u.name(), u.store.access.Endpoint)
}

// sums returns the checksums with which the server detects a damaged part. Both are sent in the
// header of the request, because not every store supports checksums that are sent between chunks
// (hence DisableContentSha256).
func sums(part []byte) (md5Sum, sha256Sum string) {
	m, s := md5.Sum(part), sha256.Sum256(part)
	return base64.StdEncoding.EncodeToString(m[:]), hex.EncodeToString(s[:])
}

// sending is a request's body that tells the guard when data is sent.
type sending struct {
	from  *bytes.Reader
	guard *guard
}

func (s sending) Read(p []byte) (int, error) {
	s.guard.heard()
	return s.from.Read(p)
}

// Seek lets the client library send the request again.
func (s sending) Seek(to int64, whence int) (int64, error) { return s.from.Seek(to, whence) }

var _ io.ReadSeeker = sending{}

// wrote records that an object must be removed by Clear.
func (s *ObjectStore) wrote(key string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written = append(s.written, key)
}

// Clear removes the objects that were written through this ObjectStore, and no others. It also
// works after the run was cancelled.
func (s *ObjectStore) Clear(ctx context.Context) error {
	s.mutex.Lock()
	keys := slices.Clone(s.written)
	s.written = nil
	s.mutex.Unlock()
	var problems []error
	for _, key := range keys {
		g := s.guard(context.WithoutCancel(ctx))
		if err := s.core.RemoveObject(g.ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
			problems = append(problems, s.explain(g, "remove "+s.path(key), err))
		}
		g.end()
		if len(problems) == 3 { // three errors are enough; more would say the same
			break
		}
	}
	return errors.Join(problems...)
}
