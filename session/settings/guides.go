package settings

import (
	"math"
	"strconv"
	"strings"
)

// Parameters that guide what percodb does not have: the planner's costs and choices, vacuuming, pages. Sessions set them as
// a matter of course; their values are checked and shown as PostgreSQL does.
const guideNote = "Accepted: no effect."

const (
	guidesOn = `enable_hashjoin enable_indexscan enable_mergejoin enable_nestloop enable_seqscan
		enable_async_append enable_bitmapscan enable_gathermerge enable_hashagg enable_incremental_sort enable_indexonlyscan
		enable_material enable_memoize enable_parallel_append enable_parallel_hash enable_partition_pruning enable_sort
		enable_tidscan geqo jit_expressions jit_tuple_deforming parallel_leader_participation`
	guidesOff = `enable_partitionwise_aggregate enable_partitionwise_join`
)

// guideSettings are the parameters that have no effect because percodb does not have what they guide.
func guideSettings() []*definition {
	list := append(costGuides(), resourceGuides()...)
	for _, name := range strings.Fields(guidesOn) {
		list = append(list, &definition{name: name, initial: "on", check: CheckBool})
	}
	for _, name := range strings.Fields(guidesOff) {
		list = append(list, &definition{name: name, initial: "off", check: CheckBool})
	}
	for _, d := range list {
		d.note = guideNote
	}
	return append(list, parallelSettings()...)
}

// parallelSettings decide whether a statement is computed by several goroutines, and by how many.
func parallelSettings() []*definition {
	return []*definition{
		{name: "max_parallel_workers", initial: "8", check: integers(0, 1024).check, note: "The most workers of one statement.",
			apply: func(s *Settings, value string) (err error) { s.MaxWorkers, err = strconv.Atoi(value); return err }},
		{name: "max_parallel_workers_per_gather", initial: "2", check: integers(0, 1024).check,
			note:  "How many workers may read a table beside the session, but no more than there are further processors; 0: none.",
			apply: func(s *Settings, value string) (err error) { s.WorkersPerGather, err = strconv.Atoi(value); return err }},
		{name: "parallel_setup_cost", initial: "1000", check: numbers(0, math.MaxFloat64).check,
			note: "Tables of ten times as many rows are read by workers.",
			apply: func(s *Settings, value string) (err error) {
				s.ParallelSetupCost, err = strconv.ParseFloat(value, 64)
				return err
			}},
	}
}

// costGuides guide PostgreSQL's planner.
func costGuides() []*definition {
	return []*definition{
		{name: "cpu_index_tuple_cost", initial: "0.005", check: numbers(0, math.MaxFloat64).check},
		{name: "cpu_operator_cost", initial: "0.0025", check: numbers(0, math.MaxFloat64).check},
		{name: "cpu_tuple_cost", initial: "0.01", check: numbers(0, math.MaxFloat64).check},
		{name: "cursor_tuple_fraction", initial: "0.1", check: numbers(0, 1).check},
		{name: "default_statistics_target", initial: "100", check: integers(1, 10000).check},
		{name: "effective_cache_size", initial: "4GB", check: memory(8<<10, 1, 2147483647).check},
		{name: "force_parallel_mode", initial: "off", check: checkEnum("off", "on", "regress")},
		{name: "from_collapse_limit", initial: "8", check: integers(1, 2147483647).check},
		{name: "geqo_effort", initial: "5", check: integers(1, 10).check},
		{name: "geqo_generations", initial: "0", check: integers(0, 2147483647).check},
		{name: "geqo_pool_size", initial: "0", check: integers(0, 2147483647).check},
		{name: "geqo_seed", initial: "0", check: numbers(0, 1).check},
		{name: "geqo_selection_bias", initial: "2", check: numbers(1.5, 2).check},
		{name: "geqo_threshold", initial: "12", check: integers(2, 2147483647).check},
		{name: "hash_mem_multiplier", initial: "2", check: numbers(1, 1000).check},
		{name: "jit_above_cost", initial: "100000", check: numbers(-1, math.MaxFloat64).check},
		{name: "jit_inline_above_cost", initial: "500000", check: numbers(-1, math.MaxFloat64).check},
		{name: "jit_optimize_above_cost", initial: "500000", check: numbers(-1, math.MaxFloat64).check},
		{name: "join_collapse_limit", initial: "8", check: integers(1, 2147483647).check},
		{name: "parallel_tuple_cost", initial: "0.1", check: numbers(0, math.MaxFloat64).check},
		{name: "random_page_cost", initial: "4", check: numbers(0, math.MaxFloat64).check},
		{name: "recursive_worktable_factor", initial: "10", check: numbers(0.001, 1000000).check},
		{name: "constraint_exclusion", initial: "partition", check: checkEnum("partition", "on", "off")},
		{name: "seq_page_cost", initial: "1", check: numbers(0, math.MaxFloat64).check},
	}
}

