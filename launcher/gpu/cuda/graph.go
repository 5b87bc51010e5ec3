package cuda

// #include "table.h"
import "C"

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// A Graph is work that was captured from a stream. One call launches all of it, any
// number of times, with the arguments with which it was captured.
type Graph struct {
	device *Device
	handle C.uintptr_t
}

// Capture returns a graph of the work that record adds to the stream. The work is
// not run. Other streams that wait for an event of this stream are captured as well;
// this stream must wait for them before record returns. record must not allocate
// memory, copy Go's memory, load modules, or query whether work has ended: CUDA then
// returns an error instead of a graph. Events that are recorded in a graph have no
// time. Run the work once before capturing it, because what libraries do at their
// first call cannot be captured.
func (v *Device) Capture(s Stream, record func() error) (*Graph, error) {
	if missing := v.driver.missingForGraphs(); len(missing) > 0 {
		return nil, fmt.Errorf("CUDA graphs need a driver for CUDA 11.4 or later; this one is for %s: %w", v.driver.Version(), &dl.MissingError{Path: v.driver.Path(), Symbols: missing})
	}
	if err := v.driver.check("cuStreamBeginCapture", C.cuda_begin_capture(v.driver.table, C.uintptr_t(s))); err != nil {
		return nil, err
	}
	err := record()
	var captured C.uintptr_t
	err = errors.Join(err, v.driver.check("cuStreamEndCapture", C.cuda_end_capture(v.driver.table, C.uintptr_t(s), &captured)))
	g := &Graph{device: v}
	if err == nil {
		err = v.driver.check("cuGraphInstantiateWithFlags", C.cuda_instantiate(v.driver.table, &g.handle, captured))
	}
	if captured != 0 {
		err = errors.Join(err, v.driver.check("cuGraphDestroy", C.cuda_graph_destroy(v.driver.table, captured)))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// missingForGraphs returns the names of the functions for graphs that the driver
// lacks.
func (d *Driver) missingForGraphs() []string {
	var names []string
	for _, s := range d.graphSymbols() {
		if *s.Address == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// Launch adds the work of the whole graph to a stream.
func (g *Graph) Launch(s Stream) error {
	return g.device.driver.check("cuGraphLaunch", C.cuda_graph_launch(g.device.driver.table, g.handle, C.uintptr_t(s)))
}

// Destroy frees the graph; launches in progress continue to their end.
func (g *Graph) Destroy() error {
	return g.device.driver.check("cuGraphExecDestroy", C.cuda_exec_destroy(g.device.driver.table, g.handle))
}
