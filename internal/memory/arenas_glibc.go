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

// The storage engine's cache is allocated by the C allocator. Free memory of one of its arenas cannot be used by the
// others, and by default it creates up to eight for each processor: with MALLOC_ARENA_MAX=1 an UPDATE of ten million
// rows peaked at 463 MB instead of 582 (one run each). The process begins with one arena for four processors, unless the
// environment sets another number.
