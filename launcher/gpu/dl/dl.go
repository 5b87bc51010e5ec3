// Package dl loads shared libraries at run time and fills tables of C function pointers. A binding
// that uses it can be built without the library and its headers, and a program with the binding
// starts even if the library is missing.
//
// If a required function is missing, the whole table is cleared, and the error names the library
// and the missing functions. Functions that only later versions have are optional and may stay
// null. An open library is never closed, because the libraries bound here run threads of their own,
// and unloading code under a running thread crashes.
package dl

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// dlerror's message belongs to the thread, and the next call overwrites it. So it is copied in the
// same cgo call.
static void *open_library(const char *path, char **complaint) {
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		const char *said = dlerror();
		*complaint = strdup(said != NULL ? said : "dlopen failed and did not say why");
	}
	return handle;
}

// dlsym also returns null for an existing symbol with the value null; only dlerror could tell. A
// null function is useless in both cases.
static void *symbol(void *handle, const char *name) { return dlsym(handle, name); }

static char *path_of(void *address) {
	Dl_info info;
	if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
		return NULL;
	}
	return strdup(info.dli_fname);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// A Symbol is one entry of a table.
type Symbol struct {
	Name     string
	Address  *unsafe.Pointer // where to store the function's address: C memory, or pinned
	Optional bool            // stays null if the library lacks the function
}

// A Library is an open shared library.
type Library struct {
	handle unsafe.Pointer
	path   string
}

// Path returns the file that the linker found or, if that is unknown, the requested name.
func (l *Library) Path() string { return l.path }

// A MissingError reports a library that exists but lacks required functions.
type MissingError struct {
	Path    string   // the library's file
	Symbols []string // required functions that it lacks
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s has no %s", e.Path, strings.Join(e.Symbols, ", "))
}

// Open opens the first candidate that has all required symbols, and fills the table. The dynamic
// linker searches candidates without a slash (LD_LIBRARY_PATH, ld.so.cache, the system's folders).
// what is the library's name for errors. The error has one reason for each candidate; errors.As
// finds a *MissingError if a library lacked symbols.
func Open(what string, candidates []string, table []Symbol) (*Library, error) {
	var reasons []error
	for _, path := range candidates {
		l, err := open(path, table)
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, err)
	}
	for _, s := range table {
		*s.Address = nil
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%s: no library to look for", what)
	}
	return nil, fmt.Errorf("%s cannot be loaded: %w", what, joined(reasons))
}

// reasonsError joins several reasons on one line.
type reasonsError []error

func joined(reasons []error) error {
	if len(reasons) == 1 {
		return reasons[0]
	}
	return reasonsError(reasons)
}

func (e reasonsError) Error() string {
	words := make([]string, len(e))
	for i, r := range e {
		words[i] = r.Error()
	}
	return strings.Join(words, "; ")
}

func (e reasonsError) Unwrap() []error { return e }

func open(path string, table []Symbol) (*Library, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("%q is not a library name", path)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var complaint *C.char
	l := &Library{handle: C.open_library(name, &complaint), path: path}
	if l.handle == nil {
		defer C.free(unsafe.Pointer(complaint))
		said := C.GoString(complaint)
		if !strings.Contains(said, path) {
			said = path + ": " + said
		}
		return nil, errors.New(said)
	}
	var missing []string
	named := false
	for _, s := range table {
		*s.Address = l.symbol(s.Name)
		if *s.Address == nil {
			if !s.Optional {
				missing = append(missing, s.Name)
			}
			continue
		}
		if !named {
			l.name(*s.Address)
			named = true
		}
	}
	if len(missing) > 0 {
		for _, s := range table {
			*s.Address = nil
		}
		C.dlclose(l.handle)
		return nil, &MissingError{Path: l.path, Symbols: missing}
	}
	return l, nil
}

func (l *Library) symbol(name string) unsafe.Pointer {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.symbol(l.handle, s)
}

// name replaces the requested name by the path of the file that contains the function.
func (l *Library) name(function unsafe.Pointer) {
	if path := C.path_of(function); path != nil {
		l.path = C.GoString(path)
		C.free(unsafe.Pointer(path))
	}
}
