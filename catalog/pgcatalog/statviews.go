package pgcatalog

import (
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// The statistics views list the objects of the database. What has been done with an object is not counted: the counters are NULL.

// tableSelection selects the tables that one of the statistics views shows.
type tableSelection func(t *catalog.TableDescriptor) bool

func userTables(t *catalog.TableDescriptor) bool   { return t.Kind == catalog.KindTable }
func systemTables(t *catalog.TableDescriptor) bool { return t.Kind == catalog.KindVirtual }
func allTables(t *catalog.TableDescriptor) bool    { return userTables(t) || systemTables(t) }

// eachStored calls f with the selected relations, without the system views, which store nothing.
func (s *scan) eachStored(selected tableSelection, f func(t *catalog.TableDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !selected(t) || t.Kind == catalog.KindVirtual && s.kinds[t.ID] != 'r' {
			return nil
		}
		return f(t)
	})
}

// statTables are the rows of pg_stat_all_tables and its kin.
func statTables(selected tableSelection) func(s *scan) error {
	return func(s *scan) error {
		return s.eachStored(selected, func(t *catalog.TableDescriptor) error {
			rows := types.Null
			if t.Kind == catalog.KindTable {
				stats, err := s.Stats(s.ctx, t.ID)
				if err != nil {
					return err
				}
				rows = num(int64(stats.Rows))
			}
			return s.emit(append(relationColumns(t), col{"n_live_tup", rows}, col{"n_dead_tup", num(0)})...)
		})
	}
}

// namedTables are the rows of a statistics view of tables that has nothing but their names.
func namedTables(selected tableSelection) func(s *scan) error {
	return func(s *scan) error {
		return s.eachStored(selected, func(t *catalog.TableDescriptor) error { return s.emit(relationColumns(t)...) })
	}
}

func relationColumns(t *catalog.TableDescriptor) []col {
	return []col{{"relid", oid(t.OID())}, {"schemaname", text(t.Schema)}, {"relname", text(t.Name)}}
}

// namedIndexes are the rows of a statistics view of indexes.
func namedIndexes(s *scan) error {
	return s.eachIndex(func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
		return s.emit(append(relationColumns(t), col{"indexrelid", oid(ix.OID)}, col{"indexrelname", text(ix.Name)})...)
	})
}

// namedSequences are the rows of a statistics view of sequences.
func namedSequences(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindSequence {
			return nil
		}
		return s.emit(relationColumns(t)...)
	})
}

// uncounted is the row of a view that counts what the whole server does.
func uncounted(s *scan) error { return s.emit() }

// databaseConflictRows are the rows of pg_stat_database_conflicts. There is no recovery that statements could conflict with.
func databaseConflictRows(s *scan) error {
	for _, d := range s.Databases().All() {
		err := s.emit(col{"datid", oid(d.OID)}, col{"datname", text(d.Name)}, col{"confl_tablespace", num(0)}, col{"confl_lock", num(0)},
			col{"confl_snapshot", num(0)}, col{"confl_bufferpin", num(0)}, col{"confl_deadlock", num(0)})
		if err != nil {
			return err
		}
	}
	return nil
}

// statisticsRows are the rows functions of these views.
func statisticsRows() map[string]func(s *scan) error {
	return map[string]func(s *scan) error{
		"pg_catalog.pg_stat_all_tables":         statTables(allTables),
		"pg_catalog.pg_stat_sys_tables":         statTables(systemTables),
		"pg_catalog.pg_stat_user_tables":        statTables(userTables),
		"pg_catalog.pg_stat_xact_all_tables":    namedTables(allTables),
		"pg_catalog.pg_stat_xact_sys_tables":    namedTables(systemTables),
		"pg_catalog.pg_stat_xact_user_tables":   namedTables(userTables),
		"pg_catalog.pg_statio_all_tables":       namedTables(allTables),
		"pg_catalog.pg_statio_sys_tables":       namedTables(systemTables),
		"pg_catalog.pg_statio_user_tables":      namedTables(userTables),
		"pg_catalog.pg_stat_all_indexes":        namedIndexes,
		"pg_catalog.pg_stat_user_indexes":       namedIndexes,
		"pg_catalog.pg_statio_all_indexes":      namedIndexes,
		"pg_catalog.pg_statio_user_indexes":     namedIndexes,
		"pg_catalog.pg_statio_all_sequences":    namedSequences,
		"pg_catalog.pg_statio_user_sequences":   namedSequences,
		"pg_catalog.pg_stat_archiver":           uncounted,
		"pg_catalog.pg_stat_bgwriter":           uncounted,
		"pg_catalog.pg_stat_wal":                uncounted,
		"pg_catalog.pg_stat_database_conflicts": databaseConflictRows,
		"pg_catalog.pg_timezone_names":          zoneNameRows,
		"pg_catalog.pg_timezone_abbrevs":        zoneAbbreviationRows,
	}
}

// zoneNameRows are the rows of pg_timezone_names.
func zoneNameRows(s *scan) error {
	now := time.Now()
	for _, z := range types.ZoneNames(now) {
		err := s.emit(col{"name", text(z.Name)}, col{"abbrev", text(z.Abbreviation)}, col{"utc_offset", zoneOffset(z)}, col{"is_dst", boolean(z.Daylight)})
		if err != nil {
			return err
		}
	}
	return nil
}

// zoneAbbreviationRows are the rows of pg_timezone_abbrevs.
func zoneAbbreviationRows(s *scan) error {
	for _, z := range types.ZoneAbbreviations(time.Now()) {
		err := s.emit(col{"abbrev", text(z.Abbreviation)}, col{"utc_offset", zoneOffset(z)}, col{"is_dst", boolean(z.Daylight)})
		if err != nil {
			return err
		}
	}
	return nil
}

func zoneOffset(z types.ZoneEntry) types.Datum {
	return types.NewInterval(types.Interval{Micros: int64(z.Offset) * types.MicrosPerSecond})
}
