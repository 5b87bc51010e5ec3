package preprocess

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

// bytesOf returns n bytes that differ at each call.
func bytesOf(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content)
	return content
}

// put writes an object in pieces, as a thread does.
func put(ctx context.Context, s *ObjectStore, name string, content []byte) error {
	f, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	for len(content) > 0 {
		n := min(len(content), 3<<20)
		if _, err := f.Write(content[:n]); err != nil {
			return errors.Join(err, f.Abandon())
		}
		content = content[n:]
	}
	return f.Commit()
}

// left returns the objects below ready, and the number of incomplete uploads.
func left(t *testing.T, endpoint string) (objects []File, uploads int) {
	t.Helper()
	s := open(t, "s3://samples/ready", access(endpoint))
	objects, err := s.List(t.Context(), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.core.ListMultipartUploads(t.Context(), "samples", "", "", "", "", 1000)
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload { // gofakes3 reports "no uploads" this way
		t.Fatal(err)
	}
	return objects, len(list.Uploads)
}

// Objects written in one request, in parts, and in exactly two parts are stored unchanged. Clear
// removes them and nothing else.
func TestWrite(t *testing.T) {
	server := serve(t, nil)
	s := open(t, "s3://samples/ready/run", access(server.URL))
	for _, n := range []int{1, partSize, partSize + 1, 2 * partSize, 2*partSize + 12345} {
		content := bytesOf(n)
		if err := put(t.Context(), s, "shard", content); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		objects, uploads := left(t, server.URL)
		if len(objects) != 1 || objects[0].Path != "s3://samples/ready/run/shard" || objects[0].Size != int64(n) || uploads != 0 {
			t.Fatalf("%d bytes: %v, %d uploads", n, objects, uploads)
		}
		memory, err := Load(t.Context(), s, objects)
		if err != nil || !bytes.Equal(memory[objects[0].Path], content) {
			t.Errorf("%d bytes: what is there is not what was written: %v", n, err)
		}
		if err := s.Clear(t.Context()); err != nil {
			t.Error(err)
		}
		if objects, _ := left(t, server.URL); len(objects) != 0 {
			t.Errorf("%d bytes: %v is left", n, objects)
		}
	}
	if files := find(t, open(t, "s3://samples/images", access(server.URL))); len(files) != 2 {
		t.Errorf("of the source is left %v", files)
	}
}

// A pass writes the same content to objects as to files.
func TestPassWrites(t *testing.T) {
	server := serve(t, nil)
	source := open(t, "s3://samples/images", access(server.URL))
	target := open(t, "s3://samples/ready/run", access(server.URL))
	o := objectOptions(source)
	o.Threads, o.Target, o.Shard = 1, target, 1<<20
	r, err := Pass(t.Context(), find(t, source), o)
	const size = 2 * 4 * 3 * 28 * 28 // two images
	if err != nil || r.Written != size || !(r.Stages[Write].Wall > 0) || !(r.Stages[Sync].Wall > 0) {
		t.Fatalf("%+v, %v", r, err)
	}
	objects, _ := left(t, server.URL)
	if len(objects) != 1 || objects[0].Path != "s3://samples/ready/run/thread-0-00000.f32" {
		t.Fatalf("%v", objects)
	}
	got, err := Load(t.Context(), target, objects)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder(t.TempDir())
	o.Target = folder
	if _, err := Pass(t.Context(), find(t, source), o); err != nil {
		t.Fatal(err)
	}
	files, err := folder.List(t.Context(), func(string) bool { return true })
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	want, err := Load(t.Context(), folder, files)
	if err != nil || !bytes.Equal(got[objects[0].Path], want[files[0].Path]) || len(want[files[0].Path]) != size {
		t.Errorf("objects and files differ: %v", err)
	}
	if err := WriteAlone(t.Context(), target, 3<<20, 1<<20, 2); err != nil {
		t.Error(err)
	}
	if err := target.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	if objects, uploads := left(t, server.URL); len(objects) != 0 || uploads != 0 {
		t.Errorf("%v and %d uploads are left", objects, uploads)
	}
}

// requests calls do for requests about the written object, with this method and query.
func requests(method, query string, do func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/shard") && r.Method == method && strings.Contains(r.URL.RawQuery, query) && do(w, r)
	}
}

