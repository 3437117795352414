package main

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
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
// gives it back when it stops or ends. So Ctrl-C and Ctrl-Z work, and reach it once.
type child struct {
	pid   int
	tty   int                     // the terminal that was handed over, or -1
	ended chan syscall.WaitStatus // gets one value
}

// startChild starts the command with relock's own standard files.
func startChild(path string, args, env []string) (*child, error) {
	c := &child{tty: -1, ended: make(chan syscall.WaitStatus, 1)}
	attr := &syscall.SysProcAttr{Setpgid: true}
	stdin := int(os.Stdin.Fd())
	if group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
		c.tty = stdin
		attr = &syscall.SysProcAttr{Foreground: true, Ctty: stdin}
	}
	p, err := os.StartProcess(path, args, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	if c.tty >= 0 {
		// To take the terminal back is refused to a background process by this signal. It is
		// ignored from here on only, since the command would inherit that.
		signal.Ignore(syscall.SIGTTOU)
	}
	if err != nil {
		c.giveTerminal(unix.Getpgrp()) // which it takes before it becomes the command
		return nil, err
	}
	c.pid = p.Pid
	_ = p.Release() // wait collects it: os.Process cannot tell that a child has stopped
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
			if c.tty >= 0 {
				c.suspend()
			}
		default:
			c.giveTerminal(unix.Getpgrp())
			c.ended <- status
			return
		}
	}
}

// stopTimeout is after how long relock counts as one that cannot be stopped.
const stopTimeout = time.Second

// suspend stops relock as Ctrl-Z would have done, since the shell waits for relock and not
// for the child. When the shell continues relock, the child goes on as well. The lease is
// not renewed in the meantime, and may be over by then.
func (c *child) suspend() {
	c.giveTerminal(unix.Getpgrp())
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select { // kill returns before all threads have stopped
	case <-continued:
	case <-time.After(stopTimeout): // without a shell that could continue it, Linux does not stop relock
	}
	if group, err := unix.IoctlGetInt(c.tty, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
		c.giveTerminal(c.pid)
	}
	c.signal(syscall.SIGCONT)
}

// giveTerminal puts a process group into the foreground.
func (c *child) giveTerminal(group int) {
	if c.tty >= 0 {
		_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, group)
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
