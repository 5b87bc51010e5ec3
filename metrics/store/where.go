package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics"
)

// heapLimit limits the memory that SQLite uses in this process, in bytes. Ingesting 64 ranks with
// 100,000 steps each takes 20 MB.
const heapLimit = 256 << 20

// recursive is the constant SQLITE_RECURSIVE of sqlite3.h, which the driver does not define.
const recursive = 33

// functions are the SQL functions that a user's condition may call. None of them reads files,
// loads code, or produces a gigabyte from one row.
var functions = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(`abs avg coalesce count date datetime glob group_concat ifnull iif instr
		json json_array_length json_each json_extract json_patch json_remove json_type json_valid julianday length like lower ltrim max min
		nullif round row_number first_value rtrim sign strftime substr substring sum time total trim typeof unixepoch upper -> ->>`) {
		set[name] = true
	}
	return set
}()

// restrict limits a connection to SELECT. Writing is already prevented by mode=ro and query_only.
// This also prevents access to other files (ATTACH, load_extension), changes of settings, and
// endless recursion.
//
// A value may be at most twice as long as the longest event line, and SQLite's total memory is
// limited: a condition that joins everything with everything fails before it exhausts the
// machine's memory.
func restrict(conn *sqlite3.SQLiteConn) error {
	for limit, value := range map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH:              2 * metrics.MaxLine,
		sqlite3.SQLITE_LIMIT_SQL_LENGTH:          1 << 20,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          200,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
	} {
		conn.SetLimit(limit, value)
	}
	if _, err := conn.Exec(fmt.Sprintf("PRAGMA hard_heap_limit = %d", heapLimit), nil); err != nil {
		return err
	}
	conn.RegisterAuthorizer(func(action int, _, name, _ string) int {
		switch action {
		case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_TRANSACTION:
			return sqlite3.SQLITE_OK
		case sqlite3.SQLITE_FUNCTION:
			if functions[strings.ToLower(name)] {
				return sqlite3.SQLITE_OK
			}
		case recursive:
		}
		return sqlite3.SQLITE_DENY
	})
	return nil
}

// expression returns a user's condition in a form that can be used in a WHERE clause on the view
// runs. Names that are not columns are replaced by lookups. It returns an error for anything that
// could end the condition early. SQLite checks the rest.
func expression(text string, columns map[string]bool, lookUps map[string]string) (string, error) {
	x := rewriter{columns: columns, lookUps: lookUps}
	var b strings.Builder
	for rest := text; rest != ""; {
		kind, token := scanToken(rest)
		rest = rest[len(token):]
		var err error
		switch kind {
		case "string":
			if !closed(token, '\'') {
				err = fmt.Errorf("%s has no closing '", token)
			}
		case "quoted":
			token, err = x.quoted(token)
		case "name":
			token, rest, err = x.name(token, rest)
		case "other":
			err = x.punctuation(token)
		}
		if err != nil {
			return "", err
		}
		b.WriteString(token)
	}
	switch {
	case x.depth > 0:
		return "", errors.New("it has a ( without its )")
	case strings.TrimSpace(text) == "":
		return "", errors.New("it is empty")
	}
	return b.String(), nil
}

// A rewriter converts the tokens of a condition to SQL.
type rewriter struct {
	columns map[string]bool
	lookUps map[string]string // SQL that returns a parameter or a measure, by its name
	depth   int               // number of open parentheses
}

// quoted returns the SQL for a name in double quotes.
func (x *rewriter) quoted(token string) (string, error) {
	if !closed(token, '"') {
		return "", fmt.Errorf("%s has no closing \"", token)
	}
	name := strings.ReplaceAll(token[1:len(token)-1], `""`, `"`)
	switch {
	case x.columns[name]:
		return token, nil
	case x.lookUps[name] != "":
		return x.lookUps[name], nil
	}
	// Return an error, because SQLite would silently treat an unknown name as a string.
	return "", fmt.Errorf("%s is neither a column nor a parameter; put text in single quotes: '%s'", token, name)
}

