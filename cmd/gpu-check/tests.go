package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// onGPU are the packages whose tests of results run on a GPU where these variables are
// set (package double); without them they use the double.
var onGPU = []string{"./launcher/gpu/cuda", "./launcher/gpu/cublas", "./launcher/native/train/gpu/kernel", "./launcher/native/train/gpu"}

// tests has them run: kernels and products against references on the host, and
// trainings against the CPU engine.
func (c *checker) tests(ctx context.Context, s *step) error {
	return c.test(ctx, s, nil, nil, onGPU)
}

// steps has three steps of this engine and of PyTorch compared, both on the GPU.
func (c *checker) steps(ctx context.Context, s *step) error {
	return c.test(ctx, s, []string{"SCALEBENCH_TEST_PYTHON=" + c.Python}, []string{"-tags", "python", "-run", "TestStepsAsPyTorch"}, onGPU[len(onGPU)-1:])
}

func (c *checker) test(ctx context.Context, s *step, environment, flags, packages []string) error {
	if c.Double {
		s.LeftOut = "with the double it is part of `make test`"
		return nil
	}
	args := slices.Concat([]string{"test", "-count", "1", "-v", "-timeout", "50m"}, flags, packages)
	out, err := c.start(ctx, append(environment, "SCALEBENCH_TEST_GPU=1"), "go", args...)
	lines, failed := tested(string(out))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(failed, "\n"))
	}
	if len(lines) < len(packages) {
		return fmt.Errorf("go test says that %s passed, of %d", number.Count(len(lines), "package"), len(packages))
	}
	s.Found = lines
	return nil
}

// tested is what go test -v says: of each package that passed how many tests did, of
// each training how far it ended from the other side's, and the tests that failed, with
// what they said.
func tested(out string) (found, failed []string) {
	passed, name, said := 0, "", map[string][]string{}
	var trainings []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case len(words) > 2 && words[0] == "===": // RUN, and what goes on after a pause
			name = words[2]
		case len(words) > 2 && words[0] == "---":
			switch words[1] {
			case "PASS:":
				passed++
			case "FAIL:":
				list := said[words[2]]
				failed = append(failed, line)
				failed = append(failed, list[max(0, len(list)-5):]...)
			}
		case words[0] == "ok" && len(words) > 1:
			found = append(found, fmt.Sprintf("- `%s`: %d tests passed", strings.TrimPrefix(words[1], "github.com/scalebench/scalebench/"), passed))
			found = append(found, trainings...)
			passed, trainings = 0, nil
		case words[0] == "FAIL":
			passed, trainings = 0, nil
		default:
			said[name] = append(said[name], line)
			if _, text, ok := strings.Cut(line, ": parameters that training moved"); ok {
				_, which, _ := strings.Cut(name, "/")
				trainings = append(trainings, fmt.Sprintf("  - %s: parameters that training moved%s", strings.ReplaceAll(which, "_", " "), text))
			}
		}
	}
	return found, failed
}
