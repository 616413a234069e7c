package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallFS is a filesystem in memory of limited size. Preallocated files take their space at once.
type smallFS struct {
	vfs.FS

	mu struct {
		sync.Mutex
		total     int64
		others    int64 // bytes that other programs use
		allocated map[string]int64
	}
}

func newSmallFS(total uint64) *smallFS {
	s := &smallFS{FS: vfs.NewMem()}
	s.mu.total = int64(total)
	s.mu.allocated = map[string]int64{}
	return s
}

func (s *smallFS) setOthers(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.others = bytes
}

func (s *smallFS) addSpace(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.total += bytes
}

func (s *smallFS) others() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.others
}

func (s *smallFS) freeLocked() int64 {
	free := s.mu.total - s.mu.others
	for _, n := range s.mu.allocated {
		free -= n
	}
	return max(free, 0)
}

func (s *smallFS) free() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freeLocked()
}

func (s *smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, total := uint64(s.freeLocked()), uint64(s.mu.total)
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: total, UsedBytes: total - free}, nil
}

// grow makes the file take up at least size bytes.
func (s *smallFS) grow(name string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := size - s.mu.allocated[name]
	if more > s.freeLocked() {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	s.mu.allocated[name] += max(more, 0)
	return nil
}

func (s *smallFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	s.forget(name)
	return &smallFile{File: f, fs: s, name: name}, nil
}

func (s *smallFS) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.allocated, name)
}

func (s *smallFS) Remove(name string) error {
	err := s.FS.Remove(name)
	if err == nil {
		s.forget(name)
	}
	return err
}

func (s *smallFS) Rename(oldname, newname string) error {
	err := s.FS.Rename(oldname, newname)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.allocated[newname] = s.mu.allocated[oldname]
		delete(s.mu.allocated, oldname)
	}
	return err
}

func (s *smallFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.Remove(oldname); err != nil {
		return nil, err
	}
	return s.Create(newname, category)
}

func (s *smallFS) Unwrap() vfs.FS { return s.FS }

type smallFile struct {
	vfs.File
	fs      *smallFS
	name    string
	written int64
}

func (f *smallFile) Write(p []byte) (int, error) {
	if err := f.fs.grow(f.name, f.written+int64(len(p))); err != nil {
		return 0, err
	}
	f.written += int64(len(p))
	return f.File.Write(p)
}

func (f *smallFile) Preallocate(offset, length int64) error {
	return f.fs.grow(f.name, offset+length)
}

// eventually waits until ok, or fails the test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// put writes a value of a size that does not compress, if it is admitted.
func put(e *Engine, key string, size int) error {
	value := make([]byte, size)
	rng := rand.New(rand.NewPCG(uint64(size), uint64(len(key))))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	if err := e.AdmitWrite(size); err != nil {
		return err
	}
	b := e.NewBatch(0)
	defer b.Close()
	b.Put(AppendSentinel([]byte(key)), value)
	return errors.Join(e.Apply(b, Sync), b.SyncWait())
}

// fill writes keys from n on until the disk is full, and returns how many there are then.
func fill(t *testing.T, e *Engine, n int) int {
	t.Helper()
	for ; ; n++ {
		err := put(e, fmt.Sprintf("k%05d", n), 20_000)
		var full *DiskFullError
		if errors.As(err, &full) && errors.Is(err, syscall.ENOSPC) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if n > 100_000 {
			t.Fatal("the disk is never full")
		}
	}
}

func checkKeys(t *testing.T, e *Engine, n int) {
	t.Helper()
	for i := range n {
		if !has(t, e, fmt.Sprintf("k%05d", i)) {
			t.Fatalf("key %d of %d is lost", i, n)
		}
	}
}

// Goal: a full disk refuses writes before the log meets it, reads go on, what is under way has room, and
// writes go on by themselves when there is room again; so too over a restart on the full disk, and one that
// other programs filled to the last byte. Method: a filesystem of 128 MB.
func TestFullDiskRefusesWritesAndRecovers(t *testing.T) {
	disk := newSmallFS(128 << 20)
	open := func() *Engine {
		e, err := Open(Options{Dir: "data", FS: disk, CacheBytes: 1 << 20, OnFatal: func(err error) { t.Errorf("the engine failed: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	eventually(t, "reserve", func() bool { _, err := disk.Stat("data/" + reserveFile); return err == nil })
	n := fill(t, e, 0)
	if used := int64(n) * 20_000; used < 128<<20/2 {
		t.Errorf("the disk of 128 MB was full with %d bytes of data", used)
	}
	checkKeys(t, e, n)
	apply(t, e, Sync, "under way")
	mustClose(t, e)

	e = open()
	checkKeys(t, e, n)
	n = fill(t, e, n) // what the restart has compacted may be in use again
	// Other programs take the rest, the reserve too as soon as it is given back.
	disk.setOthers(disk.free() + disk.others())
	written := make(chan error, 1)
	go func() {
		b := e.NewBatch(0)
		defer b.Close()
		b.Put(AppendSentinel([]byte("late")), make([]byte, 30<<20))
		written <- errors.Join(e.Apply(b, Sync), b.SyncWait())
	}()
	checkKeys(t, e, n)
	select {
	case err := <-written:
		t.Fatalf("30 MB were written to a full disk: %v", err)
	case <-time.After(300 * time.Millisecond): // A write that does not wait ends sooner.
	}
	disk.addSpace(256 << 20)
	disk.setOthers(0)
	if err := <-written; err != nil {
		t.Fatalf("the write under way: %v", err)
	}
	eventually(t, "writes", func() bool { return put(e, "k99999", 100) == nil })
	eventually(t, "reserve", func() bool { _, err := disk.Stat("data/" + reserveFile); return err == nil })
	if !has(t, e, "late") || !has(t, e, "under way") {
		t.Error("a key is lost")
	}
	checkKeys(t, e, n)
	mustClose(t, e)
}

// Goal: an idle or hot small database takes little of a small disk. Method: 100 rows overwritten many times on a
// filesystem of 400 MB.
func TestLogsStaySmallOnASmallDisk(t *testing.T) {
	disk := newSmallFS(400 << 20)
	e, err := Open(Options{Dir: "data", FS: disk, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	most := int64(0)
	for i := range 20_000 {
		if err := put(e, fmt.Sprintf("k%02d", i%100), 5_000); err != nil {
			t.Fatal(err)
		}
		most = max(most, 400<<20-disk.free())
	}
	t.Logf("at most %d MB in use", most>>20)
	if most > 100<<20 {
		t.Errorf("100 rows took %d MB", most>>20)
	}
}
