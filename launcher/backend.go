package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Backend runs attempts. Drive, Survey and Cancel only use this interface, so they treat schedulers and local
// processes alike.
type Backend interface {
	// Name returns the name that the records of its attempts have.
	Name() string

	// Attached reports whether its attempts end with the command that started them, so that
	// surveying them is cheap. Other attempts belong to a scheduler, which is queried as rarely as
	// possible.
	Attached() bool

	// Limits returns how fast attempts may be begun.
	Limits() Limits

	// Begin records the attempts of a load and begins them; those with Again set are
	// recorded already. The error is fs.ErrExist if another command was first, and a
	// Refusal if the scheduler refused the attempts returned with it. After any other
	// error they may have been begun or not: a later Survey finds out.
	Begin(ctx context.Context, load []Todo) ([]*Attempt, error)

	// Survey examines attempts of this backend that have not ended, all at once, and returns a finding for
	// each. It records answers to submissions that an earlier command could not record. If the error is an
	// Unreachable, the findings come from the run folders alone.
	Survey(ctx context.Context, open []*Attempt) ([]Finding, error)

	// Occupies reports whether an attempt that has not ended counts against the
	// limits.
	Occupies(State) bool

	// Cancel ends attempts that have not ended according to a survey, and returns the result for each. The next
	// survey tells whether they have ended.
	Cancel(ctx context.Context, states []State) ([]Ending, error)
}

// What only some backends can do. Callers find out with a type assertion.
type (
	// A Packer begins several attempts together. Any other backend begins each alone.
	Packer interface {
		// Loads groups runs that are submitted together.
		Loads(ctx context.Context, todo []Todo) ([][]Todo, error)
	}

	// A Renderer starts attempts with scripts.
	Renderer interface {
		// Drafts hands the scripts of a plan and their lists to write, one at a time.
		Drafts(plan *study.Plan, write func(name string, text []byte) error) error
	}

	// A Partitioner sends attempts to named partitions.
	Partitioner interface {
		// Partitions returns the names of the partitions; nil if they are unknown.
		Partitions(ctx context.Context) ([]string, error)
	}

	// An Allocator runs attempts on the nodes of an allocation that the command is in.
	Allocator interface {
		// Enclosing reads the allocation from the command's environment; nil: none.
		Enclosing(getenv func(string) string) (*Allocation, error)
		// Inside returns what runs attempts on the allocation's nodes.
		Inside() Carrier
	}

	// A NameChecker has rules for the names that its commands are given. Records with
	// other names are unreadable: they would reach a shell, or mean other jobs.
	NameChecker interface {
		CheckJobName(string) error
		CheckJobID(string) error
		CheckCluster(string) error
		CheckNode(string) error
	}

	// A Follower runs a command after attempts have ended, even if they failed.
	Follower interface {
		// Follow runs a command once, on a node of the partition of a planned run. It returns the
		// scheduler's id of the job.
		Follow(ctx context.Context, p study.Planned, after []*Attempt, command []string) (job string, err error)
	}

	// An EnergyMeter measures the energy of the attempts that it runs.
	EnergyMeter interface {
		// RecordEnergy writes the energy of good runs into their folders.
		RecordEnergy(ctx context.Context, states []State) (EnergyQuery, error)
	}
)

// A Carrier runs an attempt to its end while the command that began it waits.
type Carrier interface {
	// Write adds the files that the attempt needs to start to a run folder under construction.
	Write(t Todo, at rundir.Folder, a *Attempt) error
	// Ready prepares an attempt that is written down, and claims it.
	Ready(a *Attempt) error
	// Carry runs the attempt to its end, or until the context is done.
	Carry(ctx context.Context, a *Attempt) Exit
}

// An EnergyQuery is the result of asking a backend for the energy of runs.
type EnergyQuery struct {
	Meter    string // name of the meter for display; "" if there is none
	Recorded int    // runs whose energy was recorded
	Shared   int    // runs that may have shared their nodes, so that their part is unknown
	Unknown  int    // runs whose energy the meter does not know, or not yet
}

// Limits are how fast a backend may be driven.
type Limits struct {
	InFlight int     // maximum attempts of the study under way at once; 0 means no limit
	Rate     float64 // submissions per minute; 0 means no limit
}

// A Finding is a backend's view of an attempt; the run folder holds the rest.
type Finding struct {
	Job *metrics.Job // nil if no scheduler knows the attempt
	// Judge returns how far the attempt came, given the traces in its folder.
	Judge func(Traces) (status metrics.Status, detail string)
	Err   error // why the finding could not be recorded or read
}

// An Ending is the result of cancelling an attempt.
type Ending struct {
	State
	Asked bool   // a request to end it was made
	What  string // what was asked to end the attempt, or why nothing was
}

