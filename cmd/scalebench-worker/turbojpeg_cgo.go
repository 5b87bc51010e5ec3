//go:build turbojpeg && !training

package main

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/launcher/preprocess/turbojpeg"
)

var turboJPEG = sync.OnceValues(func() (*turbojpeg.Library, error) { return turbojpeg.Open(os.Getenv) })

// openTurboJPEG creates a decoder and returns the file name of its library.
func openTurboJPEG() (d preprocess.Decoder, version string, err error) {
	l, err := turboJPEG()
	if err != nil {
		return nil, "", err
	}
	own, err := l.Decoder()
	if err != nil {
		return nil, "", err
	}
	file, err := filepath.EvalSymlinks(l.Path()) // libturbojpeg.so.0.2.0
	if err != nil {
		file = l.Path()
	}
	return turboDecoder{own}, "libjpeg-turbo (" + filepath.Base(file) + ")", nil
}

// turboDecoder adapts the decoder for the pipeline.
type turboDecoder struct{ *turbojpeg.Decoder }

func (d turboDecoder) Decode(file []byte, into *preprocess.Pixels) error {
	width, height, err := d.Size(file)
	if err == nil {
		err = preprocess.Grow(into, width, height)
	}
	if err != nil {
		return err
	}
	return d.Decoder.Decode(file, into.RGB, width, height)
}