// name returns the SQL for an unquoted name, together with what belongs to it (tag:NAME), and the
// rest of the condition.
func (x *rewriter) name(token, next string) (string, string, error) {
	if tag := tagAfter(token, next); tag != "" {
		return "EXISTS (SELECT 1 FROM tag WHERE tag.name = runs.run AND tag.tag = '" + tag + "')", next[1+len(tag):], nil
	}
	if token == "host" && !x.columns[token] && x.lookUps[token] == "" {
		return onHost(next)
	}
	called := strings.HasPrefix(strings.TrimLeft(next, " \t\r\n"), "(")
	switch {
	case strings.Contains(token, ".") && x.lookUps[token] == "":
		return "", "", fmt.Errorf("no run has a parameter %s", token)
	case x.lookUps[token] != "" && !x.columns[token] && !called:
		return x.lookUps[token], next, nil
	}
	return token, next, nil
}

// punctuation returns an error for a token that could end the condition early. It also counts
// parentheses.
func (x *rewriter) punctuation(token string) error {
	switch {
	case token == ";":
		return errors.New("a semicolon does not belong in it: it is one expression")
	case token == "--" || token == "/*":
		return errors.New("a comment does not belong in it")
	case strings.ContainsAny(token, "`[]?@$#\x00"):
		return fmt.Errorf("%q does not belong in it", token)
	case token == "(":
		x.depth++
	case token == ")":
		x.depth--
	}
	if x.depth < 0 {
		return errors.New("it has a ) without its (")
	}
	return nil
}

// hostsOf is SQL for the hosts of a run: those that its ranks name, with and without their
// domain, and the nodes of its job.
const hostsOf = `(SELECT host FROM hosts WHERE hosts.run = runs.run
	UNION SELECT substr(host, 1, instr(host || '.', '.') - 1) FROM hosts WHERE hosts.run = runs.run
	UNION SELECT n.value FROM job, json_each(job.nodes) n WHERE job.run = runs.id)`

// onHost returns the SQL for a comparison after the word host, such as = 'n01', and the rest of
// the condition. It is true if any of the run's hosts matches. A negated comparison is true if no
// host of the run matches.
func onHost(next string) (condition, rest string, err error) {
	const want = "host is compared to names in quotes: host = 'n01', host <> 'n01', host IN ('n01', 'n02'), host LIKE 'gpu%'"
	m := hostIs.FindStringSubmatch(next)
	if m == nil {
		return "", "", errors.New(want)
	}
	not, operator, operand := "", strings.ToUpper(m[1]+m[3]), m[2]+m[4]
	if operator == "<>" || operator == "!=" || strings.HasPrefix(operator, "NOT") {
		not, operator = "NOT ", strings.TrimSpace(strings.TrimPrefix(operator, "NOT"))
		if operator == "<>" || operator == "!=" {
			operator = "="
		}
	}
	return " (" + not + "EXISTS (SELECT 1 FROM " + hostsOf + " WHERE host " + operator + " " + operand + "))", next[len(m[0]):], nil
}

// hostIs matches a comparison with a string, or with a list of strings.
var hostIs = regexp.MustCompile(`^(?i)\s*(=|==|<>|!=|(?:NOT\s+)?(?:LIKE|GLOB))\s*('(?:[^']|'')*')|^(?i)\s*((?:NOT\s+)?IN)\s*(\(\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\))`)

// tagAfter returns NAME of tag:NAME, and "" for anything else.
func tagAfter(token, next string) string {
	if token != "tag" || !strings.HasPrefix(next, ":") {
		return ""
	}
	return tagName.FindString(next[1:])
}

