package preprocess

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
)

// errNotAllowed is the cause if the server denies this user a request.
var errNotAllowed = errors.New("not allowed")

// explain returns an error that says why a request failed and what to do about it. what describes
// the request, as in "list s3://bucket/"; err is the client library's error.
func (s *ObjectStore) explain(g *guard, what string, err error) error {
	server := s.access.Endpoint
	if errors.Is(context.Cause(g.ctx), errSilent) {
		return fmt.Errorf("cannot %s: no byte came from %s for %v", what, server, g.patience)
	}
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	if limit := limitError(""); errors.As(err, &limit) {
		return fmt.Errorf("cannot %s: %w", what, limit)
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return fmt.Errorf("cannot %s: %w", what, s.unreachable(err))
	}
	// Shorten the server's message, and remove parts of the credentials from it, which it may
	// repeat.
	said := fmt.Sprintf("%d %s", answer.StatusCode, strings.TrimSpace(answer.Code+": "+answer.Message))
	for _, private := range []string{s.access.ID, s.access.Secret, s.access.Session} {
		if private != "" {
			said = strings.ReplaceAll(said, private, "withheld")
		}
	}
	if len(said) > 200 {
		said = strings.ToValidUTF8(said[:200], "") + "…"
	}
	switch {
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("%s has no bucket %q; s3://BUCKET/PREFIX names it, and AWS_ENDPOINT_URL the server", server, s.bucket)
	case answer.Code == minio.NoSuchKey, answer.StatusCode == http.StatusNotFound && answer.Code != "":
		return fmt.Errorf("cannot %s: it is gone from %s since it was listed (%s)", what, server, said)
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("cannot %s: its content on %s has changed since it was listed", what, server)
	case answer.Code == "AuthorizationHeaderMalformed", answer.Code == "PermanentRedirect", answer.StatusCode == http.StatusMovedPermanently:
		return fmt.Errorf("cannot %s: bucket %q is not in region %s (%s); set AWS_REGION", what, s.bucket, s.access.Region, said)
	case answer.Code == "RequestTimeTooSkewed":
		return fmt.Errorf("cannot %s: this node's clock and that of %s differ too much (%s)", what, server, said)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		hint := "the key in AWS_ACCESS_KEY_ID is unknown there, does not go with AWS_SECRET_ACCESS_KEY, or may not do this"
		if s.access.ID == "" {
			hint = "there is no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where you run or submit"
		}
		return fmt.Errorf("cannot %s: %s refuses (%s); %s: %w", what, server, said, hint, errNotAllowed)
	case answer.Code == minio.EntityTooLarge:
		return fmt.Errorf("cannot %s: too large for %s (%s); lower workload.shard", what, server, said)
	case answer.StatusCode == http.StatusInsufficientStorage:
		return fmt.Errorf("cannot %s: %s has no room left (%s)", what, server, said)
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("cannot %s: %s failed %d times in a row (%s)", what, server, objectAttempts, said)
	}
	return fmt.Errorf("cannot %s: %s answers %s", what, server, said)
}

// unreachable returns an error that says why the server did not answer.
func (s *ObjectStore) unreachable(err error) error {
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	server := s.access.Endpoint
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of %s is for another host: %w", server, name)
	case errors.As(err, &untrusted), errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is not trusted; name your site's authority in SSL_CERT_FILE: %w", server, withoutURL(err))
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s speaks HTTP without TLS; AWS_ENDPOINT_URL is then http://HOST:PORT", server)
	}
	return fmt.Errorf("no answer from %s: %w", server, withoutURL(err))
}

// withoutURL returns an error without the request's URL, which the message already contains.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
