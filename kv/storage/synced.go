package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncedFile records, for each log and manifest of a directory, how many of its bytes have been synced. At start those
// bytes must be readable: an unreadable record among them is damage, whereas an unreadable record after them may be one
// whose write was interrupted, and was never acknowledged. Pebble alone takes the former for the latter at the end of
// the newest log, and everywhere in a manifest.
//
// The file is written after each sync of a log, and synced when a log or manifest is created or about to be removed,
// every second, and at Close: after the end of a process it is exact, after a power cut it may be behind, never ahead.
const (
	syncedFile = "PERCODB_SYNCED"
	syncedTemp = syncedFile + ".new"

	// A slot is kind(1) zeros(7) number(8) synced(8) zeros(4) checksum(4); no slot crosses a disk's sector.
	slotBytes   = 32
	syncedSlots = 128 // at first

	// syncedInterval is how long the file may be behind after a power cut.
	syncedInterval = time.Second
)

type recordKind byte

const (
	noRecords recordKind = iota
	logRecords
	manifestRecords
)

// recordFile names a log or a manifest; the zero value is none.
type recordFile struct {
	kind   recordKind
	number uint64
}

func (f recordFile) String() string {
	if f.kind == manifestRecords {
		return fmt.Sprintf("%s%06d", manifestPrefix, f.number)
	}
	return fmt.Sprintf("%06d%s", f.number, logSuffix)
}

// recordFileOf parses the last element of a path.
func recordFileOf(name string) recordFile {
	kind, digits := noRecords, ""
	if rest, ok := strings.CutPrefix(name, manifestPrefix); ok {
		kind, digits = manifestRecords, rest
	} else if rest, ok := strings.CutSuffix(name, logSuffix); ok {
		kind, digits = logRecords, rest
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return recordFile{}
	}
	return recordFile{kind: kind, number: number}
}

// syncedTable is a directory's PERCODB_SYNCED.
type syncedTable struct {
	fs  vfs.FS
	dir string

	mu struct {
		sync.Mutex
		file vfs.File // nil until something is written
		// mapped is the beginning of the file in memory, nil if it cannot be mapped: a write to it is no system call, and
		// outlives the process as well.
		mapped []byte
		slots  []syncedSlot
		dirty  bool // written since the file was synced
		buf    [slotBytes]byte
	}
}

type syncedSlot struct {
	recordFile
	synced int64
}

func newSynced(fsys vfs.FS, dir string) *syncedTable {
	t := &syncedTable{fs: fsys, dir: dir}
	t.mu.slots = make([]syncedSlot, syncedSlots)
	return t
}

// loadSynced reads the directory's file. Unreadable slots count as free: a log without a slot is judged by what Pebble
// can read of it.
func loadSynced(fsys vfs.FS, dir string) (t *syncedTable, found bool, err error) {
	t = newSynced(fsys, dir)
	f, err := fsys.Open(fsys.PathJoin(dir, syncedFile))
	if isNotExist(err) {
		return t, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil || len(text) < slotBytes*syncedSlots {
		return t, false, err // too short: not all of it was copied
	}
	t.mu.slots = make([]syncedSlot, len(text)/slotBytes)
	for i := range t.mu.slots {
		t.mu.slots[i] = decodeSlot(text[i*slotBytes:])
	}
	return t, true, nil
}

func decodeSlot(b []byte) (s syncedSlot) {
	if binary.LittleEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) {
		return s
	}
	s.kind, s.number = recordKind(b[0]), binary.LittleEndian.Uint64(b[8:])
	s.synced = int64(binary.LittleEndian.Uint64(b[16:]))
	return s
}

func appendSlot(b []byte, s syncedSlot) []byte {
	at := len(b)
	b = append(b, byte(s.kind), 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, s.number)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.synced))
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// openLocked opens the file for writing, creating it if need be.
func (t *syncedTable) openLocked() error {
	if t.mu.file != nil {
		return nil
	}
	temp, name := t.fs.PathJoin(t.dir, syncedTemp), t.fs.PathJoin(t.dir, syncedFile)
	f, err := t.fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	var text []byte
	for _, s := range t.mu.slots {
		text = appendSlot(text, s)
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := errors.Join(t.fs.Rename(temp, name), syncDir(t.fs, t.dir)); err != nil {
		return err
	}
	if t.mu.file, err = t.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified); err == nil {
		t.mu.mapped = mapFile(t.mu.file.Fd(), len(text))
	}
	return err
}

// set records how much of the file has been synced; durable: the record must survive a power cut.
func (t *syncedTable) set(f recordFile, synced int64, durable bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.mu.slots, func(s syncedSlot) bool { return s.recordFile == f })
	if i < 0 {
		i = slices.IndexFunc(t.mu.slots, func(s syncedSlot) bool { return s.kind == noRecords })
	}
	if i < 0 {
		i = len(t.mu.slots)
		t.mu.slots = append(t.mu.slots, syncedSlot{})
	}
	return t.putLocked(i, syncedSlot{f, synced}, durable)
}

