package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/connect"
	"relock/internal/keyname"
	"relock/rlock"
)

// server is the deployment that --redis names.
type server struct {
	client  rueidis.Client
	session *rlock.Session
	style   keyname.Style
	labels  labels
}

// silence is after how long without an answer a connection counts as dead.
const silence = 3 * time.Second

// connect makes the client, and the session through which locks are looked at.
func (g *global) connect(ctx context.Context) (*server, error) {
	client, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	session, err := rlock.NewSession(ctx, client, rlock.Config{Logger: slog.New(slog.DiscardHandler)}) // what it warns of, commands say themselves
	if err != nil {
		client.Close()
		return nil, err
	}
	return &server{
		client: client, session: session,
		style: keyname.Style{Cluster: client.Mode() == rueidis.ClientModeCluster},
	}, nil
}

// dial makes the client alone, with the settings that locks need; see [rlock.Dial]. It does not try again: a
// person who looks at a deployment wants to know that a node does not answer.
func (g *global) dial(ctx context.Context) (rueidis.Client, error) {
	opt, err := g.option()
	if err != nil {
		return nil, err
	}
	opt.AlwaysPipelining = true
	opt.PipelineMultiplex = -1
	opt.DisableCache = true
	if opt.ConnWriteTimeout == 0 {
		opt.ConnWriteTimeout = silence
	}
	opt.DisableRetry = true
	hurried, calm := connect.Hurry(ctx, opt)
	client, err := rueidis.NewClient(hurried)
	calm()
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(opt.InitAddress, ", "), connect.Explain(ctx, opt, err, connect.URL))
	}
	return client, nil
}

// option parses the URL of Redis, and says where it stands if it is wrong.
func (g *global) option() (rueidis.ClientOption, error) {
	opt, err := connect.ParseURL(g.url())
	if err != nil {
		where := environment
		if g.redis != "" {
			where = "--redis"
		}
		err = fmt.Errorf("%s: %w", where, err)
	}
	return opt, err
}

func (s *server) close() {
	_ = s.session.Close() // it holds nothing
	s.client.Close()
}

// node is one server of the deployment.
type node struct {
	addr string
	rueidis.Client
}

// nodes returns all nodes that the client knows, in the order of their addresses.
func nodes(client rueidis.Client) []node {
	var all []node
	for addr, c := range client.Nodes() {
		all = append(all, node{addr, c})
	}
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	return all
}

// onNodes runs fn for all nodes at the same time, and returns the first error.
func onNodes(all []node, fn func(i int, n node) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() {
			if err := fn(i, n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.addr, err)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// masters returns the nodes that have keys to scan: in a Cluster its masters.
func masters(ctx context.Context, client rueidis.Client) []node {
	all := nodes(client)
	if client.Mode() != rueidis.ClientModeCluster {
		return all
	}
	keep := make([]bool, len(all))
	_ = onNodes(all, func(i int, n node) error {
		text, err := n.Do(ctx, n.B().Info().Section("replication").Build()).ToString()
		// A node that may not be asked counts: a replica gives the same names twice.
		keep[i] = err != nil || info(text)["role"] != "slave"
		return nil
	})
	var found []node
	for i, n := range all {
		if keep[i] {
			found = append(found, n)
		}
	}
	return found
}

// info parses the reply of INFO or CLUSTER INFO. Both are verbatim strings, whose format the
// client leaves in front.
func info(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}
