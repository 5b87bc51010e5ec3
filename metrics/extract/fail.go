package extract

import "fmt"

// Nearly every line of a log has a number that may be damaged. So that the code that reads a
// format shows what it reads, and not a check after each number, a reader ends at the first
// mistake by a panic. Extract and Runs turn it into their error, as package text/template/parse
// does. No panic of this kind leaves the package.

// failure is the value of such a panic.
type failure struct{ error }

// fail ends the reading of a log with an error, which fmt.Errorf makes.
func fail(format string, args ...any) { failIf(fmt.Errorf(format, args...)) }

// fail ends the reading of the log with an error that names the file and the line, if it is not 0.
func (l *log) fail(line int, format string, args ...any) { failIf(l.errorAt(line, format, args...)) }

// failIf ends the reading of a log if there is an error.
func failIf(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the reading of a log if there is an error.
func must[T any](v T, err error) T {
	failIf(err)
	return v
}

// try calls f and returns the error with which it ended the reading, if it did.
func try(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			err = e.error
		default:
			panic(e)
		}
	}()
	f()
	return nil
}
