// Package turbojpeg decodes JPEG with libjpeg-turbo's C library, which it loads at run time. It is
// independent of scalebench. It uses only functions that TurboJPEG has had from libjpeg-turbo 1.4
// (2015) up to 3.x; it was tested with 2.1.5.
package turbojpeg

/*
#include <stdlib.h>

// The part of turbojpeg.h that is used.
typedef void *tjhandle;
#define TJPF_RGB 0

struct turbojpeg {
	tjhandle (*tjInitDecompress)(void);
	int (*tjDecompressHeader3)(tjhandle, const unsigned char *, unsigned long, int *, int *, int *, int *);
	int (*tjDecompress2)(tjhandle, const unsigned char *, unsigned long, unsigned char *, int, int, int, int, int);
	int (*tjDestroy)(tjhandle);
	char *(*tjGetErrorStr)(void);
	char *(*tjGetErrorStr2)(tjhandle);     // since 2.0; its message belongs to the handle
	int (*tjGetErrorCode)(tjhandle);       // since 2.0: 0 is a warning
};

static tjhandle tj_init(struct turbojpeg *t) { return t->tjInitDecompress(); }
static void tj_destroy(struct turbojpeg *t, tjhandle h) { t->tjDestroy(h); }

static int tj_size(struct turbojpeg *t, tjhandle h, const unsigned char *file, unsigned long length, int *width, int *height) {
	int sampling = 0, colours = 0;
	return t->tjDecompressHeader3(h, file, length, width, height, &sampling, &colours);
}

static int tj_decode(struct turbojpeg *t, tjhandle h, const unsigned char *file, unsigned long length, unsigned char *rgb, int width, int height) {
	return t->tjDecompress2(h, file, length, rgb, width, 3 * width, height, TJPF_RGB, 0);
}

static int tj_warned(struct turbojpeg *t, tjhandle h) { return t->tjGetErrorCode != NULL && t->tjGetErrorCode(h) == 0; }
static char *tj_message(struct turbojpeg *t, tjhandle h) {
	return t->tjGetErrorStr2 != NULL ? t->tjGetErrorStr2(h) : t->tjGetErrorStr();
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// A Library is the loaded TurboJPEG library.
type Library struct {
	table   *C.struct_turbojpeg
	library *dl.Library
}

// variable names the environment variable with the library's path, for a library outside the
// system's folders.
const variable = "SCALEBENCH_TURBOJPEG"

// Open loads the library from the file that the environment variable SCALEBENCH_TURBOJPEG names,
// or else the system's.
func Open(getenv func(string) string) (*Library, error) {
	candidates := []string{"libturbojpeg.so.0", "libturbojpeg.so"}
	if own := getenv(variable); own != "" {
		candidates = []string{own}
	}
	// Never freed: a Library lives as long as the process.
	l := &Library{table: (*C.struct_turbojpeg)(C.calloc(1, C.sizeof_struct_turbojpeg))}
	at := func(function unsafe.Pointer) *unsafe.Pointer { return (*unsafe.Pointer)(function) }
	symbols := []dl.Symbol{
		{Name: "tjInitDecompress", Address: at(unsafe.Pointer(&l.table.tjInitDecompress))},
		{Name: "tjDecompressHeader3", Address: at(unsafe.Pointer(&l.table.tjDecompressHeader3))},
		{Name: "tjDecompress2", Address: at(unsafe.Pointer(&l.table.tjDecompress2))},
		{Name: "tjDestroy", Address: at(unsafe.Pointer(&l.table.tjDestroy))},
		{Name: "tjGetErrorStr", Address: at(unsafe.Pointer(&l.table.tjGetErrorStr))},
		{Name: "tjGetErrorStr2", Address: at(unsafe.Pointer(&l.table.tjGetErrorStr2)), Optional: true},
		{Name: "tjGetErrorCode", Address: at(unsafe.Pointer(&l.table.tjGetErrorCode)), Optional: true},
	}
	var err error
	if l.library, err = dl.Open("libjpeg-turbo", candidates, symbols); err != nil {
		return nil, fmt.Errorf("%w (Debian's package libturbojpeg0 has it; %s names its file elsewhere)", err, variable)
	}
	return l, nil
}

// Path returns the path of the library's file, as the dynamic linker found it.
func (l *Library) Path() string { return l.library.Path() }

// A Decoder decodes images. Each thread needs its own.
type Decoder struct {
	library *Library
	handle  C.tjhandle
}

// Decoder returns a new decoder.
func (l *Library) Decoder() (*Decoder, error) {
	d := &Decoder{l, C.tj_init(l.table)}
	if d.handle == nil {
		return nil, errors.New("libjpeg-turbo has no memory for a decoder")
	}
	return d, nil
}

// Close frees the decoder's memory.
func (d *Decoder) Close() { C.tj_destroy(d.library.table, d.handle) }

// Size returns an image's dimensions without decoding it.
func (d *Decoder) Size(file []byte) (width, height int, err error) {
	if len(file) == 0 {
		return 0, 0, errors.New("an empty file")
	}
	var w, h C.int
	if C.tj_size(d.library.table, d.handle, (*C.uchar)(&file[0]), C.ulong(len(file)), &w, &h) != 0 {
		return 0, 0, d.failure()
	}
	return int(w), int(h), nil
}

// Decode stores an image in rgb, row by row, with red, green and blue of each pixel. width and
// height must be those that Size returned. Damage within the image is an error.
func (d *Decoder) Decode(file, rgb []byte, width, height int) error {
	if len(rgb) < 3*width*height || width < 1 || height < 1 || len(file) == 0 {
		return fmt.Errorf("%d bytes for %d × %d pixels", len(rgb), width, height)
	}
	if C.tj_decode(d.library.table, d.handle, (*C.uchar)(&file[0]), C.ulong(len(file)), (*C.uchar)(&rgb[0]), C.int(width), C.int(height)) != 0 {
		err := d.failure()
		if C.tj_warned(d.library.table, d.handle) != 0 && strings.Contains(err.Error(), harmless) {
			return nil
		}
		return err
	}
	return nil
}

// harmless is libjpeg-turbo's warning that it skipped bytes between two segments. The image is
// complete; ImageNet has such files.
const harmless = "extraneous bytes before marker"

func (d *Decoder) failure() error {
	return errors.New(C.GoString(C.tj_message(d.library.table, d.handle)))
}