// Each failure names the object and what to do, never the secret; afterwards neither an
// object nor an upload is left.
func TestWriteFails(t *testing.T) {
	const whole, parts = 1000, partSize + 1000
	silent := make(chan struct{})
	defer close(silent)
	wait := func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-silent:
		}
		return true
	}
	for name, c := range map[string]struct {
		size   int
		change func(http.ResponseWriter, *http.Request) bool
		alter  func(*ObjectAccess)
		want   string
	}{
		"refused":         {whole, requests("PUT", "", answer(403, errorXML("AccessDenied", secret))), nil, "refuses (403 AccessDenied: withheld)"},
		"no bucket":       {whole, requests("PUT", "", answer(404, errorXML("NoSuchBucket", ""))), nil, `has no bucket "samples"`},
		"full":            {whole, requests("PUT", "", answer(507, errorXML("XMinioStorageFull", ""))), nil, "has no room left (507 XMinioStorageFull"},
		"too large":       {whole, requests("PUT", "", answer(400, errorXML("EntityTooLarge", ""))), nil, "lower workload.shard"},
		"busy":            {whole, requests("PUT", "", answer(503, errorXML("SlowDown", ""))), nil, "failed 4 times in a row (503 SlowDown"},
		"damaged":         {whole, requests("PUT", "", answer(400, errorXML("BadDigest", "did not match"))), nil, "answers 400 BadDigest"},
		"broken off":      {whole, requests("PUT", "", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }), nil, "no answer from http://"},
		"silent":          {whole, requests("PUT", "", wait), func(a *ObjectAccess) { a.Patience = 500 * time.Millisecond }, "for 500ms"},
		"lost":            {whole, requests("PUT", "", func(w http.ResponseWriter, _ *http.Request) bool { w.Header().Set("ETag", `"a"`); return true }), nil, "and does not have it"},
		"no upload":       {parts, requests("POST", "uploads", answer(403, errorXML("AccessDenied", ""))), nil, "may not do this"},
		"first part":      {parts, requests("PUT", "partNumber=1", answer(503, errorXML("SlowDown", ""))), nil, "failed 4 times"},
		"second part":     {parts, requests("PUT", "partNumber=2", answer(403, errorXML("AccessDenied", ""))), nil, "may not do this"},
		"completion":      {parts, requests("POST", "uploadId", answer(403, errorXML("AccessDenied", ""))), nil, "may not do this"},
		"failed with 200": {parts, requests("POST", "uploadId", answer(200, errorXML("InternalError", "try again"))), nil, "InternalError"},
		"upload ended":    {parts, requests("PUT", "partNumber=2", answer(404, errorXML("NoSuchUpload", ""))), nil, "ended the upload before it was complete"},
		"ended later":     {parts, requests("POST", "uploadId", answer(404, errorXML("NoSuchUpload", ""))), nil, "ended the upload before it was complete"},
		"short": {whole, requests("HEAD", "", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "999")
			w.Header().Set("ETag", `"a"`)
			return true
		}), nil, "has 999 bytes of s3://samples/ready/run/shard, of which 1000 were written"},
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			failing.Store(true)
			server := serve(t, func(w http.ResponseWriter, r *http.Request) bool { return failing.Load() && c.change(w, r) })
			a := access(server.URL)
			if c.alter != nil {
				c.alter(&a)
			}
			s := open(t, "s3://samples/ready/run", a)
			err := put(t.Context(), s, "shard", bytesOf(c.size))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) || len(err.Error()) > 600 {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "s3://samples/ready/run/shard") && name != "no bucket" {
				t.Errorf("%v does not name the object", err)
			}
			failing.Store(false)
			s.access.Patience = time.Minute
			if err := s.Clear(t.Context()); err != nil {
				t.Error(err)
			}
			objects, uploads := left(t, server.URL)
			if name == "ended later" { // the store of this test still has it
				uploads = 0
			}
			if len(objects) != 0 || uploads != 0 {
				t.Errorf("%v and %d uploads are left", objects, uploads)
			}
		})
	}
}

// An upload is complete even if the answer that confirms it was lost.
func TestLostAnswer(t *testing.T) {
	var inner http.Handler
	var lost atomic.Int64
	server := serve(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.RawQuery, "uploadId") || r.Header.Get("Again") != "" || lost.Add(1) > 1 {
			return false
		}
		r.Header.Set("Again", "1")
		inner.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	inner = server.Config.Handler
	s := open(t, "s3://samples/ready/run", access(server.URL))
	if err := put(t.Context(), s, "shard", bytesOf(partSize+1)); err != nil {
		t.Error(err)
	}
	if objects, uploads := left(t, server.URL); len(objects) != 1 || objects[0].Size != partSize+1 || uploads != 0 {
		t.Errorf("%v, %d uploads", objects, uploads)
	}
	if lost.Load() < 2 || s.Repeated() != 1 {
		t.Errorf("asked %d times, %d repeated", lost.Load(), s.Repeated())
	}
}

// A cancelled run still removes the objects that it wrote, and the parts of unfinished ones.
func TestWriteEnded(t *testing.T) {
	server := serve(t, nil)
	s := open(t, "s3://samples/ready/run", access(server.URL))
	ctx, stop := context.WithCancelCause(t.Context())
	if err := put(ctx, s, "first", bytesOf(10)); err != nil {
		t.Fatal(err)
	}
	f, err := s.Create(ctx, "second")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytesOf(partSize + 1)); err != nil {
		t.Fatal(err)
	}
	if _, uploads := left(t, server.URL); uploads != 1 {
		t.Fatalf("%d uploads", uploads)
	}
	why := errors.New("why it ended")
	stop(why)
	if _, err := f.Write(bytesOf(2 * partSize)); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := errors.Join(f.Abandon(), s.Clear(ctx)); err != nil {
		t.Error(err)
	}
	if objects, uploads := left(t, server.URL); len(objects) != 0 || uploads != 0 {
		t.Errorf("%v and %d uploads are left", objects, uploads)
	}
}
