package preprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// This file reads and writes samples in an object store with Amazon's S3 protocol. An object is
// read with one request. The time until its answer begins counts as stage Open, and the time to
// receive the body as stage Read. If a format reads parts of a file, each part is one request.

// ObjectScheme is the prefix of the name of a source in an object store.
const ObjectScheme = "s3://"

// UsualEndpoint and usualRegion are used if the environment names no server and no region.
const (
	UsualEndpoint = "https://s3.amazonaws.com"
	usualRegion   = "us-east-1"
)

// objectAttempts is the maximum number of times that a request is sent. A request is sent again if
// it got no answer, or if the answer says that the server is busy or has failed. The pauses are at
// most 0.2 s, 0.4 s and 0.8 s. If the connection breaks within a body, the request is not repeated.
const objectAttempts = 4

// objectPatience is the maximum time without a new byte after which a request fails, including
// retries.
const objectPatience = 30 * time.Second

// ObjectAccess holds a server's address and the client's credentials.
type ObjectAccess struct {
	Endpoint            string // https://HOST[:PORT] or http://…
	Region              string
	ID, Secret, Session string // access key; all "" for anonymous access
	Patience            time.Duration
}

// ObjectAccessFromEnvironment returns the server and credentials in the variables that Amazon's
// tools use (AWS_…).
func ObjectAccessFromEnvironment(getenv func(string) string) ObjectAccess {
	return ObjectAccess{
		Endpoint: cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), UsualEndpoint),
		Region:   cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), usualRegion),
		ID:       getenv("AWS_ACCESS_KEY_ID"), Secret: getenv("AWS_SECRET_ACCESS_KEY"), Session: getenv("AWS_SESSION_TOKEN"),
		Patience: objectPatience,
	}
}

// mostOfAll limits a listing, since a faulty server could send pages without end. For
// comparison, ImageNet has 1.3 million objects.
var mostOfAll = limits{objects: 5_000_000, names: 256 << 20, pages: 10_000}

type limits struct {
	objects int
	names   int   // total bytes of their names and versions
	pages   int64 // of up to 1,000 objects each; some may be empty
}

// mostPage is the maximum size, in bytes, of one page of a listing, and of every other answer
// except objects. A page has up to 1,000 entries of a few hundred bytes, with names of at most
// 1,024 bytes.
const mostPage = 4 << 20

// A limitError reports that a server sent more than one of the limits allows.
type limitError string

func (e limitError) Error() string { return string(e) }

func limitf(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }

// An ObjectStore gives access to the objects of a bucket below a prefix.
type ObjectStore struct {
	access         ObjectAccess
	core           *minio.Core
	bucket, prefix string
	repeated       atomic.Int64
	most           limits
	pages          atomic.Int64 // number of pages of listings so far

	mutex   sync.Mutex
	written []string // keys of objects that may exist and that Clear removes
}

// OpenObjects returns an ObjectStore for s3://BUCKET/PREFIX. It sends no request.
func OpenObjects(source string, access ObjectAccess) (*ObjectStore, error) {
	name, ok := strings.CutPrefix(source, ObjectScheme)
	bucket, prefix, _ := strings.Cut(name, "/")
	if !ok || bucket == "" {
		return nil, fmt.Errorf("want s3://BUCKET or s3://BUCKET/PREFIX")
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/" // a prefix is like a folder: "images" must not match "images2"
	}
	server, err := url.Parse(access.Endpoint)
	if err != nil || server.Scheme != "http" && server.Scheme != "https" || server.Host == "" || server.User != nil || strings.Trim(server.Path, "/") != "" || server.RawQuery != "" {
		return nil, errors.New("AWS_ENDPOINT_URL: want https://HOST[:PORT] or http://HOST[:PORT], and nothing else in it") // the message omits the value, which may contain a password
	}
	access.Endpoint = server.Scheme + "://" + server.Host
	if (access.ID == "") != (access.Secret == "") {
		return nil, errors.New("of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set; set both, or neither for a bucket that everybody may read")
	}
	s := &ObjectStore{access: access, bucket: bucket, prefix: prefix, most: mostOfAll}
	transport, err := minio.DefaultTransport(server.Scheme == "https")
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = 1<<12, 0 // enough idle connections for one per thread, so that no connection is opened twice
	transport.ResponseHeaderTimeout = 0                              // the guard limits the time of the whole request
	s.core, err = minio.NewCore(server.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(access.ID, access.Secret, access.Session), // without an access key, requests are not signed
		Secure: server.Scheme == "https", Region: access.Region, MaxRetries: objectAttempts,
		Transport: bounded{counting{transport, &s.repeated}, s},
	})
	if err != nil {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL: %w", err)
	}
	return s, nil
}

// Endpoint returns the server's address as http(s)://HOST.
func (s *ObjectStore) Endpoint() string { return s.access.Endpoint }

// Repeated returns how many requests so far had to be sent again, because they got no answer or
// one that asks to retry.
func (s *ObjectStore) Repeated() int64 { return s.repeated.Load() }

// counting counts the requests that have to be sent again.
type counting struct {
	http.RoundTripper
	repeated *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil && r.Context().Err() == nil || err == nil && (answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout) {
		c.repeated.Add(1)
	}
	return answer, err
}

// bounded limits the size of a server's answers. For objects, the limit is the size in the
// listing.
type bounded struct {
	http.RoundTripper
	of *ObjectStore
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	lists := r.Method == http.MethodGet && r.URL.Query().Has("list-type")
	if lists && b.of.pages.Add(1) > b.of.most.pages {
		return nil, limitf("%s lists over %d pages, the most that are read; name a prefix with fewer objects", b.of.access.Endpoint, b.of.most.pages)
	}
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil && (lists || answer.StatusCode/100 != 2) {
		answer.Body = &page{answer.Body, mostPage}
	}
	return answer, err
}

