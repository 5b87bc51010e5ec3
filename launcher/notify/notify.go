// Package notify sends messages about a study, by a command or a webhook, and records in the study's folder which
// were sent, so that each is sent once.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/redact"
)

// A Message is what is sent.
type Message struct{ Subject, Text string }

// patience is how long a command or a webhook may take.
const patience = 30 * time.Second

// send sends a message by all means that a table names.
func send(ctx context.Context, to study.Notify, m Message) error {
	m.Subject, m.Text = clean.Line(redact.Text(m.Subject)), clean.Lines(redact.Text(m.Text))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var wrong []error
	if len(to.Command) > 0 {
		wrong = append(wrong, run(ctx, to.Command, m))
	}
	if to.Webhook != "" {
		wrong = append(wrong, post(ctx, to.Webhook, m))
	}
	return errors.Join(wrong...)
}

// run starts a command, without a shell, with the text as its standard input.
func run(ctx context.Context, command []string, m Message) error {
	if strings.Contains(command[0], "/") {
		if err := trust.Named(command[0]); err != nil {
			return err
		}
	}
	arguments := make([]string, len(command)-1)
	for i, argument := range command[1:] {
		arguments[i] = strings.ReplaceAll(argument, "{subject}", m.Subject)
	}
	c := exec.CommandContext(ctx, command[0], arguments...)
	c.Stdin, c.WaitDelay = strings.NewReader(m.Text+"\n"), time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out[:min(len(out), 200)]))
		return fmt.Errorf("notify.command: %s: %w %s", command[0], err, clean.Line(said))
	}
	return nil
}

// maxURL is the largest file that can hold a URL.
const maxURL = 4 << 10

// urlOf returns the URL of a webhook.
func urlOf(webhook string) (string, error) {
	if name, ok := strings.CutPrefix(webhook, "$"); ok {
		text := os.Getenv(name)
		if text == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return text, nil
	}
	text, err := trust.ReadSecret(webhook, maxURL)
	var open *trust.Error
	if errors.As(err, &open) {
		err = &trust.Error{Path: open.Path, Reason: open.Reason, Remedy: "It holds a secret: `chmod 600` it"}
	}
	return strings.TrimSpace(string(text)), err
}

// post sends a message as JSON that Slack, Mattermost and Teams accept. No error contains the URL.
func post(ctx context.Context, webhook string, m Message) error {
	address, err := urlOf(webhook)
	if err != nil {
		return fmt.Errorf("notify.webhook: %w", err)
	}
	body, err := json.Marshal(map[string]string{"text": m.Subject + "\n\n" + m.Text})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil || request.URL.Host == "" {
		return fmt.Errorf("notify.webhook: %s has no valid URL", webhook)
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed):
		return fmt.Errorf("notify.webhook: %w", failed.Err)
	case err != nil:
		return errors.New("notify.webhook: the request failed")
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("notify.webhook: the server answers %s", answer.Status)
	}
	return nil
}
