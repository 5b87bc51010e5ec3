package store

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/store.md promises views and their columns; the schema must have exactly those.
// A view is described as "`name`: `column, column, …`.", or, for runs, by a table
// whose first cells name columns.
func TestDocumentedViews(t *testing.T) {
	text, err := os.ReadFile("../../docs/store.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Views\n")
	section, _, end := strings.Cut(section, "\n## ")
	if !found || !end {
		t.Fatal("docs/store.md has no section Views followed by another one")
	}
	word := regexp.MustCompile("`([a-z0-9_]+)`")
	promised := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^`([a-z_]+)`: `([a-z0-9_, ]+)`").FindAllStringSubmatch(section, -1) {
		promised[m[1]] = strings.Split(m[2], ", ")
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		for _, m := range word.FindAllStringSubmatch(row[1], -1) {
			promised["runs"] = append(promised["runs"], m[1])
		}
	}
	// docs/store.md describes time_to_target as time_to_accuracy with two more columns.
	promised["time_to_target"] = append(slices.Clone(promised["time_to_accuracy"]), "target_of", "measure")

	s := openStore(t)
	rows, err := s.write.Query(`SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'view'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	exist := map[string][]string{}
	for rows.Next() {
		var view, column string
		if err := rows.Scan(&view, &column); err != nil {
			t.Fatal(err)
		}
		exist[view] = append(exist[view], column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	// Internal views, from which the others are built.
	for _, internal := range []string{"run", "counted"} {
		delete(exist, internal)
	}

	for view, columns := range promised {
		for _, c := range columns {
			if !slices.Contains(exist[view], c) {
				t.Errorf("docs/store.md describes %s.%s, which does not exist", view, c)
			}
		}
	}
	for view, columns := range exist {
		for _, c := range columns {
			if !slices.Contains(promised[view], c) {
				t.Errorf("docs/store.md does not describe %s.%s", view, c)
			}
		}
	}
}
