package rlock_test

import (
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Each server has words of its own for what an ACL forbids, in and outside of scripts. A session
// finds in all of them whether it is about keys. Without a prefix that is no reason to fail: the
// names of the locks may be allowed.
func TestStartUnderstandsEachServersRefusal(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	const keys, commands = `"app:"`, "commands that docs/operations.md#acl lists"
	for text, remedy := range map[string]string{
		// Redis 6.2 and 7.0
		"NOPERM this user has no permissions to access one of the keys used as arguments": keys,
		"ERR Error running script (call to f_1): @user_script:5: @user_script: 5: " +
			"The user executing the script can't access at least one of the keys mentioned in the command arguments": keys,
		"NOPERM this user has no permissions to run the 'evalsha' command":                   commands,
		"ERR The user executing the script can't run this command or subcommand script: f_1": commands,
		// Redis 7.2 and later, and Valkey
		"NOPERM No permissions to access a key":                                             keys,
		"ERR ACL failure in script: User u has no permissions to access the 'app:x' key":    keys,
		"NOPERM User u has no permissions to run the 'evalsha' command":                     commands,
		"ERR ACL failure in script: User u has no permissions to run the 'hkeys' command":   commands,
		"ERR ACL failure in script: User u has no permissions to access the 'keys' channel": commands,
	} {
		p := faulttest.New(t, s.Addr)
		p.RefuseCommand("EVALSHA", text)
		locktest.CannotWork(t, text, p.Option(s.Option()), rlock.Config{Prefix: "app:"}, remedy)
		if remedy == commands {
			locktest.CannotWork(t, text, p.Option(s.Option()), rlock.Config{}, remedy)
			continue
		}
		ses, err := rlock.Dial(within(t, 20*time.Second), p.Option(s.Option()), rlock.Config{})
		if err != nil {
			t.Errorf("%s, without a prefix: %v", text, err)
			continue
		}
		must(t, ses.Close())
	}
}
