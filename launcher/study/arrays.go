package study

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// Shapes are the sizes of the model's inputs, without the batch dimension, as one string:
// "x:3,48,192", or "" for no inputs. In a study file they are a table: { x = [3, 48, 192]
// }.
type Shapes string

// Of returns the sizes of each input, by the input's name.
func (s Shapes) Of() map[string][]int {
	m := map[string][]int{}
	for word := range strings.FieldsSeq(string(s)) {
		colon := strings.LastIndexByte(word, ':')
		for text := range strings.SplitSeq(word[colon+1:], ",") {
			size, _ := strconv.Atoi(text) // no error: UnmarshalTOML has checked the number
			m[word[:colon]] = append(m[word[:colon]], size)
		}
	}
	return m
}

// UnmarshalTOML reads the table.
func (s *Shapes) UnmarshalTOML(v any) error {
	t, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("want a table, like { x = [3, 224, 224] }, got %.60s", fmt.Sprint(v))
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
			return fmt.Errorf("%q cannot name an input; want a name without white space", name)
		}
		list, ok := t[name].([]any)
		var sizes []string
		for _, size := range list {
			n, whole := size.(int64)
			ok = ok && whole && n >= 1 && n <= 1<<20
			sizes = append(sizes, strconv.FormatInt(n, 10))
		}
		if !ok || len(sizes) == 0 {
			return fmt.Errorf("%s = %.60s; want the sizes after the batch dimension, each 1 to %d, like [3, 224, 224]", name, fmt.Sprint(t[name]), 1<<20)
		}
		words = append(words, name+":"+strings.Join(sizes, ","))
	}
	if len(words) == 0 {
		return fmt.Errorf("names no input; write one with its sizes after the batch dimension, like { x = [3, 224, 224] }")
	}
	*s = Shapes(strings.Join(words, " "))
	return nil
}

var _ toml.Unmarshaler = (*Shapes)(nil)

// Arrays are .npy files for the model's inputs or outputs, as one string:
// "x=images.npy|…", or "" for no files. In a study file they are a table: { x =
// "images.npy" }.
type Arrays string

// Of returns the file of each array, by the array's name.
func (a Arrays) Of() map[string]string { return entries(string(a)) }

// arrays returns Arrays for a map from names to files.
func arrays(files map[string]string) Arrays {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, name+"="+files[name])
	}
	return Arrays(strings.Join(list, "|"))
}

// in returns the arrays with absolute paths; relative paths start in the folder.
func (a Arrays) in(folder string) Arrays {
	files := a.Of()
	for name, file := range files {
		if !filepath.IsAbs(file) {
			files[name] = filepath.Join(folder, file)
		}
	}
	return arrays(files)
}

// UnmarshalTOML reads the table.
func (a *Arrays) UnmarshalTOML(v any) error {
	t, ok := v.(map[string]any)
	if !ok || len(t) == 0 {
		return fmt.Errorf("want a table of .npy files, like { x = \"images.npy\" }, got %.60s", fmt.Sprint(v))
	}
	files := map[string]string{}
	for name, file := range t {
		text, ok := file.(string)
		switch {
		case name == "" || strings.ContainsFunc(name, unicode.IsSpace) || strings.ContainsAny(name, "=|"):
			return fmt.Errorf("%q cannot name an input or output; want a name without white space, \"=\" and \"|\"", name)
		case !ok || filepath.Ext(text) != ".npy" || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "|"):
			return fmt.Errorf("%s = %.60q; want the path of a .npy file, like \"images.npy\"", name, fmt.Sprint(file))
		}
		files[name] = text
	}
	*a = arrays(files)
	return nil
}

var _ toml.Unmarshaler = (*Arrays)(nil)
