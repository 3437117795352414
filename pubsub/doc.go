// Package pubsub shares Redis subscriptions among all the waiters of a process. It
// knows channels, not locks.
//
// # What is guaranteed
//
// When [Hub.Listen] returns without an error, the server has confirmed the
// subscription. From then until [Listener.Close] whatever is published on the channel
// either arrives or is made up for by a Message with Missed set. Such a Message comes when
// a connection is lost, a cluster slot moves, or Sentinel names another master: once when
// the loss is noticed, and once more when the new subscription is confirmed. A listener that looks at the state itself after each
// Message, Missed or not, therefore never sleeps on a change that it could have been
// told of.
//
// # What is not
//
//   - How soon a silent network is noticed is up to the client: rueidis pings an idle
//     connection every Dialer.KeepAlive (1 s) and gives up on it after
//     ConnWriteTimeout (10 s). Nothing arrives meanwhile.
//   - A Sentinel failover is noticed up to a second after the client has followed it.
//     While a cluster slot migrates, a message may be published on the node that the
//     hub is not listening to; the Missed comes when the server says that the slot is
//     gone. Redis itself delivers at most once.
//   - A subscription on a node that is alive but cut off from the rest of its
//     cluster hears nothing of what is published elsewhere.
//
// So a message is a reason to look again, and never the only one: keep a slow timer
// beside it.
//
// # What it costs
//
// One connection per Redis node that carries a channel, apart from the client's own,
// and one goroutine per connection besides rueidis's; nothing per channel or listener.
// A channel is subscribed with its first listener and unsubscribed a moment after its
// last ([Linger]); Listen calls made at the same time share SUBSCRIBE commands. When no
// channel is left there is neither a connection nor a goroutine.
//
// # Use
//
//	hub := pubsub.NewHub(client)
//	defer hub.Close()
//	l, err := hub.Listen(ctx, "jobs:changed")
//	if err != nil {
//		return err // not subscribed; poll, and call Listen again later
//	}
//	defer l.Close()
//	for !done() { // look first: it may have happened before Listen
//		select {
//		case <-l.C():
//		case <-time.After(pollFloor):
//		case <-ctx.Done():
//			return ctx.Err()
//		}
//	}
package pubsub
