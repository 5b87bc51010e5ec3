package preprocess

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const (
	secret   = "notTheWorldsBestKeptSecret"
	modified = "Mon, 02 Jan 2006 15:04:05 GMT" // clients require this header
)

// serve starts an object store on the loopback interface with the images of ../testdata in the bucket
// "samples". change sees each request first, and answers it if it returns true.
func serve(t *testing.T, change func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("samples"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"images/wide.jpg", "images/deep/tall.JPG", "images/README", "images2/gray.jpg"} {
		name := strings.ToLower(key[strings.LastIndex(key, "/")+1:])
		content := []byte("no image")
		if strings.HasSuffix(name, ".jpg") {
			var err error
			if content, err = os.ReadFile("testdata/" + name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := backend.PutObject("samples", key, map[string]string{"Last-Modified": modified}, bytes.NewReader(content), int64(len(content)), nil); err != nil {
			t.Fatal(err)
		}
	}
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", modified)
		if change == nil || !change(w, r) {
			store.ServeHTTP(w, r)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func access(endpoint string) ObjectAccess {
	return ObjectAccess{Endpoint: endpoint, Region: usualRegion, ID: "somebody", Secret: secret, Patience: time.Minute}
}

func open(t *testing.T, source string, a ObjectAccess) *ObjectStore {
	t.Helper()
	s, err := OpenObjects(source, a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func find(t *testing.T, s *ObjectStore) []File {
	t.Helper()
	files, err := Find(t.Context(), "jpeg", s)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func objectOptions(s Store) Options {
	return Options{Format: "jpeg", Store: s, Threads: 2, Resize: 32, Crop: 28, Decoder: func() (Decoder, error) { return GoJPEG{}, nil }}
}

// Objects below the prefix are found, read and prepared like files; opening and reading are timed,
// and the number of bytes equals the objects' size.
func TestObjectPass(t *testing.T) {
	server := serve(t, nil)
	s := open(t, "s3://samples/images/", access(server.URL))
	files := find(t, s)
	if len(files) != 2 || files[0].Path != "s3://samples/images/deep/tall.JPG" || files[1].Path != "s3://samples/images/wide.jpg" {
		t.Fatalf("%v", files)
	}
	wide, err := os.ReadFile("testdata/wide.jpg")
	if err != nil {
		t.Fatal(err)
	}
	if files[1].Size != int64(len(wide)) || files[1].Version == "" {
		t.Errorf("%+v, want %d bytes and an ETag", files[1], len(wide))
	}
	r, err := Pass(t.Context(), files, objectOptions(s))
	if err != nil {
		t.Fatal(err)
	}
	if r.Samples != 2 || r.Read != files[0].Size+files[1].Size || !(r.Stages[Open].Wall > 0) || !(r.Stages[Read].Wall > 0) {
		t.Errorf("%+v", r)
	}
	if n, err := ReadAlone(t.Context(), s, files, 2); err != nil || n != r.Read {
		t.Errorf("alone: %d bytes, %v; want %d", n, err, r.Read)
	}
	memory, err := Load(t.Context(), s, files)
	if err != nil || !bytes.Equal(memory[files[1].Path], wide) {
		t.Errorf("what was read is not what is there: %v", err)
	}
	// Parts of an object, as of a file: what goes past the end is cut off with EOF.
	parts, err := s.OpenRanges(t.Context(), files[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, length int64 }{{0, 10}, {100, 1000}, {files[1].Size - 5, 10}, {files[1].Size, 1}} {
		got, want := make([]byte, c.length), make([]byte, c.length)
		n, err := parts.ReadAt(got, c.at)
		m, expected := bytes.NewReader(wide).ReadAt(want, c.at)
		if n != m || !bytes.Equal(got, want) || !errors.Is(err, expected) {
			t.Errorf("%d bytes from %d: %d, %v; a file gives %d, %v", c.length, c.at, n, err, m, expected)
		}
	}
	if s.Repeated() != 0 {
		t.Errorf("%d requests were repeated", s.Repeated())
	}
	var empty *EmptyError
	if _, err := Find(t.Context(), "tar", s); !errors.As(err, &empty) {
		t.Error(err)
	}
}

// Requests to a busy server are retried and counted, but not for ever.
func TestRepeated(t *testing.T) {
	var busy atomic.Int64
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if busy.Add(-1) < 0 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	s := open(t, "s3://samples/images", access(server.URL))
	busy.Store(objectAttempts - 1)
	find(t, s)
	if s.Repeated() != objectAttempts-1 {
		t.Errorf("%d repeated, want %d", s.Repeated(), objectAttempts-1)
	}
	busy.Store(1 << 20)
	if _, err := Find(t.Context(), "jpeg", s); err == nil || !strings.Contains(err.Error(), "failed 4 times in a row (503") {
		t.Error(err)
	}
}

// errorXML returns an error answer in the format of Amazon's documentation.
func errorXML(code, message string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>` + message + `</Message></Error>`
}

func answer(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// Each failure says what was wrong and what to do, and never the secret.
func TestListFails(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	secured := httptest.NewUnstartedServer(nil)
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	defer secured.Close()
	silent := make(chan struct{})
	defer close(silent)
	wait := func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
		case <-silent:
		}
		return true
	}
	plain := serve(t, nil)
	for name, c := range map[string]struct {
		endpoint, source string
		change           func(http.ResponseWriter, *http.Request) bool
		alter            func(*ObjectAccess)
		want             string
	}{
		"bucket":      {source: "s3://nowhere/images", want: `has no bucket "nowhere"; s3://BUCKET/PREFIX names it`},
		"no key":      {change: answer(403, errorXML("AccessDenied", "Access Denied")), alter: func(a *ObjectAccess) { a.ID, a.Secret = "", "" }, want: "refuses (403 AccessDenied: Access Denied); there is no key: set AWS_ACCESS_KEY_ID"},
		"wrong key":   {change: answer(403, errorXML("SignatureDoesNotMatch", "key somebody, secret "+secret)), want: "refuses (403 SignatureDoesNotMatch: key withheld, secret withheld); the key in AWS_ACCESS_KEY_ID is unknown there"},
		"region":      {change: answer(400, errorXML("AuthorizationHeaderMalformed", "expecting eu-west-1")), want: "is not in region us-east-1"},
		"clock":       {change: answer(403, errorXML("RequestTimeTooSkewed", "")), want: "this node's clock"},
		"other":       {change: answer(400, errorXML("Odd", strings.Repeat("long ", 1000))), want: "answers 400 Odd"},
		"no XML":      {change: answer(418, "<html>"), want: "answers 418"},
		"no server":   {endpoint: closed.URL, want: "no answer from " + closed.URL},
		"certificate": {endpoint: secured.URL, want: "is not trusted; name your site's authority in SSL_CERT_FILE"},
		"plain":       {endpoint: "https" + strings.TrimPrefix(plain.URL, "http"), want: "speaks HTTP without TLS"},
		"silent":      {change: wait, alter: func(a *ObjectAccess) { a.Patience = 50 * time.Millisecond }, want: "for 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.endpoint == "" {
				c.endpoint = serve(t, c.change).URL
			}
			if c.source == "" {
				c.source = "s3://samples/images"
			}
			a := access(c.endpoint)
			if c.alter != nil {
				c.alter(&a)
			}
			_, err := Find(t.Context(), "jpeg", open(t, c.source, a))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) || len(err.Error()) > 600 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// An object that is gone, replaced, cut short or slow fails the pass, and is named.
func TestReadFails(t *testing.T) {
	object := func(do func(w http.ResponseWriter, r *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/wide.jpg") && do(w, r)
		}
	}
	size := func() string {
		info, err := os.Stat("testdata/wide.jpg")
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(info.Size(), 10)
	}()
	part := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", size)
		_, _ = w.Write(make([]byte, 100))
		w.(http.Flusher).Flush()
	}
	for name, c := range map[string]struct {
		do    func(w http.ResponseWriter, r *http.Request) bool
		alter func(*ObjectAccess)
		want  string
	}{
		"gone":     {answer(404, errorXML("NoSuchKey", "")), nil, "it is gone from http://"},
		"replaced": {answer(412, errorXML("PreconditionFailed", "")), nil, "has changed since"},
		"refused":  {answer(403, errorXML("AccessDenied", "")), nil, "may not do this"},
		"size":     {answer(200, "short"), nil, "answers with 5 bytes, and listed " + size},
		"cut":      {func(w http.ResponseWriter, _ *http.Request) bool { part(w); panic(http.ErrAbortHandler) }, nil, "broke off after 100 of " + size + " bytes"},
		"slow": {func(w http.ResponseWriter, r *http.Request) bool { part(w); <-r.Context().Done(); return true },
			func(a *ObjectAccess) { a.Patience = 500 * time.Millisecond }, "for 500ms"},
		"unsaid": {func(w http.ResponseWriter, _ *http.Request) bool { // no length, and too little
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, 7))
			return true
		}, nil, "broke off after 7 of " + size},
		"too much": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, 1<<20))
			return true
		}, nil, "more than the " + size + " bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, object(c.do))
			files := find(t, open(t, "s3://samples/images", access(server.URL)))
			a := access(server.URL)
			if c.alter != nil {
				c.alter(&a)
			}
			s := open(t, "s3://samples/images", a)
			if _, err := Pass(t.Context(), files, objectOptions(s)); err == nil || !strings.Contains(err.Error(), "images/wide.jpg: ") || !strings.Contains(err.Error(), c.want) {
				// Without an announced length a server may send more than a sample needs; the rest
				// is not read.
				if name != "too much" {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if _, err := ReadAlone(t.Context(), s, files, 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("alone: %v, want %q", err, c.want)
			}
		})
	}
	// An object rewritten between listing and reading is not taken for the old one.
	server := serve(t, nil)
	s := open(t, "s3://samples/images", access(server.URL))
	files := find(t, s)
	files[1].Size--
	if _, err := Pass(t.Context(), files, objectOptions(s)); err == nil || !strings.Contains(err.Error(), "the object changed") {
		t.Error(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("why it ended")
	stop(why)
	if _, err := s.List(ctx, func(string) bool { return true }); !errors.Is(err, why) {
		t.Error(err)
	}
}

// Errors in the environment are reported before any request.
func TestOpen(t *testing.T) {
	env := map[string]string{"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b:9000/", "AWS_DEFAULT_REGION": "eu-north-1", "AWS_SESSION_TOKEN": "t"}
	if a := ObjectAccessFromEnvironment(func(name string) string { return env[name] }); a.Endpoint != "http://b:9000/" || a.Region != "eu-north-1" || a.Session != "t" || a.Patience != objectPatience {
		t.Errorf("%+v", a)
	}
	if a := ObjectAccessFromEnvironment(func(string) string { return "" }); a.Endpoint != UsualEndpoint || a.Region != "us-east-1" {
		t.Errorf("%+v", a)
	}
	for _, endpoint := range []string{"localhost:9000", "ftp://a", "http://", "http://me:" + secret + "@a", "http://a/path", "http://a?b=c", "http://%zz"} {
		if _, err := OpenObjects("s3://samples", access(endpoint)); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if _, err := OpenObjects("s3://", access("http://a")); err == nil {
		t.Error("no bucket is no error")
	}
	half := access("http://a")
	half.Secret = ""
	if _, err := OpenObjects("s3://samples", half); err == nil || !strings.Contains(err.Error(), "only one is set") {
		t.Error(err)
	}
}
