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

// Goal: the block cache takes an eighth of the memory, within bounds, where nothing else is said.
func TestCacheSize(t *testing.T) {
	for memory, want := range map[uint64]int64{0: 256, 512 << 20: 256, 8 << 30: 1024, 1 << 40: 2048} {
		if got := defaultCacheMB(memory); got != want {
			t.Errorf("%d bytes of memory: %d MiB", memory, got)
		}
	}
	for given, want := range map[int64]int64{0: defaultCacheMB(availableMemory()), 1: 1} {
		opts, err := (&startFlags{logLevel: "warn", cacheMB: given}).options()
		if err != nil || opts.CacheBytes != want<<20 {
			t.Errorf("--cache-mb %d: %d bytes, %v", given, opts.CacheBytes, err)
		}
	}
	if _, err := (&startFlags{logLevel: "warn", cacheMB: -1}).options(); err == nil {
		t.Error("--cache-mb -1 is taken")
	}
}
