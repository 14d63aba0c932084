// The address space for programs: docs/schema/map.json describes it.
//
// Sizes are bytes, times nanoseconds. Addresses are texts ("0x7f0eb4294000").
#include "report/draw/address_map.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

static const char *file_of(const struct address_map *address_map, file_id id)
{
	const struct trace_file *file = reader_file(address_map->asked->reader, id);

	return id && file ? file->path : NULL;
}

// `largest_without` is never less than the largest hole that there is: a row that has just that
// (largest_free) is not in the way. `heap` is the runtime that mapped it for a heap of its own,
// null if none did. `mapped_file` is null where there is a stack, which says more.
static void write_group(const struct address_map *address_map, struct json *json,
			const struct mapper *group)
{
	struct str type = { 0 };

	address_map_describe_type(group, &type);
	json_object_begin(json);
	json_kv_string(json, "owner", space_owner_word((enum space_owner)group->owner));
	json_kv_text(json, "heap", address_map_heap(address_map, group));
	json_kv_u64(json, "count", group->count);
	json_kv_u64(json, "bytes", group->bytes);
	json_kv_u64(json, "committed", group->committed);
	json_kv_u64(json, "waste", group->waste);
	json_kv_u64_if(json, "size_min", group->count, group->size_min);
	json_kv_u64_if(json, "size_max", group->count, group->size_max);
	json_kv_string(json, "type", str_get(&type));
	json_kv_u64_if(json, "age_min_ns", group->count, group->age_min_ns);
	json_kv_u64_if(json, "age_max_ns", group->count, group->age_max_ns);
	json_kv_u64(json, "largest_without", group->largest_without);
	json_kv_text(json, "mapped_file", file_of(address_map, group->stack ? 0 : group->file));
	moment_view_write_stack(address_map->asked, json, group->stack);
	json_object_end(json);
	str_fini(&type);
}

// The first 20 of a stack, kind and size are kept with all that was so when the first of them
// failed; the rest is a number. What `low` and
// `high` enclose is where the call could have been put: for a mapping with MAP_32BIT that is 1 to 2
// GiB. `in_the_way` is null where no one group would have made a larger hole by its absence.
static void write_failures(const struct address_map *address_map, struct json *json)
{
	json_kv_u64(json, "failures_count", address_map->failures.calls);
	json_kv_array(json, "failures");
	for (size_t i = 0; i < address_map->failures.count; i++) {
		const struct failure *failure = &address_map->failures.list[i];

		json_object_begin(json);
		json_kv_u64(json, "time_ns", failure->time_ns);
		json_kv_u64(json, "last_ns", failure->last_ns);
		json_kv_u64(json, "count", failure->count);
		json_kv_string(json, "call", failures_word(failure));
		json_kv_u64(json, "size", failure->size);
		json_kv_u64(json, "error", failure->error);
		json_kv_hex(json, "low", failure->low);
		json_kv_hex(json, "high", failure->high);
		json_kv_u64(json, "mapped", failure->mapped);
		json_kv_u64(json, "free", failure->holes.bytes);
		json_kv_u64(json, "holes", failure->holes.count);
		json_kv_u64(json, "largest_free", failure->holes.largest);
		json_kv_u64(json, "unusable", failure->unusable);
		moment_view_write_stack(address_map->asked, json, failure->stack);
		json_key(json, "in_the_way");
		if (failure->culprit.count)
			write_group(address_map, json, &failure->culprit);
		else
			json_null(json);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "failures_in_place", address_map->failures.in_place);
	json_kv_u64(json, "failures_left_out", address_map->failures.left_out);
}

// One line each: a large process has tens of thousands. All of the process are there, also those
// outside of `low` and `high`, and tidemark's own.
static void write_ranges(const struct address_map *address_map, struct json *json)
{
	const struct space *space = present_space(address_map->asked->present);
	const struct ranges *ranges = space_ranges(space, address_map->process);
	const struct range *range;

	json_kv_array(json, "ranges");
	for (uint64_t at = 0; (range = ranges_from(ranges, at)); at = range->end) {
		lines_json_begin(json);
		json_kv_hex(json, "start", range->start);
		json_kv_hex(json, "end", range->end);
		json_kv_u64(json, "protection", range->protection);
		json_kv_bool(json, "committed", range->commit != 0);
		json_kv_string(json, "owner", space_owner_word(space_owner(space, range)));
		json_kv_text(json, "mapped_file", file_of(address_map, range->file));
		lines_json_end(json);
	}
	json_array_end(json);
}

