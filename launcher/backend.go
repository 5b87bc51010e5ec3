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

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Backend is where attempts run, and all that is different there. Drive, Survey
// and Cancel know of nothing else; one that works through a scheduler and one
// that starts processes are alike to them.
type Backend interface {
	// Name is what the records of its attempts call it.
	Name() string

	// Attached reports whether its attempts end with the command that began
	// them: nobody else makes room for more, and to look at them costs nothing.
	// Others are in the hands of a scheduler, which is asked as seldom as may be.
	Attached() bool

	// Limits are how fast attempts may be begun.
	Limits() Limits

	// Begin writes the attempts of a load down and begins them; those that are
	// to be begun Again are written down already. The error is fs.ErrExist when
	// another command was first, and a Refusal when the scheduler refused the
	// attempts that come with it. Of another error nobody can say whether they
	// were begun: a later Survey does.
	Begin(ctx context.Context, load []Todo) ([]*Attempt, error)

	// Survey asks, at once for all, after attempts of this backend that have not
	// ended, and returns a finding for each. It writes down what an earlier
	// command could not: the scheduler's answer to a submission. With an error,
	// an Unreachable, the findings are what can be said without the scheduler.
	Survey(ctx context.Context, open []*Attempt) ([]Finding, error)

	// Occupies reports whether an attempt that has not ended takes room where
	// this backend begins others.
	Occupies(State) bool

	// Cancel has attempts ended that have not, as a survey has just found them,
	// and returns what was done about each. Whether they have ended the next
	// survey says.
	Cancel(ctx context.Context, states []State) ([]Ending, error)
}

// What only some backends can do. Callers find out with a type assertion.
type (
	// A Packer begins several attempts together. Any other backend begins each alone.
	Packer interface {
		// Loads divides what is to do into what is begun together.
		Loads(ctx context.Context, todo []Todo) ([][]Todo, error)
	}

	// A Renderer starts attempts with scripts.
	Renderer interface {
		// Drafts hands the scripts of a plan and their lists to write, one at a time.
		Drafts(plan *study.Plan, write func(name string, text []byte) error) error
	}

	// A Partitioner sends attempts to named partitions.
	Partitioner interface {
		// Partitions returns the names of the partitions; none if they are unknown.
		Partitions(ctx context.Context) ([]string, error)
	}

	// An EnergyMeter measures the energy of the attempts that it runs.
	EnergyMeter interface {
		// RecordEnergy writes the energy of good runs into their folders.
		RecordEnergy(ctx context.Context, states []State) (EnergyQuery, error)
	}
)

// An EnergyQuery is the result of asking a backend for the energy of runs.
type EnergyQuery struct {
	Meter    string // what measures it, as a person calls it; "" if nothing does
	Recorded int    // runs whose energy was written down
	Shared   int    // runs that may have shared their nodes, so that their part is unknown
	Unknown  int    // runs whose energy the meter does not know, or not yet
}

// Limits are how fast a backend may be driven.
type Limits struct {
	InFlight int     // attempts of the study that may be under way at once; 0: no limit
	Rate     float64 // submissions a minute; 0: as fast as it goes
}

// Finding is what a backend knows of an attempt, beside what is in its folder.
type Finding struct {
	Job *metrics.Job // nil when no scheduler knows of it
	// Judge says how far the attempt came, by what it has left in its folder.
	Judge func(Traces) (status metrics.Status, detail string)
	Err   error // what was found out cannot be written down, or be read
}

// Ending is what was done to end an attempt.
type Ending struct {
	State
	Asked bool   // somebody was asked to end it
	What  string // who, or why nobody was
}

// Refusal is the error of a scheduler that answered, and the answer was no.
type Refusal interface {
	error
	Words() string // the scheduler's own
	ForNow() bool  // for the number of jobs alone: the same load goes through later
}

// Unreachable is the error of a scheduler that did not answer.
type Unreachable interface {
	error
	Queued() bool // it was a submission, and may have got through all the same
}

// Options are what a backend begins attempts with. Without any it can look
// after those of other commands.
type Options struct {
	Creator
	Policy study.Policy
	// Allocation whose nodes attempts take that run beside this command; nil:
	// they are processes of this machine.
	Allocation *Allocation
	// Oversubscribe allows more ranks on this machine than there are CPUs for them.
	Oversubscribe bool
}

// Names of the backends.
const (
	Local = "local" // beside the command that begins the attempt, on this machine or as steps of an allocation
	Slurm = "slurm" // batch jobs
)

// backends open each backend, by its name.
var backends = map[string]func(Options) (Backend, error){
	Local: func(o Options) (Backend, error) { return NewLocal(o) },
	Slurm: func(o Options) (Backend, error) { return newSlurm(o) },
}

// Register adds a backend under the name that its attempts record and that a site
// file's `backend` selects.
func Register(name string, open func(Options) (Backend, error)) {
	if backends[name] != nil {
		panic(fmt.Sprintf("two backends are named %q", name))
	}
	backends[name] = open
}

// openBackend is a backend by its name.
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

// Partitions returns the names of the partitions of a site's scheduler; none if it has
// none, or they are unknown.
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
		return Slurm, nil
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

// RecordEnergy asks each backend that measures energy for the energy of its good runs
// whose folders do not state it yet, and writes it down.
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

// loads divides what is to do into what a backend begins together.
func loads(ctx context.Context, b Backend, todo []Todo) ([][]Todo, error) {
	if p, ok := b.(Packer); ok {
		return p.Loads(ctx, todo)
	}
	return each(todo), nil
}

// keeper is who looks after the attempts of a backend.
type keeper func(name string) (Backend, error)

// anyone looks after the attempts of any backend.
func anyone(name string) (Backend, error) { return openBackend(name, Options{}) }

// beside is a keeper for one who has a backend, and meets attempts of others.
func beside(b Backend) keeper {
	return func(name string) (Backend, error) {
		if name == b.Name() {
			return b, nil
		}
		return anyone(name)
	}
}

// Attached reports whether the attempt ends with the command that began it.
func (a *Attempt) Attached() bool {
	b, err := anyone(a.Record.Backend)
	return err == nil && b.Attached()
}

// begin begins a load of outstanding runs. A refusal by the scheduler is no
// error: it is the attempts' verdict, in the scheduler's own words.
// But one for the number of jobs alone is no verdict, and an error: the
// attempts stay to be handed over again.
func begin(ctx context.Context, b Backend, load []Todo) ([]*Attempt, error) {
	begun, err := b.Begin(ctx, load)
	var refused Refusal
	if !errors.As(err, &refused) || refused.ForNow() {
		return begun, err
	}
	var wrong []error
	for _, a := range begun {
		wrong = append(wrong, a.conclude(Verdict{Status: metrics.Failed, Detail: refused.Error()}))
	}
	return begun, errors.Join(wrong...)
}

// Cancel has attempts ended that have not, each by its backend. What would go on
// without the command that began it is first written down as cancelled, and
// withdrawn where it has not begun, so that it stays ended whatever becomes of
// the question to its scheduler. The error is that one did not do it.
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
				if err != nil { // it would be begun again
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

// cancel writes down that the attempt is to end and, if it has not begun, sees
// to it that it never does.
func (a *Attempt) cancel() error {
	if a.Cancelled == nil {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		c := Cancellation{Unix: metrics.Unix(time.Now()), Host: host}
		if err := writeJSON(a.Run.Cancel(), c, sharedfs.ModeOpen); err != nil {
			return err
		}
		a.Cancelled = &c
	}
	if err := a.Run.Withdraw(); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
