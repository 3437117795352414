package engine

import "relock/internal/kind"

// The contract with the kinds of locks, by the names that the files here use.
type (
	Kind      = kind.Kind
	Primitive = kind.Primitive
	Leased    = kind.Leased
	Op        = kind.Op
)
