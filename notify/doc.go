// Package notify delivers the notifications of NOTIFY to the sessions that LISTEN to their channels.
//
//	Hub.Announce ─▶ commit ─▶ Announcement.Publish ─▶ index by channel ─▶ Listener's queue ─▶ connection
//	     │                            │
//	     └──── Link (package rpc) ────┴─────▶ Exchange ─▶ Hubs of the other SQL processes of the cluster
//
// A sender announces the channels before its transaction commits, and publishes the notifications, cancels the announcement or
// reports that the outcome is unknown afterwards.
//
// Invariants:
//
//	N1 A listener receives the notifications of every transaction that commits after its LISTEN has returned, those of one
//	   sender in the order of their commits; or it is ended with an error. None is left out.
//	N2 Notifications are published after the commit: whoever reads when it receives one sees what was committed.
//	N3 The cost of a notification depends on the listeners of its channel alone. No lock is common to all channels.
//	N4 Queues are bounded. A listener whose queue is full is ended.
//
// The Exchange also reports that a process has ended (ExchangeOptions.Ended), so that others do not wait for what it held, and
// passes on hints about locks between two processes (LockHint), which it may drop.
//
// In a cluster the Exchange is in the tso process. It ends the listeners of the channels that a process has announced when the
// connection to that process breaks, since nobody knows whether the transactions have committed; a process that loses its
// connection to the Exchange ends all of its listeners. One case is not covered: the tso process and the process of a sender end
// within the same commit, and a client begins to listen in between.
package notify
