//go:build !turbojpeg && !training

package main

import (
	"errors"

	"github.com/scalebench/scalebench/launcher/preprocess"
)

// openTurboJPEG returns an error that says what to do: this worker links no C library.
func openTurboJPEG() (preprocess.Decoder, string, error) {
	return nil, "", errors.New("this worker cannot load libjpeg-turbo; build one that can (make worker-turbojpeg) and name it in the site file (worker = …)")
}
