package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"relock/internal/script"
)

// The levels of findings.
const (
	levelOK   = "ok"
	levelWarn = "warn" // locks work, and can be lost or late in cases that can be avoided
	levelFail = "fail" // locks do not work, or not for long
)

// Finding is one thing that doctor has looked at.
type Finding struct {
	Level  string `json:"level"`
	Check  string `json:"check"`
	Node   string `json:"node,omitempty"` // empty: of the deployment as a whole
	Text   string `json:"finding"`
	Remedy string `json:"remedy,omitempty"` // of what is not ok
}

func ok(check, format string, args ...any) Finding {
	return Finding{Level: levelOK, Check: check, Text: fmt.Sprintf(format, args...)}
}

func warn(check, text, remedy string) Finding {
	return Finding{Level: levelWarn, Check: check, Text: text, Remedy: remedy}
}

func fail(check, text, remedy string) Finding {
	return Finding{Level: levelFail, Check: check, Text: text, Remedy: remedy}
}

func newDoctor(g *global) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a Redis deployment is fit for locks",
		Long: `Check whether a Redis deployment is fit for locks: version, role, eviction, persistence,
Cluster, latency, and, with a lock of each kind under a name of its own, permissions and
messages. What is found wanting comes with a remedy.

The exit code is 1 if a check has failed; warnings are 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usage("--name is empty; a name has at least one byte")
			}
			findings, err := doctor(g, name)
			if err != nil {
				return err
			}
			if g.json {
				err = writeJSON(cmd.OutOrStdout(), findings)
			} else {
				err = printFindings(cmd.OutOrStdout(), findings)
			}
			failed := slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == levelFail })
			if err == nil && failed {
				err = &exitError{code: exitFound}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "relock-doctor", "what the names of the locks begin with that doctor takes;\nchoose one that the ACL allows")
	return cmd
}

// doctor makes all checks. An error is one of reaching Redis at all; that the user may not
// connect is a finding, and then the only one.
func doctor(g *global, name string) ([]Finding, error) {
	ctx, stop := g.interruptible()
	defer stop()
	client, err := g.dial(ctx)
	if script.Denied(err) && strings.Contains(err.Error(), "NOPERM") {
		// ROLE with Sentinel, say. A wrong password is Denied too, but no permission helps there.
		return []Finding{fail("connect", err.Error(), aclRemedy)}, nil
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	all := nodes(client)
	found := make([][]Finding, len(all))
	_ = onNodes(all, func(i int, n node) error {
		found[i] = checkNode(ctx, n, client.Mode())
		for k := range found[i] {
			found[i][k].Node = n.addr
		}
		return nil
	})
	findings := slices.Concat(found...)
	findings = append(findings, checkUser(ctx, client))
	findings = append(findings, tryOut(ctx, client, name)...)
	return findings, ctx.Err()
}

// checkUser says whom the rest is true of.
func checkUser(ctx context.Context, client rueidis.Client) Finding {
	user, err := client.Do(ctx, client.B().AclWhoami().Build()).ToString()
	if script.Denied(err) {
		return warn("user", "it is not known for which user the checks below hold: "+err.Error(), "allow +acl|whoami")
	}
	if err != nil {
		return ok("user", "not known: %v", err)
	}
	return ok("user", "%s; the checks below hold for this user", printable(user))
}

// printFindings writes a line for each finding, and one for its remedy.
func printFindings(w io.Writer, findings []Finding) error {
	rows := [][]string{{"LEVEL", "CHECK", "NODE", "FINDING"}}
	for _, f := range findings {
		rows = append(rows, []string{f.Level, f.Check, cmp.Or(f.Node, "-"), f.Text})
		if f.Remedy != "" {
			rows = append(rows, []string{"", "", "", "→ " + f.Remedy})
		}
	}
	return table(w, rows)
}
