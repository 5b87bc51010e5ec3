package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/worker"
)

// startModelServer starts a server in a separate process and returns its address.
func startModelServer(t *testing.T, arguments ...string) (*exec.Cmd, string) {
	t.Helper()
	server := exec.Command(os.Args[0], append([]string{"model-server", "--listen", "127.0.0.1:0"}, arguments...)...)
	server.Env = append(os.Environ(), "SCALEBENCH_TEST_AS_WORKER=1")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return server, strings.TrimSpace(url)
}

// request returns a request body with that many images of one value.
func request(t *testing.T, images int, value float32) []byte {
	t.Helper()
	data, err := json.Marshal(slices.Repeat([]float32{value}, images*32*32*3))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(oip.Request{Inputs: []oip.Tensor{{Name: "images", Shape: []int{images, 32, 32, 3}, Datatype: "FP32", Data: data}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// logits returns the logits in an answer.
func logits(t *testing.T, answer *http.Response) (list []float32) {
	t.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var response oip.Response
	if err == nil {
		err = json.Unmarshal(text, &response)
	}
	if err != nil || answer.StatusCode != 200 || len(response.Outputs) != 1 {
		t.Fatalf("status %d, %v: %s", answer.StatusCode, err, text)
	}
	if err := json.Unmarshal(response.Outputs[0].Data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The server answers with the model's output, and after SIGTERM it still answers a request that has half
// arrived.
func TestModelServer(t *testing.T) {
	server, url := startModelServer(t, "--model", "random:cnn", "--seed", "5", "--threads", "2")
	m, err := cpu.Untrained("cnn", 10, 32, 32, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cpu.NewClassifier(m, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const images = 10
	body, want := request(t, images, 0.5), c.Logits(slices.Repeat([]float32{0.5}, images*32*32*3))
	answer, err := http.Post(url+"v2/models/cnn/infer", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if got := logits(t, answer); !slices.Equal(got, want) {
		t.Errorf("logits %v, want %v", got, want)
	}

	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	half, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	// The server sends "100 Continue", which asks for the body, once it has started to process the request.
	fmt.Fprintf(half, "POST /v2/models/cnn/infer HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	in := bufio.NewReader(half)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for { // until the port is closed
		other, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		if err == nil {
			_ = other.Close()
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := half.Write(body); err != nil {
		t.Fatal(err)
	}
	answer, err = http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := logits(t, answer); !slices.Equal(got, want) {
		t.Errorf("after the signal: logits %v, want %v", got, want)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

func TestModelServerRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		arguments []string
		want      string
	}{
		"no model":     {nil, `"model" not set`},
		"unknown":      {[]string{"--model", "random:vgg"}, `--model "random:vgg" is not valid; valid: a file, or random:cnn, random:mlp, random:resnet20`},
		"no file":      {[]string{"--model", "none.safetensors"}, "--model: open none.safetensors: no such file"},
		"not a model":  {[]string{"--model", "modelserver_test.go"}, "--model modelserver_test.go: not a model that scalebench saved"},
		"a folder":     {[]string{"--model", "."}, "a folder, not a regular file"},
		"no threads":   {[]string{"--model", "random:cnn", "--threads", "-1"}, "--threads -1 is not valid; valid: 1 to 4096"},
		"no such host": {[]string{"--model", "random:cnn", "--listen", "192.0.2.1:0"}, "--listen: "},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(append([]string{"scalebench-worker", "model-server"}, tt.arguments...), &out, &errs); code == 0 || !strings.Contains(errs.String(), tt.want) {
				t.Errorf("exit code %d, %q; want %q", code, errs.String(), tt.want)
			}
		})
	}
}

// A model that a training saved gives the same results when served as in its evaluation.
func TestModelServerServesATrainedModel(t *testing.T) {
	dir := runFolder(t, 1)
	point, err := worker.LoadPoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	point.Workload.Train.SaveModel = true
	text, err := json.Marshal(point)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Point(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := supervisor(t, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	accuracy := -1.0
	for _, e := range events(t, dir, "rank") {
		if e.Evaluation != nil {
			accuracy = e.Evaluation.Accuracy
		}
	}
	source, err := dataset.OpenSynthetic(dataset.SyntheticOptions{TrainSamples: point.Data.TrainSamples, TestSamples: point.Data.TestSamples})
	if err != nil {
		t.Fatal(err)
	}
	data, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	var images []float32 // normalised, channels last
	for i := range data.Test.Len() {
		planes := data.Test.Image(i)
		for pixel := range dataset.Height * dataset.Width {
			for c := range dataset.Channels {
				images = append(images, (float32(planes[c*dataset.Height*dataset.Width+pixel])/255-dataset.Mean[c])/dataset.StdDev[c])
			}
		}
	}
	numbers, err := json.Marshal(images)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(oip.Request{Inputs: []oip.Tensor{{Name: "images", Shape: []int{data.Test.Len(), 32, 32, 3}, Datatype: "FP32", Data: numbers}}})
	if err != nil {
		t.Fatal(err)
	}
	_, url := startModelServer(t, "--model", dir.Model(), "--threads", "1")
	answer, err := http.Post(url+"v2/models/mlp/infer", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	list, right := logits(t, answer), 0
	for i, label := range data.Test.Labels {
		if own := list[i*10 : (i+1)*10]; slices.Index(own, slices.Max(own)) == int(label) {
			right++
		}
	}
	if got := float64(right) / float64(data.Test.Len()); got != accuracy || accuracy < 0 {
		t.Errorf("the server is right about %g of the images, the evaluation says %g", got, accuracy)
	}
}

// The load generator queries our server according to its metadata, and every answer is right. Requests that it
// cannot build are reported.
func TestLoadOfModelServer(t *testing.T) {
	_, url := startModelServer(t, "--model", "random:cnn", "--threads", "1")
	url = strings.TrimSuffix(url, "/")
	rows, _ := loaded(t, "url="+url, "model=cnn", "batch=[3]", "threads=[2]", "duration=2s", "timeout=1m")
	if len(rows) == 0 || rows[0]["errors"] != 0.0 || rows[0]["batch"] != 3.0 {
		t.Errorf("rows %v", rows)
	}
	for want, argument := range map[string][]string{
		"model vgg at " + url + " is not ready after": {"model=vgg", "startup=1s"},
		"workload.batch": {"model=cnn", "batch=[0]"},
		"the first answers: " + url + "/v2/models/cnn/inf": {"model=cnn", "expect=class 3"},
	} {
		var out, errs strings.Builder
		if code := run(append([]string{"scalebench-worker", "load", "url=" + url, "threads=[2]"}, argument...), &out, &errs); code == 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit code %d, %s; want %q", argument, code, &errs, want)
		}
	}
}
