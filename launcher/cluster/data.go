package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/serve/prompts"
	"github.com/scalebench/scalebench/launcher/study"
)

// data checks the folder of a data set that scalebench's own programs read.
func (c *checker) data(p study.Point) {
	files := p.Data.Files()
	if p.Data.Kind != "cifar10" && files == nil || p.Framework == "command" {
		return
	}
	info, err := os.Stat(p.Data.Path)
	path, how := "data.path", " (scalebench data synth DIR makes some)"
	if files != nil {
		how = fmt.Sprintf(" as %s (scalebench data %s makes them)", strings.Join(files, " and "), p.Data.Kind)
	}
	if slices.Contains(c.study.Swept(), path) {
		path = "sweep.data.path"
	}
	switch {
	case err != nil:
		c.add(c.study.Problem(path, fmt.Sprintf("%s does not exist on %s; put the data there%s, or correct the path%s", p.Data.Path, c.host, how, elsewhere)))
	case !info.IsDir():
		c.add(c.study.Problem(path, p.Data.Path+" is a file; name the folder that holds the data"))
	default:
		for _, name := range files {
			if _, err := os.Stat(filepath.Join(p.Data.Path, name)); err != nil {
				c.add(c.study.Problem(path, fmt.Sprintf("%s has no %s on %s; put it there%s, or correct the path%s", p.Data.Path, name, c.host, how, elsewhere)))
				return
			}
		}
	}
}

// model checks the file of a served model.
func (c *checker) model(p study.Point) {
	file := p.ModelFile()
	if file == "" {
		return
	}
	path := "workload.model"
	if slices.Contains(c.study.Swept(), path) {
		path = "sweep.model"
	}
	switch info, err := os.Stat(file); {
	case err != nil:
		c.add(c.study.Problem(path, fmt.Sprintf("%s does not exist on %s; relative paths start from the study file's folder%s", file, c.host, elsewhere)))
	case !info.Mode().IsRegular():
		c.add(c.study.Problem(path, file+" is not a file"))
	}
}

// samples checks the files with requests to a model and the expected answers.
func (c *checker) samples(p study.Point) {
	w := p.Workload.Serve
	if w.Inputs == "" {
		return
	}
	if err, ok := errors.AsType[*oip.SampleError](oip.CheckSamples(w.Inputs.Of(), w.Outputs.Of(), w.Batch)); ok {
		text := err.Message()
		if errors.Is(err, fs.ErrNotExist) {
			text += "; relative paths start from the study file's folder" + elsewhere
		}
		c.add(c.study.Problem(err.Key, text))
	}
}

// language checks the payload and the prompts of requests to a language model.
func (c *checker) language(p study.Point) {
	w := p.Workload.Serve
	problem := func(path, file string, err error) {
		text := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			text = fmt.Sprintf("%s does not exist on %s; relative paths start from the study file's folder%s", file, c.host, elsewhere)
		}
		c.add(c.study.Problem(path, text))
	}
	if w.Payload != "" {
		switch wrong, err := study.CheckPayload(w.Payload, w.Stream); {
		case err != nil:
			problem("workload.payload", w.Payload, err)
		case wrong != "":
			c.add(c.study.Problem("workload.payload", wrong))
		case w.Prompts != "":
			if err := prompts.CheckTemplate(w.Payload); err != nil {
				problem("workload.payload", w.Payload, err)
			}
		}
	}
	if w.Prompts != "" {
		if err := prompts.Check(w.Prompts); err != nil {
			problem("workload.prompts", w.Prompts.Path(), err)
		}
	}
}
