// Package predict carries step times to worker counts that were not measured.
package predict
