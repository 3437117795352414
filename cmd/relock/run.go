package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"relock/rlock"
)

// defaultGrace is how long a command has between TERM and KILL.
const defaultGrace = 10 * time.Second

// runFlags are the flags of run.
type runFlags struct {
	wait    time.Duration
	waits   bool // --wait was given
	try     bool
	lease   time.Duration
	grace   time.Duration
	atLeast time.Duration
	abandon bool
	label   string
	verbose bool
	refused int // the exit code if the lock is not acquired
	lock    lockFlags
}

func newRun(g *global) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND [ARGUMENTS…]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock. The lease is renewed until the command has ended.

The command's exit code is relock's; 128+n if signal n ended it. Otherwise: 75 the lock was
not acquired, 69 Redis is unavailable, 79 the lock was lost, 64 wrong usage, 70 any other
error, 126 the command cannot be run, 127 there is no such command.

The command finds the lock's name in RELOCK_NAME, its owner in RELOCK_OWNER and, with
--fenced, its token in RELOCK_TOKEN. Signals are passed on to it and to its children. If the
lock is lost they get TERM and, after --grace, KILL.`,
		Example: `  relock run deploy -- ./deploy.sh
  relock run --try backup -- backup.sh              # exit code 75 if another host does it
  relock run --at-least 55s --try --conflict-exit-code 0 sync -- sync.sh   # cron, each minute, on one of n hosts
  relock run --permits 1 --limit 3 render -- render.sh     # at most 3 at once`,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.waits = cmd.Flags().Changed("wait")
			if err := f.check(); err != nil {
				return err
			}
			return newRunner(g, f, args).run()
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.wait, "wait", 0, "give up after this long (default: wait without end)")
	flags.BoolVar(&f.try, "try", false, "do not wait: --wait 0")
	flags.DurationVar(&f.lease, "lease", rlock.DefaultLease, "how long the lock outlives a crash; with --abandon, the interval")
	flags.DurationVar(&f.grace, "grace", defaultGrace, "time between TERM and KILL when the lock is lost")
	flags.BoolVar(&f.abandon, "abandon", false, "keep the lock until --lease after it was acquired, also when the command has ended")
	flags.DurationVar(&f.atLeast, "at-least", 0, "keep the lock until this long after it was acquired, also when the command has ended")
	flags.StringVar(&f.label, "label", "", "what show and ls call this process (default <host>:<pid>)")
	flags.IntVar(&f.refused, "conflict-exit-code", exitNotAcquired, "exit code if the lock is not acquired; with 0, run says nothing of it")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what happens")
	f.lock.register(flags)
	return cmd
}

// runArgs wants a name, "--", and a command: without the "--" a flag of the command would be
// taken for one of relock.
func runArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0:
		return errors.New("there is no '--'; it is: relock run [FLAGS] NAME -- COMMAND [ARGUMENTS…]")
	case dash != 1:
		return fmt.Errorf("%s before '--'; there must be exactly one", count(dash, "name stands", "names stand"))
	case args[0] == "":
		return errors.New("the name is empty; a name has at least one byte")
	case len(args) < 2:
		return errors.New("there is no command after '--'")
	}
	return nil
}

// check refuses flags that contradict each other.
func (f *runFlags) check() error {
	switch {
	case f.try && f.waits:
		return usage("--try and --wait exclude each other; --try is --wait 0")
	case f.wait < 0:
		return usage("--wait is %v; it must not be negative", f.wait)
	case f.lease < time.Millisecond:
		return usage("--lease is %v; it must be at least 1ms", f.lease)
	case f.grace < 0:
		return usage("--grace is %v; it must not be negative", f.grace)
	case f.refused < 0 || f.refused > 255:
		return usage("--conflict-exit-code is %d; it must be from 0 to 255", f.refused)
	case f.lock.set("at-least") && f.atLeast < time.Millisecond:
		return usage("--at-least is %v; it must be at least 1ms", f.atLeast)
	case f.atLeast > 0 && f.abandon:
		return usage("--at-least and --abandon exclude each other: the latter keeps the lock until --lease is over")
	case f.atLeast > 0 && (f.lock.permits > 0 || f.lock.read):
		return usage("--at-least is for plain and fair locks, and for the write side")
	case f.abandon && f.lock.permits > 0:
		return usage("--abandon is for locks; permits go back when the command ends")
	}
	return f.lock.check()
}

// A runner is one relock run.
type runner struct {
	global  *global
	flags   *runFlags
	name    string
	command []string
	signals chan os.Signal
	held    *held
	began   time.Time // when the lock was acquired
	say     reporter
}

