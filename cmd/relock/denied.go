package main

import (
	"fmt"
	"regexp"
	"strings"

	"relock/internal/script"
)

// refusedCommand finds the command in a refusal: "to run the 'scan' command", "the 'pubsub|channels' command".
var refusedCommand = regexp.MustCompile(`the '([a-z|]+)' command`)

// remedy says what is to be allowed if err is a refusal by the ACL; "" if it is another error.
func remedy(err error) string {
	switch {
	case !script.Denied(err) || !strings.Contains(err.Error(), "NOPERM"):
		return "" // no permission helps against a wrong password
	case script.DeniedKeys(err):
		return "the ACL does not let this user at the keys of this lock: docs/operations.md#acl has those that locks need"
	}
	const all = "docs/cli.md#permissions has all that the command line needs"
	if found := refusedCommand.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Sprintf("allow +%s; %s", found[1], all)
	}
	return all
}