// A page is the body of an answer that is read completely into memory; reading more than left
// bytes is an error.
type page struct {
	io.ReadCloser
	left int
}

func (p *page) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b[:min(len(b), p.left+1)])
	if p.left -= n; p.left < 0 {
		return 0, limitf("the server sent an answer of over %d MiB, the most that is read of one that is not an object", mostPage>>20)
	}
	return n, err
}

// path returns s3://BUCKET/KEY, the path of an object in File and in messages.
func (s *ObjectStore) path(key string) string { return ObjectScheme + s.bucket + "/" + key }

// key returns the object's key from its path.
func (s *ObjectStore) key(file File) string {
	return strings.TrimPrefix(file.Path, ObjectScheme+s.bucket+"/")
}

// List implements Store.
func (s *ObjectStore) List(ctx context.Context, wanted func(string) bool) (files []File, err error) {
	g := s.guard(ctx)
	defer g.end()
	no := false
	listed, named := 0, 0
	for o := range s.core.ListObjectsIter(g.ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, FetchOwner: &no}) {
		g.heard()
		if o.Err != nil {
			return nil, s.explain(g, "list "+s.path(s.prefix), o.Err)
		}
		listed, named = listed+1, named+len(o.Key)+len(o.ETag)
		if listed > s.most.objects || named > s.most.names {
			return nil, s.explain(g, "list "+s.path(s.prefix), limitf("%s lists over %d objects, or over %d MiB of names, the most that a source may have; name a prefix with fewer", s.access.Endpoint, s.most.objects, s.most.names>>20))
		}
		if path := s.path(o.Key); wanted(path) {
			if o.Size < 0 {
				return nil, fmt.Errorf("%s has %d bytes, says %s", path, o.Size, s.access.Endpoint)
			}
			files = append(files, File{Path: path, Size: o.Size, Version: o.ETag})
		}
	}
	if g.ctx.Err() != nil { // a cancelled context ends the listing without an error
		return nil, s.explain(g, "list "+s.path(s.prefix), context.Cause(g.ctx))
	}
	return files, nil
}

// Open implements Store.
func (s *ObjectStore) Open(ctx context.Context, file File) (io.ReadCloser, error) {
	return s.get(ctx, file, file.Size, minio.GetObjectOptions{})
}

// get requests size bytes of an object; o has their range. It fails if the object has changed
// since it was listed.
func (s *ObjectStore) get(ctx context.Context, file File, size int64, o minio.GetObjectOptions) (*body, error) {
	g := s.guard(ctx)
	if file.Version != "" {
		_ = o.SetMatchETag(file.Version) // cannot fail, since the version is not empty
	}
	b, _, head, err := s.core.GetObject(g.ctx, s.bucket, s.key(file), o)
	if err != nil {
		defer g.end()
		return nil, s.explain(g, "read it", err)
	}
	g.heard()
	if length := head.Get("Content-Length"); length != "" && length != fmt.Sprint(size) {
		g.end()
		b.Close()
		return nil, fmt.Errorf("%s answers with %s bytes, and listed %d: the object changed, or the server ignores the range", s.access.Endpoint, length, size)
	}
	return &body{store: s, guard: g, from: b, left: size, size: size}, nil
}

// A body is the content of an object while it is received.
type body struct {
	store      *ObjectStore
	guard      *guard
	from       io.ReadCloser
	left, size int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.guard.heard()
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return n, fmt.Errorf("%s sent more than the %d bytes that it listed", b.store.access.Endpoint, b.size)
	case errors.Is(err, io.EOF) && b.left == 0:
		return n, io.EOF
	case err != nil && b.guard.ctx.Err() != nil:
		return n, b.store.explain(b.guard, "read it", err)
	case err != nil:
		return n, fmt.Errorf("%s broke off after %d of %d bytes (%w); this is not repeated", b.store.access.Endpoint, b.size-b.left, b.size, noEOF(err))
	}
	return n, nil
}

// noEOF replaces io.EOF by io.ErrUnexpectedEOF if an object ends too early. Otherwise readers
// would take it for complete.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (b *body) Close() error {
	err := b.from.Close()
	b.guard.end()
	return err
}

// ranges reads parts of one object, with one request for each part.
type ranges struct {
	store *ObjectStore
	ctx   context.Context
	file  File
}

// OpenRanges implements Store. It sends no request.
func (s *ObjectStore) OpenRanges(ctx context.Context, file File) (Ranges, error) {
	return ranges{s, ctx, file}, nil
}

func (r ranges) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > r.file.Size {
		return 0, fmt.Errorf("byte %d of %d", at, r.file.Size)
	}
	want := min(int64(len(p)), r.file.Size-at)
	if want == 0 {
		return 0, io.EOF
	}
	var o minio.GetObjectOptions
	if err := o.SetRange(at, at+want-1); err != nil {
		return 0, err
	}
	b, err := r.store.get(r.ctx, r.file, want, o)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	n, err := io.ReadFull(b, p[:want])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (ranges) Close() error { return nil }

// guard cancels a request if no byte arrives for too long.
type guard struct {
	ctx      context.Context
	stop     context.CancelCauseFunc
	timer    *time.Timer
	patience time.Duration
}

var errSilent = errors.New("silent")

func (s *ObjectStore) guard(ctx context.Context) *guard {
	g := &guard{patience: s.access.Patience}
	g.ctx, g.stop = context.WithCancelCause(ctx)
	g.timer = time.AfterFunc(g.patience, func() { g.stop(errSilent) })
	return g
}

// heard records that data arrived.
func (g *guard) heard() { g.timer.Reset(g.patience) }

func (g *guard) end() {
	g.timer.Stop()
	g.stop(nil)
}
