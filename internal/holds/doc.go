// Package holds counts the holds of a section: the outermost one and the nested ones, those that the
// watchdog renews and those with a fixed lease. From these it knows when the section ends. It knows
// neither claims nor Redis.
//
// All of it is called with the mutex of the section's lock held, but for what runs code of the caller's
// contexts. That reads what does not change any more once a hold has run out or its section has ended.
//
// foreign.go tells contexts whose end is package context's from those that end by other
// means, and has the key by which package context finds the first kind.
//
// context.go makes the contexts of sections. What can be cancelled of one is made when somebody asks
// for it: most sections end before that, and cost nothing.
//
// nested.go makes the contexts of nested Locks: each has the values of what the caller gave, and
// ends with that or with the section that the Lock lies in.
//
// owner.go says for whom a Lock with a context acts: for an owner whom the caller has named, or for
// a private one, in the sections that the context lies in.
package holds
