package main

// flood keeps many warnings of one kind from hiding the others: the first are
// printed, with --verbose all, and in the end how many more there are.
type flood struct {
	*session
	kinds []string
	count map[string]int
}

// told is how many warnings of a kind are printed.
const told = 20

func (s *session) flood() *flood { return &flood{session: s, count: map[string]int{}} }

// warn prints a warning of a kind, a noun in the plural: "runs that cannot be read".
func (f *flood) warn(kind, format string, a ...any) {
	if f.count[kind] == 0 {
		f.kinds = append(f.kinds, kind)
	}
	f.count[kind]++
	if f.verbose || f.count[kind] <= told {
		f.session.warn(format, a...)
	}
}

// end says what was not printed.
func (f *flood) end() {
	for _, kind := range f.kinds {
		if n := f.count[kind] - told; n > 0 && !f.verbose {
			f.session.warn("%d more %s; -v lists each", n, kind)
		}
	}
}