// extensionSettings are the parameters of extensions, which are there whether the extension is installed or not, and of PL/pgSQL.
func extensionSettings() []*definition {
	return []*definition{
		{name: "plpgsql.check_asserts", initial: "on", check: CheckBool, apply: applyCheckAsserts, note: "Perform checks given in ASSERT statements."},
		{name: "plpgsql.extra_errors", initial: "none", check: checkExtraChecks("plpgsql.extra_errors"), apply: applyExtraErrors,
			note: "List of programming constructs that should produce an error."},
		{name: "plpgsql.extra_warnings", initial: "none", check: checkExtraChecks("plpgsql.extra_warnings"), apply: applyExtraWarnings,
			note: "List of programming constructs that should produce a warning."},
		{name: "plpgsql.print_strict_params", initial: "off", check: CheckBool, apply: applyStrictParams,
			note: "Print information about parameters in the DETAIL part of the error messages generated on INTO ... STRICT failures."},
		{name: "plpgsql.variable_conflict", initial: "error", check: checkEnum("error", "use_variable", "use_column"), apply: applyVariableConflict, super: true,
			note: "Sets handling of conflicts between PL/pgSQL variable names and table column names."},
		{name: "pg_trgm.similarity_threshold", initial: "0.3", check: numbers(0, 1).check, note: "Sets the threshold used by the % operator."},
		{name: "pg_trgm.strict_word_similarity_threshold", initial: "0.5", check: numbers(0, 1).check,
			note: "Sets the threshold used by the <<% operator."},
		{name: "pg_trgm.word_similarity_threshold", initial: "0.6", check: numbers(0, 1).check, note: "Sets the threshold used by the <% operator."},
	}
}

// resourceGuides limit resources that PostgreSQL manages.
func resourceGuides() []*definition {
	return []*definition{
		{name: "backend_flush_after", initial: "0", check: memory(8<<10, 0, 256).check},
		{name: "commit_siblings", initial: "5", check: integers(0, 1000).check},
		{name: "default_toast_compression", initial: "pglz", check: checkEnum("lz4", "pglz")},
		{name: "effective_io_concurrency", initial: "1", check: integers(0, 1000).check},
		{name: "gin_fuzzy_search_limit", initial: "0", check: integers(0, 2147483647).check},
		{name: "gin_pending_list_limit", initial: "4MB", check: memory(1<<10, 64, 2147483647).check},
		{name: "maintenance_io_concurrency", initial: "10", check: integers(0, 1000).check},
		{name: "max_parallel_maintenance_workers", initial: "2", check: integers(0, 1024).check},
		{name: "max_stack_depth", initial: "2MB", check: memory(1<<10, 100, 2147483647).check, super: true},
		{name: "min_parallel_index_scan_size", initial: "512kB", check: memory(8<<10, 0, 715827882).check},
		{name: "min_parallel_table_scan_size", initial: "8MB", check: memory(8<<10, 0, 715827882).check},
		{name: "temp_buffers", initial: "8MB", check: memory(8<<10, 100, 1073741823).check},
		{name: "vacuum_cost_delay", initial: "0", check: quantity{low: 0, high: 100, units: delayUnits, base: 1e3}.check},
		{name: "vacuum_cost_limit", initial: "200", check: integers(1, 10000).check},
		{name: "vacuum_cost_page_dirty", initial: "20", check: integers(0, 10000).check},
		{name: "vacuum_cost_page_hit", initial: "1", check: integers(0, 10000).check},
		{name: "vacuum_cost_page_miss", initial: "2", check: integers(0, 10000).check},
		{name: "vacuum_failsafe_age", initial: "1600000000", check: integers(0, 2100000000).check},
		{name: "vacuum_freeze_min_age", initial: "50000000", check: integers(0, 1000000000).check},
		{name: "vacuum_freeze_table_age", initial: "150000000", check: integers(0, 2000000000).check},
		{name: "vacuum_multixact_failsafe_age", initial: "1600000000", check: integers(0, 2100000000).check},
		{name: "vacuum_multixact_freeze_min_age", initial: "5000000", check: integers(0, 1000000000).check},
		{name: "vacuum_multixact_freeze_table_age", initial: "150000000", check: integers(0, 2000000000).check},
		{name: "wal_skip_threshold", initial: "2MB", check: memory(1<<10, 0, 2147483647).check},
	}
}
