package rpc

import (
	"maps"
	"slices"
	"strings"

	"github.com/percodb/percodb/internal/certs"
)

// access lists who may call what: a service, or a method of one, which then counts instead. What is not listed is refused.
var access = map[string][]certs.Role{
	"/percodb.tso.v1.Oracle":           {certs.SQL, certs.KV},
	"/percodb.kv.v1.WaitGraph":         {certs.SQL, certs.KV},
	"/percodb.readlease.v1.Leases":     {certs.SQL},
	"/percodb.notify.v1.Notifications": {certs.SQL},

	"/percodb.gc.v1.GarbageCollection":        {certs.SQL},
	"/percodb.gc.v1.GarbageCollection/Report": {certs.SQL, certs.KV}, // a store asks for the safe point

	"/percodb.kv.v1.Directory":                 {certs.SQL, certs.KV}, // to find ranges and stores
	"/percodb.kv.v1.Directory/CreateRange":     {certs.SQL},
	"/percodb.kv.v1.Directory/RegisterShard":   {certs.KV},
	"/percodb.kv.v1.Directory/ReportRanges":    {certs.KV},
	"/percodb.kv.v1.Directory/Announce":        {certs.KV},
	"/percodb.kv.v1.Directory/AllocateRangeID": {certs.KV},
	"/percodb.kv.v1.Directory/ForgetShard":     {certs.Operator},

	"/percodb.kv.v1.Shard":                  {certs.SQL, certs.TSO}, // the tso process collects garbage
	"/percodb.kv.v1.Notifier":               {certs.SQL, certs.TSO},
	"/percodb.kv.v1.Collector":              {certs.TSO},
	"/percodb.kv.v1.Collector/SyncLog":      {certs.TSO, certs.SQL}, // observers
	"/percodb.kv.v1.Collector/SetSafePoint": {certs.TSO, certs.SQL}, // views of stores read it
	"/percodb.kv.v1.RangeOwner":             {certs.TSO},

	"/grpc.health.v1.Health": anyProcess, // pings
}

// anyProcess lists every role.
var anyProcess = []certs.Role{certs.TSO, certs.KV, certs.SQL, certs.Operator}

// callers returns the roles that may call a method, given as /SERVICE/METHOD.
func callers(method string) []certs.Role {
	if roles, ok := access[method]; ok {
		return roles
	}
	return access[method[:max(strings.LastIndexByte(method, '/'), 0)]]
}

// MayCall reports whether a process of that role may call a method, given as /SERVICE/METHOD.
func MayCall(role certs.Role, method string) bool { return slices.Contains(callers(method), role) }

// Rules returns the names of the services and methods for which rules exist, as /SERVICE or /SERVICE/METHOD.
func Rules() []string { return slices.Sorted(maps.Keys(access)) }