// A Refusal is the error of a scheduler that refuses a submission.
type Refusal interface {
	error
	Words() string // the scheduler's own
	ForNow() bool  // the number of jobs is the only reason: try the same load later
}

// An Unreachable is the error of a scheduler that did not answer.
type Unreachable interface {
	error
	Queued() bool // the failed call was a submission that the scheduler may have accepted
}

// Options configure how a backend starts attempts. The zero value is enough to survey and cancel attempts of
// other commands.
type Options struct {
	Creator
	Policy study.Policy
	// Allocation on whose nodes attached attempts run; nil means this machine.
	Allocation *Allocation
	// Oversubscribe allows more ranks on this machine than there are CPUs for them.
	Oversubscribe bool
	// Blocks says that a job has at most one run of each point, even if jobs are packed.
	Blocks bool
}

// backends open each backend, by its name.
var backends = map[string]func(Options) (Backend, error){}

// Register adds a backend under the name that its attempts record and that a site
// file's `backend` selects.
func Register(name string, open func(Options) (Backend, error)) {
	if backends[name] != nil {
		panic(fmt.Sprintf("two backends are named %q", name))
	}
	backends[name] = open
}

// openBackend opens a backend by its name.
func openBackend(name string, o Options) (Backend, error) {
	if err := checkBackend(name); err != nil {
		return nil, err
	}
	return backends[name](o)
}

func checkBackend(name string) error {
	if backends[name] == nil {
		return fmt.Errorf("backend %q is not known; valid: %s", name, strings.Join(slices.Sorted(maps.Keys(backends)), ", "))
	}
	return nil
}

// Scheduler opens the backend that the site file selects for attempts that outlive the
// command that begins them.
func Scheduler(o Options) (Backend, error) {
	name, err := siteBackend(o.Site)
	if err != nil {
		return nil, err
	}
	return openBackend(name, o)
}

// Partitions returns the names of the partitions of a site's scheduler; nil: it has none, or they are unknown.
func Partitions(ctx context.Context, site *study.Site) ([]string, error) {
	name, err := siteBackend(site)
	if err != nil {
		return nil, err
	}
	b, err := anyone(name)
	if p, ok := b.(Partitioner); ok && err == nil {
		return p.Partitions(ctx)
	}
	return nil, err
}

// siteBackend returns the name of the backend that a site selects.
func siteBackend(site *study.Site) (string, error) {
	if site == nil || site.Backend == "" {
		return study.DefaultBackend, nil
	}
	if names := schedulerNames(); !slices.Contains(names, site.Backend) {
		return "", study.Problems{site.Problem("backend", fmt.Sprintf("%q is not a scheduler; valid: %s", site.Backend, strings.Join(names, ", ")))}
	}
	return site.Backend, nil
}

// schedulerNames returns the names of the backends whose attempts outlive the command.
func schedulerNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(backends)), func(name string) bool {
		b, err := anyone(name)
		return err != nil || b.Attached()
	})
}

// Render hands the scripts that start a plan's attempts to write, one at a time.
func Render(b Backend, plan *study.Plan, write func(name string, text []byte) error) error {
	r, ok := b.(Renderer)
	if !ok {
		return fmt.Errorf("backend %q starts attempts without scripts; submit the study instead", b.Name())
	}
	return r.Drafts(plan, write)
}

