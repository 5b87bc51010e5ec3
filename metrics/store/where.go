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

// heapLimit is the most memory that SQLite may have in this process, in bytes;
// reading in 64 ranks of 100,000 steps takes 20 MB.
const heapLimit = 256 << 20

// recursive is SQLITE_RECURSIVE of sqlite3.h, which the driver does not name.
const recursive = 33

// functions are those that a user's expression may call: none that reads a
// file, loads code, or makes a gigabyte of one row.
var functions = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(`abs avg coalesce count date datetime glob group_concat ifnull iif instr
		json json_array_length json_each json_extract json_patch json_remove json_type json_valid julianday length like lower ltrim max min
		nullif round row_number first_value rtrim sign strftime substr substring sum time total trim typeof unixepoch upper -> ->>`) {
		set[name] = true
	}
	return set
}()

// restrict lets a connection do nothing but select. mode=ro and query_only
// already keep it from writing; this also keeps it from other files (ATTACH,
// load_extension), from settings, and from endless recursion.
//
// A value is bounded as the longest line of an event file is, twice over, and all
// memory of SQLite's together: an expression that joins everything to everything
// ends with an error rather than with the machine's memory.
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

// expression makes a user's boolean expression fit to stand in a WHERE over
// view runs: names that are no columns become the look-ups that they stand for,
// and everything that could end the expression early is refused. What is left to
// judge is SQLite's.
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

// A rewriter turns the tokens of an expression into SQL.
type rewriter struct {
	columns map[string]bool
	lookUps map[string]string // SQL of a parameter or measure, by name
	depth   int               // parentheses that are open
}

// quoted rewrites a name in double quotes.
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
	// SQLite would take it for a text, silently.
	return "", fmt.Errorf("%s is neither a column nor a parameter; put text in single quotes: '%s'", token, name)
}

// name rewrites a bare name, with what follows it if that belongs to it, and returns the
// rest.
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

// punctuation refuses what could end the expression early.
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

// hostsOf are the hosts of a run as SQL: those that its ranks name, also without their
// domain, and the nodes of its job.
const hostsOf = `(SELECT host FROM hosts WHERE hosts.run = runs.run
	UNION SELECT substr(host, 1, instr(host || '.', '.') - 1) FROM hosts WHERE hosts.run = runs.run
	UNION SELECT n.value FROM job, json_each(job.nodes) n WHERE job.run = runs.id)`

// onHost makes what follows the word host, such as = 'n01', a condition on any of a
// run's hosts, and returns what comes behind. A run is not on a host if none of its
// hosts is that one.
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

// hostIs is a comparison to a text, or to a list of texts.
var hostIs = regexp.MustCompile(`^(?i)\s*(=|==|<>|!=|(?:NOT\s+)?(?:LIKE|GLOB))\s*('(?:[^']|'')*')|^(?i)\s*((?:NOT\s+)?IN)\s*(\(\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\))`)

// tagAfter is the tag of tag:NAME; "" of anything else.
func tagAfter(token, next string) string {
	if token != "tag" || !strings.HasPrefix(next, ":") {
		return ""
	}
	return tagName.FindString(next[1:])
}

// scanToken splits off the first token: a 'string', a "quoted" name, a name
// (dots included), a number or anything else.
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
				i++ // doubled: one that belongs to it
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

// parameterOf is a run's parameter as SQL.
func parameterOf(key string) string {
	return "(SELECT p.value FROM run_parameter p WHERE p.run = runs.id AND p.key = '" + strings.ReplaceAll(key, "'", "''") + "')"
}

// whereClause turns the expression into SQL, or says what is wrong with it and
// what names there are.
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
			continue // a run has many
		}
		lookUps[m.Name] = fmt.Sprintf("(SELECT v.value FROM value v WHERE v.run = runs.id AND v.place = 0 AND v.measure = %d)", id)
		if !columns[m.Name] {
			measured = append(measured, m.Name)
		}
	}
	short := map[string][]string{} // the last part of a key to the keys that have it
	for _, k := range list {
		lookUps[k] = parameterOf(k)
		short[lastPart(k)] = append(short[lastPart(k)], k)
	}
	for name, keys := range short { // as on the command line and in the heads of tables
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

// lastPart is "batch" of "workload.batch".
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

// WhereError is a user's expression that cannot be used.
type WhereError struct {
	Expression string
	Names      string // the columns and parameters there are
	Err        error
}

func (e *WhereError) Error() string {
	return fmt.Sprintf("--where %q: %v\n(a condition like \"batch > 64 AND framework = 'native'\"; %s)", e.Expression, e.Err, e.Names)
}
func (e *WhereError) Unwrap() error { return e.Err }
