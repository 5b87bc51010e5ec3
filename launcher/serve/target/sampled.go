package target

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// sampleShape returns the shape of an input in a request of samples from a file.
func (in Inputs) sampleShape(port oip.Port) ([]int, error) {
	a, ok := in.Samples.Inputs[port.Name]
	if !ok {
		return nil, fmt.Errorf("workload.inputs has %s, but not the model's input %s; name a file for each input", strings.Join(slices.Sorted(maps.Keys(in.Samples.Inputs)), ", "), port.Name)
	}
	shape := slices.Clone(a.Shape[1:])
	if len(port.Shape) > 0 && (port.Shape[0] == -1 || port.Shape[0] == in.Batch) {
		shape = append([]int{in.Batch}, shape...)
	} else if in.Batch > 1 {
		return nil, fmt.Errorf("workload.batch: %d samples in a request, but the model's input %s is %s %v, which has no such batch", in.Batch, port.Name, port.Datatype, port.Shape)
	}
	fits := len(shape) == len(port.Shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = port.Shape[i] == -1 || shape[i] == port.Shape[i]
	}
	if !fits || a.Datatype != port.Datatype {
		return nil, fmt.Errorf("workload.inputs: %s: %s holds samples of %s %v, so a request of %d would be %s %v; the model's input is %s %v", port.Name, a.File, a.Datatype, a.Shape[1:], in.Batch, a.Datatype, shape, port.Datatype, port.Shape)
	}
	return shape, nil
}

// sampled builds as many requests as the samples fill, with inputs of the given shapes. Samples left over are
// not sent.
func (m *Model) sampled(in Inputs, shapes []drawn) (requests [][]drawn, wants [][]want, err error) {
	n := 0
	for name, a := range in.Samples.Inputs {
		if !slices.ContainsFunc(m.Inputs, func(p oip.Port) bool { return p.Name == name }) {
			return nil, nil, fmt.Errorf("workload.inputs: %s: model %s has no such input; it has %s", name, m.Name, names(m.Inputs))
		}
		n = a.Samples() / in.Batch
	}
	for i := range n {
		var inputs []drawn
		for _, d := range shapes {
			d.raw = in.Samples.Inputs[d.Name].Slice(i*in.Batch, in.Batch)
			inputs = append(inputs, d)
		}
		requests = append(requests, inputs)
		if len(in.Samples.Outputs) == 0 {
			continue
		}
		var list []want
		for _, name := range slices.Sorted(maps.Keys(in.Samples.Outputs)) {
			w, err := newWant(name, in.Samples.Outputs[name], i*in.Batch, in.Batch)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, w)
		}
		wants = append(wants, list)
	}
	return requests, wants, nil
}

func names(ports []oip.Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

// A want is the expected output of a request: its numbers, or, if it has one dimension less, the index of the
// largest number along the output's last dimension.
type want struct {
	output
	file string
}

func newWant(name string, a oip.SampleFile, first, n int) (want, error) {
	tensor := oip.Tensor{Name: name, Datatype: a.Datatype, Shape: append([]int{n}, a.Shape[1:]...)}
	o, err := newOutput(tensor, a.Slice(first, n), &share{of: &budget{most: mostParsed}, most: mostParsed})
	if err != nil {
		return want{}, fmt.Errorf("workload.outputs: %s: %s, from sample %d on: %w", name, a.File, first, err)
	}
	return want{o, a.File}, nil
}

// hold returns an error if an answer is not the expected one. A differentError means that the numbers differ;
// other errors mean that the files do not fit.
func (w want) hold(outputs []output, tolerance float64) error {
	i := slices.IndexFunc(outputs, func(o output) bool { return o.Name == w.Name })
	if i < 0 {
		var ports []oip.Port
		for _, o := range outputs {
			ports = append(ports, o.Port)
		}
		return fmt.Errorf("workload.outputs: %s: the answer has no such output; it has %s", w.Name, names(ports))
	}
	o := outputs[i]
	last := len(o.Shape) - 1
	switch {
	case same(o.Shape, w.Shape) && o.floating() == w.floating() && o.integer() == w.integer() && o.Datatype != "BYTES":
		return w.compare(o, tolerance)
	case last >= 0 && !same(o.Shape, w.Shape) && same(o.Shape[:last], w.Shape) && w.integer():
		return w.classes(o)
	}
	wanted := fmt.Sprintf("floating-point numbers of %v", o.Shape)
	if !o.floating() {
		wanted = fmt.Sprintf("%s %v", o.Datatype, o.Shape)
	}
	if last > 0 && o.Datatype != "BYTES" {
		wanted += fmt.Sprintf(", or whole numbers of %v, the classes", o.Shape[:last])
	}
	return fmt.Errorf("workload.outputs: %s: %s has %s %v for this request; want %s", w.Name, w.file, w.Datatype, w.Shape, wanted)
}

// same reports whether two shapes are equal. A request of one sample may lack the batch dimension.
func same(shape, known []int) bool {
	return slices.Equal(shape, known) || known[0] == 1 && slices.Equal(shape, known[1:])
}

// integer reports whether the elements are integers.
func (o output) integer() bool { return strings.Contains(o.Datatype, "INT") }

// classes compares the index of the largest number along the last dimension (the first of equal ones) with the
// expected index.
func (w want) classes(o output) error {
	values := o.numbers
	for _, text := range o.exact {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("workload.outputs: %s: the output is %s, which has no largest element", w.Name, o.Datatype)
		}
		values = append(values, x)
	}
	row := 0
	for list := range slices.Chunk(values, o.Shape[len(o.Shape)-1]) {
		best := 0
		for i, v := range list {
			if v > list[best] {
				best = i
			}
		}
		if got := strconv.Itoa(best); got != w.exact[row] {
			return different("sample %d of the request: class %s of output %s is the largest; %s has %s", row+1, got, o.Name, w.file, w.exact[row])
		}
		row++
	}
	return nil
}

// compare compares the numbers with the expected ones.
func (w want) compare(o output, tolerance float64) error {
	return compareNumbers(o, w.output, tolerance, w.file)
}
