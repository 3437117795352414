// Command relock runs commands under a distributed lock, and shows and repairs the locks of a
// Redis deployment. docs/cli.md is its manual.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"relock/rlock"
)

// environment names the variable that stands in for --redis.
const environment = "RELOCK_REDIS"

// global are the flags that all commands have.
type global struct {
	redis string
	json  bool
	began bool            // the arguments were accepted, and the command has begun
	work  context.Context // of a command that a signal ends: see interruptible
}

func main() { os.Exit(execute()) }

// execute runs the command line and returns the exit code.
func execute() int {
	g := &global{}
	root := newRoot(g)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if g.work != nil && errors.As(context.Cause(g.work), new(*exitError)) {
		err = context.Cause(g.work) // whatever the command has failed with then
	}
	code := exitCode(err)
	if !g.began {
		code = exitUsage
		g.json = g.json || wantsJSON(os.Args[1:]) // what is wrong may stand in front of it
	}
	if silent(err) {
		return code
	}
	if g.json {
		fields := map[string]any{"error": err.Error(), "exit": code}
		if text := remedy(err); text != "" {
			fields["remedy"] = text
		}
		_ = json.NewEncoder(os.Stderr).Encode(fields)
		return code
	}
	fmt.Fprintf(os.Stderr, "relock: %v\n", err)
	if text := remedy(err); text != "" {
		fmt.Fprintf(os.Stderr, "→ %s\n", text)
	}
	if code == exitUsage {
		fmt.Fprintf(os.Stderr, "Try '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// wantsJSON reports whether --json is among the arguments of relock.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

func newRoot(g *global) *cobra.Command {
	root := &cobra.Command{
		Use:   "relock",
		Short: "Run commands under a distributed lock on Redis; see and repair locks",
		Long: `Run commands under a distributed lock on Redis; see and repair locks.

Exit codes: 64 wrong usage, 69 Redis unavailable, 70 any other error,
75 not acquired, 79 lock lost. 'relock run' otherwise exits as its command does.`,
		Version:       rlock.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("redis") && g.redis == "" { // a variable that is not set, in a script: force must not go elsewhere
				return usage("--redis is empty; it must be a URL, as redis://host:6379, or be left out")
			}
			g.began = true
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("{{if eq (.Flag \"json\").Value.String \"true\"}}{\n  \"version\": \"{{.Version}}\"\n}{{else}}relock version {{.Version}}{{end}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&g.redis, "redis", "", "URL of Redis: redis://[user:password@]host:port[/db], rediss://…, unix://…;\n"+
		"?addr=host:port for further nodes of a Cluster, ?master_set=name for Sentinel\n"+
		"(default $"+environment+", else redis://127.0.0.1:6379)")
	flags.BoolVar(&g.json, "json", false, "print JSON, also for errors")
	root.AddCommand(newRun(g), newList(g), newShow(g), newTop(g), newLeader(g), newForce(g), newDoctor(g), newVersion(g))
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = helpTopic
	}
	return root
}

// helpTopic checks the arguments of help. Without it help prints to standard error what it does not know, and succeeds.
func helpTopic(help *cobra.Command, args []string) error {
	_, rest, err := help.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown help topic %q", strings.Join(args, " "))
	}
	return err
}

func newVersion(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of relock",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if g.json {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"version": rlock.Version})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), rlock.Version)
			return err
		},
	}
}

// url is the address in use. The default is not the flag's, so that a password in the
// environment is not shown by --help.
func (g *global) url() string {
	if g.redis != "" {
		return g.redis
	}
	if env := os.Getenv(environment); env != "" {
		return env
	}
	return "redis://127.0.0.1:6379"
}

// signalPatience is how long a command has to end by itself when a signal has told it to. It may stand in a write to a
// pipe that nobody reads.
const signalPatience = 3 * time.Second

// interruptible returns a context that ends at the signals by which a user ends a command, but for those that are
// ignored, as under nohup. The command has ended when the returned function is called.
func (g *global) interruptible() (context.Context, context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	g.work = ctx
	ended, end := context.WithCancel(context.Background())
	go func() {
		select {
		case s := <-signals:
			cancel(signalled(s))
		case <-ended.Done():
			return
		}
		select {
		case <-time.After(signalPatience):
			os.Exit(exitCode(context.Cause(ctx)))
		case <-ended.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil); end() }
}

// exactlyOneName checks the arguments of commands about one lock.
func exactlyOneName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 1:
		return fmt.Errorf("%s given; this command is about exactly one lock", count(len(args), "name was", "names were"))
	case args[0] == "":
		return errors.New("the name is empty; a name has at least one byte")
	}
	return nil
}
