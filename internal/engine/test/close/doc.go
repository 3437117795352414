// Package close tests the end of a session: what Close and Shutdown release, whom they wake, and what they wait for.
package close
