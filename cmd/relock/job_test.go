package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"relock/internal/test/redistest"
)

// startShell starts a shell that has job control, in a terminal.
func startShell(tb testing.TB, c cli) *terminal {
	tb.Helper()
	shell := exec.Command("sh", "-i")
	shell.Env = append(c.command().Env, "PS1=prompt$ ", "ENV=", "RELOCK="+binary)
	term := startTerminal(tb, shell)
	term.until("prompt$ ")
	return term
}

// pid is the number that a command has printed, as pid=42.
func (t *terminal) pid() int {
	t.tb.Helper()
	t.until("pid=")
	from := t.from
	t.until(".")
	return pid(t.tb, t.text()[from:t.from-1])
}

// halted reports whether a process has stopped.
func halted(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return bytes.HasPrefix(bytes.TrimSpace(out), []byte("T"))
}

// Ctrl-Z stops the command together with relock also where its standard input is another file: it would go on without
// the lock, which is not renewed while relock is stopped.
func TestRunStopsBesideAnotherInput(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	term := startShell(t, newCLI(t, redistest.Mini(t)))
	term.write(`$RELOCK run x -- sh -c 'echo pi''d=$$.; while [ -e "$0" ]; do sleep 0.02; done; echo go''ne' ` + string(g) + " </dev/null\r")
	command := term.pid()
	term.write("\x1a")
	term.until("Stopped")
	term.until("prompt$ ")
	if !halted(command) {
		t.Error("the command goes on although relock is stopped")
	}
	term.write("fg\r")
	g.open(t)
	term.until("gone")
	term.until("prompt$ ")
	term.write("exit\r")
	if code := term.wait(); code != 0 {
		t.Errorf("the shell's exit code is %d\n%q", code, term.text())
	}
}

// A command that was sent to the background, and reads from the terminal, stops like any other, and leaves the terminal
// to the shell.
func TestRunInTheBackground(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	term := startShell(t, newCLI(t, redistest.Mini(t)))
	term.write(`$RELOCK run x -- sh -c 'echo pi''d=$PPID.; while [ -e "$0" ]; do sleep 0.02; done; read line; echo "got $line"' ` + string(g) + "\r")
	relock := term.pid()
	term.write("\x1a")
	term.until("Stopped")
	term.until("prompt$ ")
	term.write("bg\r")
	eventually(t, "relock to go on", func() bool { return !halted(relock) })
	g.open(t)
	eventually(t, "relock to stop with the command", func() bool { return halted(relock) })
	term.write("echo shell''reads\r")
	term.until("shellreads")
	term.write("fg\r")
	term.write("hello\r")
	term.until("got hello")
	term.until("prompt$ ")
	term.write("exit\r")
	if code := term.wait(); code != 0 {
		t.Errorf("the shell's exit code is %d\n%q", code, term.text())
	}
}

// A pager behind the command has the terminal, and does not stop relock by asking for it: the command would go on without
// the lock.
func TestRunBeforeAPager(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	term := startShell(t, newCLI(t, redistest.Mini(t)))
	term.write(`$RELOCK run x -- sh -c 'echo one; while [ -e "$0" ]; do sleep 0.02; done; read line; echo "$line"' ` + string(g) +
		` | sh -c 'read line; read key </dev/tty; echo "pa''ges $line $key"; cat'` + "\r")
	term.write("down\r")
	term.until("pages one down")
	g.open(t)
	term.write("answer\r")
	term.until("answer")
	term.until("answer")
	term.until("prompt$ ")
	term.write("exit\r")
	if code := term.wait(); code != 0 {
		t.Errorf("the shell's exit code is %d\n%q", code, term.text())
	}
}

// A command whose standard input is another file has the terminal when it asks for it there, as for a password.
func TestRunLetsTheCommandUseTheTerminal(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	script := exec.Command("sh", "-c", `"$RELOCK" run x -- sh -c 'read line </dev/tty; echo "got $line"; exit 6' </dev/null
		echo "code $?"; read line; echo "read $line"`)
	script.Env = append(c.command().Env, "RELOCK="+binary)
	term := startTerminal(t, script)
	term.write("hello\r")
	term.until("got hello")
	term.until("code 6")
	term.write("again\r")
	term.until("read again")
	if code := term.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A command that cannot be executed leaves the terminal to those who had it: what a script reads behind it.
func TestRunGivesTheTerminalBackWithoutACommand(t *testing.T) {
	t.Parallel()
	c := newCLI(t, redistest.Mini(t))
	program := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, []byte("of no machine"), 0o700))
	script := exec.Command("sh", "-c", `"$RELOCK" run x -- "$0"; echo "code $?"; read line; echo "read $line"`, program)
	script.Env = append(c.command().Env, "RELOCK="+binary)
	term := startTerminal(t, script)
	term.until("code 126")
	term.write("hello\r")
	term.until("read hello")
	if code := term.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