// RecordEnergy asks each backend that measures energy for the energy of its good runs whose folders do not
// contain it yet, and records it.
func RecordEnergy(ctx context.Context, states []State) (EnergyQuery, error) {
	by := map[string][]State{}
	for _, s := range states {
		by[s.Record.Backend] = append(by[s.Record.Backend], s)
	}
	var total EnergyQuery
	for _, name := range slices.Sorted(maps.Keys(by)) {
		b, err := anyone(name)
		if err != nil {
			continue // an attempt that cannot be read
		}
		meter, ok := b.(EnergyMeter)
		if !ok {
			continue
		}
		q, err := meter.RecordEnergy(ctx, by[name])
		total = EnergyQuery{cmp.Or(total.Meter, q.Meter), total.Recorded + q.Recorded, total.Shared + q.Shared, total.Unknown + q.Unknown}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Loads groups runs that a backend submits together.
func Loads(ctx context.Context, b Backend, todo []Todo) ([][]Todo, error) {
	if p, ok := b.(Packer); ok {
		return p.Loads(ctx, todo)
	}
	return each(todo), nil
}

// A keeper opens the backend that manages attempts.
type keeper func(name string) (Backend, error)

// anyone returns a backend for attempts of other commands.
func anyone(name string) (Backend, error) { return openBackend(name, Options{}) }

// SurveyWith is Survey with an open backend for its own attempts.
func SurveyWith(ctx context.Context, b Backend, attempts []*Attempt) ([]State, error) {
	return survey(ctx, knowing(b), attempts)
}

// knowing returns a keeper that uses an open backend for its own attempts.
func knowing(b Backend) keeper {
	return func(name string) (Backend, error) {
		if name == b.Name() {
			return b, nil
		}
		return anyone(name)
	}
}

// Enclosing returns the allocation that this command runs in, from the first backend that recognises one in the
// environment; nil: none.
func Enclosing(getenv func(string) string) (*Allocation, error) {
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		b, err := anyone(name)
		if a, ok := b.(Allocator); ok && err == nil {
			found, err := a.Enclosing(getenv)
			if found != nil {
				found.Backend = name
			}
			if found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

// NewCarrier returns what runs attempts inside the allocation of the options.
func NewCarrier(o Options) (Carrier, error) {
	b, err := openBackend(o.Allocation.Backend, o)
	if err != nil {
		return nil, err
	}
	a, ok := b.(Allocator)
	if !ok {
		return nil, fmt.Errorf("backend %q runs nothing inside an allocation", b.Name())
	}
	return a.Inside(), nil
}

// names returns the rules for names in an attempt's records. They come from its backend or, if that
// has no rules, from a backend whose allocations it may use. nil: no rules.
func (r *Record) names() NameChecker {
	b, err := anyone(r.Backend)
	if c, ok := b.(NameChecker); ok || err != nil || !b.Attached() {
		return c
	}
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		b, _ := anyone(name)
		if c, ok := b.(NameChecker); ok {
			if _, ok := b.(Allocator); ok {
				return c
			}
		}
	}
	return nil
}

// Attached reports whether the attempt ends with the command that began it.
func (a *Attempt) Attached() bool { return a.Record.attached() }

func (r *Record) attached() bool {
	b, err := anyone(r.Backend)
	return err == nil && b.Attached()
}

// Begin starts a load of outstanding runs. If the scheduler refuses them, its message becomes the
// attempts' verdict, and Begin returns no error. A refusal that is only about the number of jobs is
// an error: the attempts can be submitted again later.
func Begin(ctx context.Context, b Backend, load []Todo) ([]*Attempt, error) {
	begun, err := b.Begin(ctx, load)
	var refused Refusal
	if !errors.As(err, &refused) {
		return begun, err
	}
	var wrong []error
	if refused.ForNow() {
		wrong = append(wrong, err)
		for _, a := range begun {
			wrong = append(wrong, a.limited(refused))
		}
		return begun, errors.Join(wrong...)
	}
	for _, a := range begun {
		wrong = append(wrong, a.conclude(Verdict{Status: metrics.Failed, Detail: refused.Error()}))
	}
	return begun, errors.Join(wrong...)
}

// Cancel ends attempts that have not ended, each by its backend. Attempts that would
// continue without the command that began them are first recorded as cancelled, and
// withdrawn if they have not begun, so that they stay cancelled even if the scheduler does
// not answer.
func Cancel(ctx context.Context, states []State) ([]Ending, error) {
	var list []Ending
	var wrong []error
	by := map[string][]State{}
	for _, s := range states {
		switch {
		case s.Status.Terminal():
		case s.Record.Backend == "":
			list = append(list, Ending{State: s, What: "its folder cannot be read, so its job is unknown"})
		default:
			by[s.Record.Backend] = append(by[s.Record.Backend], s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		b, err := anyone(name)
		if err != nil {
			return list, err
		}
		if !b.Attached() {
			by[name] = slices.DeleteFunc(by[name], func(s State) bool {
				err := s.cancel()
				if err != nil { // otherwise, the attempt would be started again
					list, wrong = append(list, Ending{State: s, What: err.Error()}), append(wrong, err)
				}
				return err != nil
			})
		}
		endings, err := b.Cancel(ctx, by[name])
		list, wrong = append(list, endings...), append(wrong, err)
	}
	order := map[*Attempt]int{}
	for i, s := range states {
		order[s.Attempt] = i
	}
	slices.SortStableFunc(list, func(a, b Ending) int { return order[a.Attempt] - order[b.Attempt] })
	return list, errors.Join(wrong...)
}

// cancel records that the attempt is to end and, if it has not begun, prevents it from
// ever starting.
func (a *Attempt) cancel() error {
	if a.Cancelled == nil {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		c := Cancellation{Unix: metrics.Unix(time.Now()), Host: host}
		if err := rundir.WriteJSON(a.Run.Cancel(), c, sharedfs.ModeOpen); err != nil {
			return err
		}
		a.Cancelled = &c
	}
	if err := a.Run.Withdraw(); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
