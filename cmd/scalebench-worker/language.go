//go:build !training

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/prompts"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// prompts makes h send the study's prompts, in the template body or, without one, in one for the model.
func (r *serving) prompts(h *target.HTTP, body []byte, s *loadtest.Service) error {
	w := r.point.Workload.Serve
	if body == nil {
		model, ignoreEOS := w.Model, false
		if r.framework.Language {
			model, ignoreEOS = framework.ServedModel, w.Prompts.Of().Input.Kind != ""
		}
		body = prompts.Template(model, w.Path, w.Stream, ignoreEOS)
	}
	source, err := prompts.Open(w.Prompts, body, uint64(r.point.Seed))
	if err != nil {
		return err
	}
	h.Prompts, h.Bodies = source, nil
	err = source.Calibrate(func(body []byte) (int, error) {
		one := h.Like(h.URLs[0])
		one.Bodies, one.Private, one.Token = [][]byte{body}, h.Private, h.Token
		return one.InputTokens(time.Now().Add(time.Duration(w.Startup)))
	})
	if err != nil {
		return fmt.Errorf("the first request failed: %w", err)
	}
	s.Turns, s.Trace = source.Turns(), source.Times()
	s.Input, s.Output = source.Lengths()
	return nil
}

// privateHeaders returns the headers of the study, with the secrets that they refer to.
func privateHeaders(w study.Serve) (map[string]string, error) {
	headers := map[string]string{}
	for name, value := range w.Headers.Of() {
		secret, err := resolve(value)
		if err != nil {
			return nil, fmt.Errorf("workload.headers: %s: %w", name, err)
		}
		headers[name] = secret
	}
	if w.APIKey != "" {
		key, err := resolve(w.APIKey)
		if err != nil {
			return nil, fmt.Errorf("workload.api_key: %w", err)
		}
		headers["Authorization"] = "Bearer " + key
	}
	return headers, nil
}

// resolve returns a header's value: the text itself, or what is in the variable or file that it names.
func resolve(value string) (string, error) {
	secret := value
	if name, ok := strings.CutPrefix(value, study.FromVariable); ok {
		if secret = strings.TrimSpace(os.Getenv(name)); secret == "" {
			return "", fmt.Errorf("the environment variable %s is not set on the node of the load generator; set it where you run or submit, or use \"file:/PATH\"", name)
		}
	}
	if path, ok := strings.CutPrefix(value, study.FromFile); ok {
		text, err := sharedfs.ReadFile(path, 64<<10)
		if err != nil {
			return "", err
		}
		if secret = strings.TrimSpace(string(text)); secret == "" {
			return "", fmt.Errorf("%s is empty", path)
		}
	}
	if strings.ContainsAny(secret, "\r\n") {
		return "", errors.New("it has several lines, which a header cannot hold")
	}
	return secret, nil
}

// requests creates the file with a load's requests.
func (r *serving) requests(load, format string) (io.WriteCloser, error) {
	return create(r.program.run.Requests(load, format, r.world.Restart))
}

// create creates a new file and its folder.
func create(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// scraper returns a function that reads the servers' metrics, and keeps their text under a name.
func (r *serving) scraper(servers []string, path string, headers map[string]string) func(ctx context.Context, name string) ([]loadtest.ServerMetrics, error) {
	return func(ctx context.Context, name string) ([]loadtest.ServerMetrics, error) {
		var list []loadtest.ServerMetrics
		for i, server := range servers {
			values, text, err := target.Scrape(ctx, server+path, headers)
			if err != nil {
				return nil, err
			}
			list = append(list, values)
			if name == "" {
				continue
			}
			file, err := create(r.program.run.ServerMetrics(fmt.Sprintf("%s-replica-%d", name, i), r.world.Restart))
			if err == nil {
				_, err = file.Write(text)
				err = errors.Join(err, file.Close())
			}
			if err != nil {
				return nil, err
			}
		}
		return list, nil
	}
}