// forget frees the file's slot permanently. Call it before the file is removed.
func (t *syncedTable) forget(f recordFile) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.mu.slots, func(s syncedSlot) bool { return s.recordFile == f })
	if i < 0 {
		return nil
	}
	return t.putLocked(i, syncedSlot{}, true)
}

func (t *syncedTable) putLocked(i int, s syncedSlot, durable bool) error {
	t.mu.slots[i] = s
	if err := t.openLocked(); err != nil {
		return err
	}
	if err := t.writeLocked(appendSlot(t.mu.buf[:0], s), i*slotBytes); err != nil {
		return err
	}
	t.mu.dirty = true
	if durable {
		return t.syncLocked()
	}
	return nil
}

// writeLocked writes to the file. A slot that is written to memory when the process is killed may be unreadable.
func (t *syncedTable) writeLocked(slot []byte, at int) error {
	if at+len(slot) <= len(t.mu.mapped) {
		return copyMapped(t.mu.mapped[at:], slot)
	}
	_, err := t.mu.file.WriteAt(slot, int64(at))
	return err
}

// copyMapped is copy to a mapped file. The error is that of a page that cannot be written.
func copyMapped(dst, src []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("write to the mapped %s: %v", syncedFile, fault)
		}
	}()
	copy(dst, src)
	return nil
}

func (t *syncedTable) syncLocked() error {
	if !t.mu.dirty {
		return nil
	}
	t.mu.dirty = false
	return t.mu.file.SyncData()
}

// run syncs the file every interval until ctx ends, if there is something to sync.
func (t *syncedTable) run(ctx context.Context, interval time.Duration, failed func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		err := t.syncLocked()
		t.mu.Unlock()
		if err != nil {
			failed(err)
			return
		}
	}
}

// close syncs and closes the file.
func (t *syncedTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.file == nil {
		return nil
	}
	err := errors.Join(t.syncLocked(), unmapFile(t.mu.mapped), t.mu.file.Close())
	t.mu.file, t.mu.mapped = nil, nil
	return err
}

// all returns the slots in use, ordered by number.
func (t *syncedTable) all() []syncedSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	used := slices.DeleteFunc(slices.Clone(t.mu.slots), func(s syncedSlot) bool { return s.kind == noRecords })
	slices.SortFunc(used, func(a, b syncedSlot) int { return cmp.Compare(a.number, b.number) })
	return used
}

// syncedTo returns how much of the file has been synced, 0 if unknown.
func (t *syncedTable) syncedTo(f recordFile) int64 {
	for _, s := range t.all() {
		if s.recordFile == f {
			return s.synced
		}
	}
	return 0
}

// check verifies that the synced parts of the manifest, and of the logs that it has not made obsolete, exist and are
// readable. Obsolete logs are not needed.
func (t *syncedTable) check(manifest string) error {
	if manifest == "" {
		return nil // nothing has been written yet
	}
	if err := t.checkFile(recordFileOf(manifest)); err != nil {
		return err
	}
	first, err := t.firstLog(manifest)
	if err != nil {
		return err
	}
	for _, s := range t.all() {
		if s.kind == logRecords && s.number >= first {
			if err := t.checkFile(s.recordFile); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *syncedTable) checkFile(f recordFile) error {
	synced := t.syncedTo(f)
	if synced == 0 {
		return nil // it may have been lost before the directory was synced
	}
	end, err := t.read(f)
	switch {
	case isNotExist(err):
		return t.damage(f, fmt.Sprintf("%s is missing, of which %d bytes had been synced", f, synced))
	case err != nil || end.chunks >= synced:
		return err
	}
	return t.damage(f, fmt.Sprintf("%s cannot be read from offset %d on, and had been synced up to %d", f, end.records, synced))
}

func (t *syncedTable) damage(f recordFile, detail string) error {
	return &DamageError{Dir: t.dir, Detail: detail, Log: f.kind == logRecords}
}

// The fields of a manifest's record that precede those of tables: a number, a name and a number each.
const (
	fieldComparer = 1
	fieldFirstLog = 2
)

// firstLog returns the number of the oldest log that the manifest has not made obsolete, 0 if it names none.
func (t *syncedTable) firstLog(manifest string) (first uint64, err error) {
	file, err := t.fs.Open(t.fs.PathJoin(t.dir, manifest))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for records := record.NewReader(file, 0); ; {
		r, err := records.Next()
		if err != nil {
			return first, nil // its end; checkFile verifies it
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return first, nil
		}
		if number, ok := firstLogOf(text); ok {
			first = number
		}
	}
}

func firstLogOf(edit []byte) (number uint64, ok bool) {
	uvarint := func() uint64 {
		v, n := binary.Uvarint(edit)
		edit = edit[max(n, 0):]
		return v
	}
	field := uvarint()
	if field == fieldComparer {
		edit = edit[min(uvarint(), uint64(len(edit))):]
		field = uvarint()
	}
	if field != fieldFirstLog {
		return 0, false
	}
	return uvarint(), true
}

// read returns how far the file reads back.
func (t *syncedTable) read(f recordFile) (readable, error) {
	file, err := t.fs.Open(t.fs.PathJoin(t.dir, f.String()))
	if err != nil {
		return readable{}, err
	}
	defer file.Close()
	return readChunks(file, f.number)
}
