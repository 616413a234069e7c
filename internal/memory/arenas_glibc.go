//go:build cgo && linux

package memory

/*
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __GLIBC__
// Runs before Go's first thread: arenas are not given up.
__attribute__((constructor)) static void limit_arenas(void) {
	long n = sysconf(_SC_NPROCESSORS_ONLN) / 4;
	if (getenv("MALLOC_ARENA_MAX") == NULL)
		mallopt(M_ARENA_MAX, n < 1 ? 1 : (int)n);
}
#endif
*/
import "C"

// The storage engine's cache lies in memory of the C allocator. What is free in one of its arenas cannot be used
// by the others, and by default it makes up to eight for each processor: with MALLOC_ARENA_MAX=1 an
// UPDATE of ten million rows peaked at 463 MB where it had at 582 (one run each). One arena for four processors is what the process begins with, unless
// the environment says otherwise.
