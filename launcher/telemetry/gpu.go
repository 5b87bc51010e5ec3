package telemetry

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

var card = regexp.MustCompile(`^card\d+$`)

// gpus reads AMD's GPUs from the driver's files. It covers all GPUs of the node, including those that other
// jobs use.
func (n *node) gpus() []Reading {
	const drm = "sys/class/drm"
	var list []Reading
	for _, name := range n.names(drm) {
		if !card.MatchString(name) || len(list) > 16*mostDevices {
			continue
		}
		device := path.Join(drm, name, "device")
		if vendor, err := n.text(device, "vendor"); err != nil || strings.TrimSpace(vendor) != "0x1002" {
			continue
		}
		list = append(list, Gauge(metrics.TelemetryPresent, name, amdSource, "", 1, 1))
		for _, sensor := range n.names(device, "hwmon") {
			list = append(list, n.amdSensor(name, path.Join(device, "hwmon", sensor))...)
		}
		list = append(list, n.amdDevice(name, device)...)
	}
	return list
}

// amdSource names the origin of the readings of AMD's GPUs.
const amdSource = "amdgpu, /sys/class/drm, of the node"

// amdSensor reads a card's power, temperature and clock.
func (n *node) amdSensor(name, sensor string) (list []Reading) {
	for _, file := range []string{"power1_average", "power1_input"} { // newer cards only have the second
		if v, err := n.integer(sensor, file); err == nil {
			list = append(list, Gauge(metrics.TelemetryPower, name, amdSource, "W", 1e-3, v/1000))
			break
		}
	}
	if v, err := n.integer(sensor, "temp1_input"); err == nil && v < 1e6 {
		list = append(list, Gauge(metrics.TelemetryTemperature, name, amdSource, "°C", 1e-3, v))
	}
	if v, err := n.integer(sensor, "freq1_input"); err == nil {
		list = append(list, Gauge(metrics.TelemetryDeviceClock, name, amdSource, "Hz", 1e6, v/1e6))
	}
	return list
}

// amdDevice reads how busy a card is, its memory, and its memory's errors.
func (n *node) amdDevice(name, device string) (list []Reading) {
	if v, err := n.integer(device, "gpu_busy_percent"); err == nil && v <= 100 {
		list = append(list, Gauge(metrics.TelemetryBusy, name, amdSource, "", 1e-2, v))
	}
	if v, err := n.integer(device, "mem_info_vram_used"); err == nil {
		list = append(list, Gauge(metrics.TelemetryDeviceMemory, name, amdSource, "B", 1, v))
	}
	text, err := n.text(device, "ras/umc_err_count")
	if err != nil {
		return list
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		kind := map[string]string{"ue": "uncorrected", "ce": "corrected"}[key]
		if v, err := number(strings.TrimSpace(value)); err == nil && kind != "" {
			list = append(list, Counter(metrics.TelemetryErrors, name+": "+kind, amdSource, "", 1, v))
		}
	}
	return list
}

const nvidiaDriver = "proc/driver/nvidia/gpus"

// nvidia reads NVIDIA's GPUs, which only the worker's GPU variant can. Otherwise it reports each GPU that the
// driver lists as present, because without the GPUs' energy the total is not the node's.
func (n *node) nvidia() []Reading {
	why := "this worker does not read NVIDIA's GPUs; make worker-gpu builds one that does"
	if n.outside != nil {
		a, ok := n.outside.take()
		if ok && len(a.list) > 0 {
			n.lacks(a.missing)
			return a.list
		}
		why = fmt.Sprintf("the GPUs' library did not answer within %v", answerWithin)
		if ok {
			why = a.missing[metrics.TelemetryPresent]
		}
	}
	var list []Reading
	for i := range min(len(n.names(nvidiaDriver)), mostDevices) {
		list = append(list, Gauge(metrics.TelemetryPresent, fmt.Sprintf("GPU %d", i), "/"+nvidiaDriver+", of the node", "", 1, 1))
	}
	if len(list) > 0 || n.outside != nil {
		n.lacks(map[string]string{metrics.TelemetryPower: why, metrics.TelemetryBusy: why})
	}
	return list
}

// lacks records several reasons.
func (n *node) lacks(missing map[string]string) {
	for name, why := range missing {
		if n.missing[name] == "" {
			n.missing[name] = why
		}
	}
}