func newRunner(g *global, f *runFlags, args []string) *runner {
	return &runner{
		global: g, flags: f, name: args[0], command: args[1:],
		signals: make(chan os.Signal, 16),
		say:     reporter{json: g.json, verbose: f.verbose, name: args[0]},
	}
}

// run takes the lock, runs the command, and lets the lock go. Its error has the exit code.
func (r *runner) run() error {
	path, err := exec.LookPath(r.command[0])
	if err != nil { // before the lock is taken, so that no other host is kept from it
		return cannotRun(err)
	}
	for _, s := range passedOn {
		if !signal.Ignored(s) { // as nohup does for the command's sake
			signal.Notify(r.signals, s)
		}
	}
	defer signal.Stop(r.signals)
	// A standard error that nobody reads any more must not end relock: the command would go on without the lock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	session, err := r.acquire()
	if session != nil {
		defer session.Close()
	}
	if err != nil {
		return r.notAcquired(err)
	}
	r.say.event("acquired", "owner", r.held.owner, "token", r.held.token)
	c, err := startChild(path, r.command, r.environment())
	if err != nil {
		return errors.Join(cannotRun(err), r.held.release())
	}
	if r.held.stand != nil {
		r.held.stand()
	}
	status, lost := r.watch(c)
	return r.end(status, lost)
}

// acquire connects and takes the lock. A signal ends it: no command is there yet to get it.
func (r *runner) acquire() (*rlock.Session, error) {
	if _, err := r.global.option(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case s := <-r.signals:
			cancel(signalled(s))
		case <-stop:
		}
	}()
	session, err := rlock.DialURL(ctx, r.global.url(), r.config())
	if err == nil {
		r.held, err = r.flags.take(ctx, session, r.name)
		r.began = time.Now()
	}
	close(stop)
	<-stopped
	if cause := context.Cause(ctx); cause != nil { // also if the lock was just acquired
		if r.held != nil {
			_ = r.held.release()
		}
		err = cause
	}
	return session, err
}

// notAcquired is the error of a run without the lock. Where it is as good as success to the caller,
// nothing is printed: cron sends by mail what a job says, and Kubernetes counts its failure.
func (r *runner) notAcquired(err error) error {
	switch {
	case exitCode(err) != exitNotAcquired:
		return err
	case r.flags.refused == 0:
		r.say.event("refused", "reason", err.Error())
		return nil
	}
	return &exitError{r.flags.refused, err}
}

func (r *runner) config() rlock.Config {
	cfg := rlock.Config{Label: r.flags.label, Logger: r.say.logger()}
	if !r.flags.abandon { // else the lease is an interval, and may be days
		cfg.Lease = r.flags.lease
	}
	return cfg
}

// watch passes signals on until the command has ended. If the lock is lost it ends the
// command, and returns why.
func (r *runner) watch(c *child) (status syscall.WaitStatus, lost error) {
	gone := r.held.ctx.Done()
	defer r.keepLease()()
	var grace <-chan time.Time
	var end time.Time // of the grace period
	for {
		select {
		case status = <-c.ended:
			if lost != nil {
				c.killGroup(end, r.signals)
			}
			return status, lost
		case s := <-r.signals:
			c.signal(s.(syscall.Signal))
		case <-c.stops:
			c.stop()
		case <-gone:
			gone = nil
			lost = context.Cause(r.held.ctx)
			c.signal(syscall.SIGTERM) // before it is told: standard error may be a pipe that is full
			end = time.Now().Add(r.flags.grace)
			timer := time.NewTimer(r.flags.grace)
			defer timer.Stop()
			grace = timer.C
			r.say.problem("lost", "the lock was lost; the command is being ended", lost)
		case <-grace:
			c.signal(syscall.SIGKILL)
			r.say.problem("killed", fmt.Sprintf("the command did not end within %v; it is killed", r.flags.grace), nil)
		}
	}
}

// end lets the lock go when the command has ended, and returns relock's exit code.
func (r *runner) end(status syscall.WaitStatus, lost error) error {
	err := r.letGo()
	if lost == nil && errors.Is(err, rlock.ErrLost) {
		lost = err
		r.say.problem("lost", "the lock was lost before the command had ended", err)
	} else if err != nil && lost == nil {
		r.say.problem("release", "the release was not confirmed; the lock ends with its lease", err)
	}
	code := status.ExitStatus()
	if status.Signaled() {
		code = exitSignal + int(status.Signal())
	}
	r.say.event("ended", "exit", code)
	switch {
	case lost != nil:
		return &exitError{code: exitLost}
	case code != 0:
		return &exitError{code: code}
	}
	return nil
}

// cannotRun is the error of a command that cannot be started, with a shell's exit codes.
func cannotRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &exitError{exitNotFound, err}
	}
	return &exitError{exitCannotRun, err}
}
