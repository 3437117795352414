package main

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that the command gets from relock.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// A child is the command. It leads a process group of its own, so that signals reach its
// children too: a shell that is ended alone would leave them at work without the lock.
//
// If relock is in the foreground of a terminal, the child's group takes its place there, and
// gives it back when it stops or ends. So Ctrl-C and Ctrl-Z work, and reach it once. With another
// standard input or output it gets the place when it uses the terminal, as one does that asks for
// a password; until then relock hears Ctrl-C and Ctrl-Z, and passes them on. A pager behind it
// would be stopped otherwise, and relock with it, but not the child.
type child struct {
	pid   int
	tty   int                     // the terminal; -1 if it was not used yet
	front bool                    // the child's group is in its foreground
	stops chan os.Signal          // Ctrl-Z, where relock hears it,
	asked atomic.Bool             // and whether it was passed on
	ended chan syscall.WaitStatus // gets one value
}

// startChild starts the command with relock's own standard files.
func startChild(path string, args, env []string) (*child, error) {
	c := &child{tty: -1, stops: make(chan os.Signal, 1), ended: make(chan syscall.WaitStatus, 1)}
	attr := &syscall.SysProcAttr{Setpgid: true}
	if stdin := int(os.Stdin.Fd()); inFront(stdin) && inFront(int(os.Stdout.Fd())) {
		c.tty, c.front = stdin, true
		attr = &syscall.SysProcAttr{Foreground: true, Ctty: stdin}
	}
	p, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	// To take the terminal back is refused to a background process by this signal. It is
	// ignored from here on only, since the command would inherit that.
	signal.Ignore(syscall.SIGTTOU)
	if err != nil {
		c.leave() // it goes there before it becomes the command
		return nil, err
	}
	c.pid = p.Pid
	_ = p.Release() // wait collects it: os.Process cannot tell that a child has stopped
	signal.Notify(c.stops, syscall.SIGTSTP)
	go c.wait()
	return c, nil
}

// environment is what the command gets. What a run around this one has set is of another lock: a C program finds the
// first of two values.
func (r *runner) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "RELOCK_NAME" || name == "RELOCK_OWNER" || name == "RELOCK_TOKEN"
	})
	env = append(env, "RELOCK_NAME="+r.name, "RELOCK_OWNER="+r.held.owner)
	if r.flags.lock.fenced {
		env = append(env, "RELOCK_TOKEN="+strconv.FormatInt(r.held.token, 10))
	}
	return env
}

// wait collects the child, and follows it when it stops. It collects others too: as the first process of a container
// relock becomes the parent of all whose own has ended.
func (c *child) wait() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil && pid != c.pid:
		case err == nil && status.Stopped():
			c.stopped(status.StopSignal())
		default:
			c.leave()
			c.ended <- status
			return
		}
	}
}

// stop passes Ctrl-Z on. relock stops when the child has, and not before: that would go on without the lock.
func (c *child) stop() {
	c.asked.Store(true)
	c.signal(syscall.SIGTSTP)
}

// stopped follows a child that has stopped by a signal.
func (c *child) stopped(by syscall.Signal) {
	switch asked := c.asked.Swap(false); {
	case asked, c.front:
		c.suspend()
	case by == syscall.SIGTTIN || by == syscall.SIGTTOU: // it uses the terminal
		if c.tty < 0 {
			tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
			if err != nil {
				return
			}
			c.tty = tty
		}
		if !inFront(c.tty) {
			c.suspend()
			return
		}
		c.enter()
		c.signal(syscall.SIGCONT)
	}
}

// stopTimeout is after how long relock counts as one that cannot be stopped.
const stopTimeout = time.Second

// suspend stops relock as Ctrl-Z would have done, since the shell waits for relock and not
// for the child. When the shell continues relock, the child goes on as well. The lease is
// not renewed in the meantime, and may be over by then.
func (c *child) suspend() {
	c.leave()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTTIN) // which stops as SIGTSTP does, and is not heard
	select {                             // kill returns before all threads have stopped
	case <-continued:
	case <-time.After(stopTimeout): // without a shell that could continue it, Linux does not stop relock
	}
	if inFront(c.tty) {
		c.enter()
	}
	c.signal(syscall.SIGCONT)
}

// inFront reports whether relock's own group is in the foreground of a terminal.
func inFront(tty int) bool {
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// enter puts the child's group into the foreground of the terminal, where relock's is.
func (c *child) enter() {
	_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, c.pid)
	c.front = true
}

// leave puts relock's group there again, if the child's has its place: else that is another job's.
func (c *child) leave() {
	if c.front {
		_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, unix.Getpgrp())
		c.front = false
	}
}

// signal sends a signal to the child's group. It is not an error if that has ended.
func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

// groupPoll is how often killGroup looks whether the group has ended.
const groupPoll = 20 * time.Millisecond

// killGroup waits until what the child has left behind has ended too, and kills it at the end of
// the grace period. It passes signals on until then.
func (c *child) killGroup(end time.Time, signals <-chan os.Signal) {
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for collectOthers(); syscall.Kill(-c.pid, 0) == nil; collectOthers() {
		select {
		case s := <-signals:
			c.signal(s.(syscall.Signal))
		case <-poll.C:
			if time.Now().After(end) {
				c.signal(syscall.SIGKILL)
				return
			}
		}
	}
}

// collectOthers collects what has ended since the child has: until then it is a part of the child's group.
func collectOthers() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
