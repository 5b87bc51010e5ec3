package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// Another version or program creates the file after this process has checked it and before
// this process creates the schema.
func TestSchemaCreatedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name        string
		id, version int
		want        error
	}{
		{"this version", applicationID, schemaVersion, nil},
		{"an older one", applicationID, schemaVersion - 1, ErrOlder},
		{"a newer one", applicationID, schemaVersion + 1, ErrNewer},
		{"another program", 1, schemaVersion, ErrNotOurs},
	} {
		s, err := Open(filepath.Join(t.TempDir(), "x.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.write.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", c.id, c.version)); err != nil {
			t.Fatal(err)
		}
		if err := s.tryMakeSchema(t.Context()); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		s.Close()
	}
}
