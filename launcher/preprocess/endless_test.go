package preprocess

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Endless listings and other answers that are too large are refused, with the exceeded limit. A
// redirect to another server is not followed.
func TestEndlessAnswers(t *testing.T) {
	var calls, elsewhere atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) bool { elsewhere.Add(1); return false })
	page := func(entries string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("list-type") {
				return false
			}
			n := calls.Add(1)
			fmt.Fprintf(w, `<?xml version="1.0"?><ListBucketResult><Name>samples</Name><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>%s</ListBucketResult>`, n, strings.ReplaceAll(entries, "N", fmt.Sprint(n)))
			return true
		}
	}
	entry := func(name string) string {
		return "<Contents><Key>images/" + name + "</Key><Size>1</Size><ETag>e</ETag><LastModified>2006-01-02T15:04:05Z</LastModified></Contents>"
	}
	for name, c := range map[string]struct {
		change func(http.ResponseWriter, *http.Request) bool
		most   limits
		want   string
	}{
		"objects":       {page(entry("N.jpg")), limits{50, 1 << 20, 1000}, "lists over 50 objects"},
		"unwanted ones": {page(entry("N.txt")), limits{50, 1 << 20, 1000}, "lists over 50 objects"},
		"long names":    {page(entry(strings.Repeat("x", 100<<10) + "N.jpg")), limits{1000, 1 << 20, 1000}, "over 1 MiB of names"},
		"empty pages":   {page(""), limits{50, 1 << 20, 20}, "lists over 20 pages"},
		"a long page": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, err := io.WriteString(w, `<?xml version="1.0"?><ListBucketResult>`)
			for line := "<!--" + strings.Repeat("x", 1<<16) + "-->"; err == nil; {
				_, err = io.WriteString(w, line)
			}
			return true
		}, mostOfAll, "the server sent an answer of over 4 MiB"},
		"a long error": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, err := io.WriteString(w, "<Error><Code>Odd</Code><Message>")
			for line := strings.Repeat("x", 1<<16); err == nil; {
				_, err = io.WriteString(w, line)
			}
			return true
		}, mostOfAll, "cannot list s3://samples/images/: "},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
			return true
		}, mostOfAll, "cannot list s3://samples/images/: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "s3://samples/images", access(serve(t, c.change).URL))
			s.most = c.most
			_, err := Find(t.Context(), "jpeg", s)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "no answer from") || len(err.Error()) > 600 {
				t.Errorf("%.600v, want %q", err, c.want)
			}
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}
