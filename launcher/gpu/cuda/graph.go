package cuda

// #include "table.h"
import "C"

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// A Graph is work that was captured from a stream once and is then launched as
// often as wanted, in one call, with the arguments that it was captured with.
type Graph struct {
	device *Device
	handle C.uintptr_t
}

// Capture makes a graph of what record puts into the stream, which does not run
// meanwhile. Other streams that wait for an event of this one are captured as well;
// this one has to wait for them before record returns. record must not allocate,
// copy Go's memory, load, or ask whether something has ended: CUDA refuses that, and
// the graph. Events that it records keep no time. Run the work once before: what
// libraries do at their first call cannot be captured.
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

// missingForGraphs lists the functions of graphs that the driver lacks.
func (d *Driver) missingForGraphs() []string {
	var names []string
	for _, s := range d.graphSymbols() {
		if *s.Address == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// Launch puts the whole graph into a stream.
func (g *Graph) Launch(s Stream) error {
	return g.device.driver.check("cuGraphLaunch", C.cuda_graph_launch(g.device.driver.table, g.handle, C.uintptr_t(s)))
}

// Destroy frees the graph; launches in progress continue to their end.
func (g *Graph) Destroy() error {
	return g.device.driver.check("cuGraphExecDestroy", C.cuda_exec_destroy(g.device.driver.table, g.handle))
}
