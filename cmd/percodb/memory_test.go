package main

import (
	"testing"
	"testing/fstest"
)

// Goal: the limit of a container or service is found, whatever the version of control groups and however
// much of their tree is mounted; the lowest counts. Method: file systems as they are found there.
func TestCgroupLimit(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"not Linux":                 {nil, 0},
		"version 2, container":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"version 2, no limit":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"version 2, root":           {map[string]string{"proc/self/cgroup": "0::/\n"}, 0},
		"version 2, path elsewhere": {map[string]string{"proc/self/cgroup": "0::/../../docker/abc\n", "sys/fs/cgroup/memory.max": "1024"}, 1024},
		"version 2, limit above": {map[string]string{
			"proc/self/cgroup":                                      "0::/system.slice/percodb.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                 "1000",
			"sys/fs/cgroup/system.slice/percodb.service/memory.max": "2000",
		}, 1000},
		"version 2, limit below": {map[string]string{
			"proc/self/cgroup":                    "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":          "max",
			"sys/fs/cgroup/a/b/memory.max":        "2000",
			"sys/fs/cgroup/memory.max":            "3000",
			"sys/fs/cgroup/other/memory.max":      "1",
			"sys/fs/cgroup/memory.limit_in_bytes": "1",
		}, 2000},
		"version 1, container": {map[string]string{
			"proc/self/cgroup":                           "12:cpu,cpuacct:/docker/abc\n7:memory:/docker/abc\n1:name=systemd:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 256 << 20},
		"version 1, service": {map[string]string{
			"proc/self/cgroup":                             "7:hugetlb,memory:/a\n0::/a\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n",
		}, 4096},
		"nonsense": {map[string]string{"proc/self/cgroup": "\n0\n7:memory\n0::\n", "sys/fs/cgroup/memory.max": "-1"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(root); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Goal: half of the memory is taken where nothing else is said, the cache a quarter of that within bounds,
// and the parts' sum is not more than the whole.
func TestMemoryShares(t *testing.T) {
	for available, want := range map[uint64]byteSize{0: 4 << 30, 128 << 20: 256 << 20, 2 << 30: 1 << 30, 16 << 30: 8 << 30} {
		if got := defaultMemory(available); got != want {
			t.Errorf("%d bytes of memory: %s", available, got.String())
		}
	}
	for _, test := range []struct {
		memory  byteSize
		cacheMB int64
		want    int64 // cache in MiB
	}{{1 << 30, 0, 256}, {64 << 30, 0, 2048}, {256 << 20, 0, 64}, {1 << 30, 1, 1}, {1 << 30, 768, 768}} {
		opts, err := (&startFlags{logLevel: "warn", maxConnections: 1, memory: test.memory, cacheMB: test.cacheMB}).options()
		if err != nil || opts.CacheBytes != test.want<<20 {
			t.Errorf("--memory %s --cache-mb %d: %d bytes, %v", test.memory.String(), test.cacheMB, opts.CacheBytes, err)
			continue
		}
		if sum := opts.CacheBytes + opts.Memory.Limit(); sum > int64(test.memory) || opts.Memory.Limit() < int64(test.memory)/8 {
			t.Errorf("--memory %s --cache-mb %d: the pool has %d bytes", test.memory.String(), test.cacheMB, opts.Memory.Limit())
		}
	}
	for _, f := range []startFlags{{memory: 1 << 30, cacheMB: -1}, {memory: 1 << 30, cacheMB: 1000}, {memory: 1 << 20}} {
		f.logLevel, f.maxConnections = "warn", 1
		if _, err := f.options(); err == nil {
			t.Errorf("--memory %s --cache-mb %d is taken", f.memory.String(), f.cacheMB)
		}
	}
}

// Goal: sizes are read and printed with PostgreSQL's units.
func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"2GB": 2 << 30, "1500MB": 1500 << 20, "1.5gb": 1536 << 20, "512 MB": 512 << 20, "100kb": 100 << 10} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%s: %d, %v", text, int64(b), err)
		}
	}
	for _, text := range []string{"", "GB", "12", "-1GB", "x MB", "NaNMB", "99999999999TB"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"2GB", "1500MB", "3TB"} {
		var b byteSize
		if err := b.Set(text); err != nil || b.String() != text {
			t.Errorf("%s is printed as %s", text, b.String())
		}
	}
}