// 240 points, each with the worst of its stretch of time: the least that was free, the most holes.
static void write_curve(const struct address_map *address_map, struct json *json)
{
	json_kv_array(json, "curve");
	for (uint64_t i = 0; i < ADDRESS_MAP_POINTS; i++) {
		const struct address_map_point *point = &address_map->points[i];

		lines_json_begin(json);
		json_kv_u64(json, "to_ns",
			    (uint64_t)((double)address_map->points_end_ns * (double)(i + 1) /
				       ADDRESS_MAP_POINTS));
		json_kv_u64(json, "free", point->free_min);
		json_kv_u64(json, "largest_free", point->largest_min);
		json_kv_u64(json, "holes", point->holes_max);
		json_kv_u64(json, "mapped", point->reserved_max);
		json_kv_u64(json, "committed", point->committed_max);
		lines_json_end(json);
	}
	json_array_end(json);
}

// Sums are of what is between `low` and `high`. Owners that have nothing there are left out. The
// limit of rows is of `rows` alone: the curve, the ranges and the failures that were kept are
// always whole.
void address_map_write_json(const struct address_map *address_map, struct sink *sink)
{
	const struct trace_process *process =
		reader_process(address_map->asked->reader, address_map->process);
	uint64_t rows = address_map->options->rows_max ? address_map->options->rows_max
						       : UINT64_MAX;
	struct json json;

	json_begin(&json, sink, true, "tidemark-map-1");
	json_kv_bool(&json, "complete", address_map->asked->complete);
	query_write_warnings(address_map->asked, &json);
	json_kv_u64(&json, "at_ns", moment_view_time(address_map->asked));
	json_kv_bool(&json, "at_exit", address_map->asked->at_exit);
	json_kv_u64(&json, "process", process->pid);
	json_kv_u64(&json, "process_id", address_map->process);
	json_kv_u64(&json, "bits", process->bits);
	json_kv_u64(&json, "granularity", address_map->options->granularity);
	json_kv_hex(&json, "low", address_map->low);
	json_kv_hex(&json, "high", address_map->high);
	// No limit is null, as 0 would be one that allows nothing.
	json_kv_u64_if(&json, "mapped_limit", process->mapped_limit > 0, process->mapped_limit);
	json_kv_u64_if(&json, "data_limit", process->data_limit > 0, process->data_limit);
	json_kv_u64(&json, "free", address_map->holes.bytes);
	json_kv_u64(&json, "holes", address_map->holes.count);
	json_kv_u64(&json, "largest_free", address_map->holes.largest);
	json_kv_hex(&json, "largest_free_at", address_map->holes.largest_at);
	json_kv_u64(&json, "largest_free_slots", address_map->largest_slots);
	json_kv_u64(&json, "unusable", address_map->unusable);
	json_kv_u64(&json, "mapped", address_map->reserved);
	json_kv_u64(&json, "committed", address_map->committed);
	json_kv_object(&json, "owners");
	for (int owner = 0; owner < SPACE_OWNERS_COUNT; owner++)
		if (address_map->owners[owner])
			json_kv_u64(&json, space_owner_word((enum space_owner)owner),
				    address_map->owners[owner]);
	json_object_end(&json);
	json_kv_array(&json, "rows");
	for (size_t i = 0; i < address_map->groups_count && i < rows; i++)
		write_group(address_map, &json, &address_map->groups[i]);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out",
		    address_map->groups_count > rows ? address_map->groups_count - rows : 0);
	write_failures(address_map, &json);
	write_curve(address_map, &json);
	write_ranges(address_map, &json);
	query_write_end(address_map->asked, &json);
}
