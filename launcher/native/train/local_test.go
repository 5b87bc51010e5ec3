package train

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

func singleBytes(numbers ...float32) (b []byte) {
	for _, v := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// A model that runs in this process gives the same answers as its server.
func TestLocal(t *testing.T) {
	m := &netspec.Trained{Model: "tiny", Classes: 2, Height: 2, Width: 2, Channels: 1}
	l := NewLocal(m, twoNumbers{})
	images := oip.Array{Port: oip.Port{Name: "images", Datatype: "FP32", Shape: []int{2, 2, 2, 1}}, Bytes: singleBytes(1, 2, 3, 4, 0.5, 0, 0, -8)}
	call, end, err := l.Prepare([][]oip.Array{{images}})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	want := []oip.Array{{Port: oip.Port{Name: "logits", Datatype: "FP32", Shape: []int{2, 2}}, Bytes: singleBytes(1, 10, 0.5, -7.5)}}
	for range 2 {
		got, err := call(0)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
	for name, inputs := range map[string][]oip.Array{
		"none":  nil,
		"two":   {images, images},
		"name":  {{Port: oip.Port{Name: "pixels", Datatype: "FP32"}}},
		"type":  {{Port: oip.Port{Name: "images", Datatype: "FP64"}}},
		"part":  {{Port: images.Port, Bytes: singleBytes(1, 2, 3)}},
		"bytes": {{Port: images.Port, Bytes: make([]byte, 17)}},
	} {
		if _, _, err := l.Prepare([][]oip.Array{inputs}); err == nil || !strings.Contains(err.Error(), "tiny has one input, images, of FP32 [-1 2 2 1]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
