package waiting

import "iter"

// queue.go, turns.go and limit.go decide which caller of a session asks Redis for a lock, and when: a FIFO queue
// of waiters of which the one in front asks (named owners ask as well, and so does a TryLock, which
// does not wait: package engine does that), the most that a request may be for, and the time
// slices in which the session alternates with other sessions. They know neither Redis nor locks, and
// guard nothing by themselves: the caller's mutex does.

// Queue is a FIFO queue of waiters. The zero value is empty. A queue does not allocate: the
// waiters contain their links.
type Queue[T any] struct {
	First *Node[T] // the link of the waiter in front, nil if there is none; to be read only
}

// Len counts the waiters, up to so many.
func (q *Queue[T]) Len(most int) (n int) {
	for at := q.First; at != nil && n < most; at = at.Next {
		n++
	}
	return n
}

// Node is one waiter's link. Of must be set before the node is pushed.
type Node[T any] struct {
	Of   *T
	Next *Node[T] // the link of the waiter behind, nil at the end; to be read only
	prev *Node[T] // that of the front is the end, so that the queue is one pointer
}

// All goes through the waiters in their order. The one that is at hand may be removed.
func (q *Queue[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for n := q.First; n != nil; {
			next := n.Next
			if !yield(n.Of) {
				return
			}
			n = next
		}
	}
}

// Push puts n at the end.
func (q *Queue[T]) Push(n *Node[T]) {
	if q.First == nil {
		q.First, n.prev = n, n
		return
	}
	n.prev, q.First.prev = q.First.prev, n
	n.prev.Next = n
}

// Remove takes n out.
func (q *Queue[T]) Remove(n *Node[T]) {
	if n.Next != nil {
		n.Next.prev = n.prev
	} else {
		q.First.prev = n.prev
	}
	if n == q.First {
		q.First = n.Next
	} else {
		n.prev.Next = n.Next
	}
	n.Next, n.prev = nil, nil
}
