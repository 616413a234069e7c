package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pbnjay/memory"
)

// availableMemory is the memory that the process may use, in bytes: the machine's, or less in a container or service
// with a limit; 0 if unknown.
func availableMemory() uint64 {
	total := memory.TotalMemory()
	if limit := cgroupLimit(os.DirFS("/")); limit != 0 && (total == 0 || limit < total) {
		return limit
	}
	return total
}

// cgroupLimit is the lowest memory limit of the process's control group and those above it, 0 if there is none. root is
// the file system. Within a container the path in /proc/self/cgroup may be that outside, of which only the end, or
// nothing, is mounted; therefore all existing suffixes are checked.
//
//	version 2   0::/a/b          /sys/fs/cgroup/a/b/memory.max
//	version 1   7:memory:/a/b    /sys/fs/cgroup/memory/a/b/memory.limit_in_bytes
func cgroupLimit(root fs.FS) uint64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0 // Not Linux.
	}
	var lowest uint64
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch controllers := strings.Split(fields[1], ","); {
		case controllers[0] == "":
		case slices.Contains(controllers, "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			if limit := readLimit(root, path.Join(mount, group, file)); limit != 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
			if group == "/" {
				break
			}
		}
	}
	return lowest
}

// readLimit reads a number of bytes; 0 if there is none, for example if the file contains max.
func readLimit(root fs.FS, name string) uint64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0
	}
	return limit
}