// scanToken returns the first token of s: a 'string', a "quoted" name, a name (which may have
// dots), a number, or anything else.
func scanToken(s string) (kind, token string) {
	nameStart := func(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	switch c := s[0]; {
	case c == '\'' || c == '"':
		kind = map[byte]string{'\'': "string", '"': "quoted"}[c]
		for i := 1; i < len(s); i++ {
			if s[i] != c {
				continue
			}
			if i+1 < len(s) && s[i+1] == c {
				i++ // a doubled quote belongs to the token
				continue
			}
			return kind, s[:i+1]
		}
		return kind, s
	case nameStart(c):
		i := 1
		for i < len(s) && (nameStart(s[i]) || digit(s[i]) || s[i] == '.' && i+1 < len(s) && nameStart(s[i+1])) {
			i++
		}
		return "name", s[:i]
	case digit(c):
		i := 1
		for i < len(s) && (digit(s[i]) || nameStart(s[i]) || s[i] == '.') {
			i++
		}
		return "number", s[:i]
	case strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*"):
		return "other", s[:2]
	}
	return "other", s[:1]
}

// closed reports whether a quoted token ends with its quote.
func closed(token string, quote byte) bool {
	return len(token) >= 2 && token[len(token)-1] == quote &&
		strings.Count(token, string(quote))%2 == 0
}

// parameterOf returns SQL for a run's value of a parameter.
func parameterOf(key string) string {
	return "(SELECT p.value FROM run_parameter p WHERE p.run = runs.id AND p.key = '" + strings.ReplaceAll(key, "'", "''") + "')"
}

// whereClause returns a user's condition as SQL, or an error that says what is wrong with it.
// names lists the names that exist.
func whereClause(ctx context.Context, tx *sql.Tx, text string) (clause string, names string, err error) {
	columns, err := runColumns(ctx, tx)
	if err != nil {
		return "", "", err
	}
	list, err := column1[string](tx.QueryContext(ctx, "SELECT key FROM parameter_key ORDER BY key"))
	if err != nil {
		return "", "", err
	}
	all, err := readMeasures(ctx, tx)
	if err != nil {
		return "", "", err
	}
	lookUps := map[string]string{}
	var measured []string
	for id, m := range all {
		if m.At != "" {
			continue // a run has several values
		}
		lookUps[m.Name] = fmt.Sprintf("(SELECT v.value FROM value v WHERE v.run = runs.id AND v.place = 0 AND v.measure = %d)", id)
		if !columns[m.Name] {
			measured = append(measured, m.Name)
		}
	}
	short := map[string][]string{} // all keys with a last part, by that part
	for _, k := range list {
		lookUps[k] = parameterOf(k)
		short[lastPart(k)] = append(short[lastPart(k)], k)
	}
	for name, keys := range short { // short names, as on the command line and in table headers
		if len(keys) == 1 && lookUps[name] == "" {
			lookUps[name] = lookUps[keys[0]]
		}
	}
	names = "columns: " + strings.Join(slices.Sorted(maps.Keys(columns)), ", ") + "; parameters: " + strings.Join(list, ", ")
	if measured != nil {
		slices.Sort(measured)
		names += "; measures: " + strings.Join(measured, ", ")
	}
	clause, err = expression(text, columns, lookUps)
	return clause, names, err
}

// lastPart returns the last part of a parameter's path: "batch" for "workload.batch".
func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func runColumns(ctx context.Context, tx *sql.Tx) (map[string]bool, error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM runs LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set, nil
}

// A WhereError is the error of a user's condition that cannot be used.
type WhereError struct {
	Expression string
	Names      string // columns and parameters that exist
	Err        error
}

func (e *WhereError) Error() string {
	text := strings.ReplaceAll(e.Err.Error(), "unrecognized token: ", "unexpected ") // what follows "token:" would be withheld as a secret
	return fmt.Sprintf("--where %q: %s\n(a condition like \"batch > 64 AND framework = 'native'\"; %s)", e.Expression, text, e.Names)
}
func (e *WhereError) Unwrap() error { return e.Err }
