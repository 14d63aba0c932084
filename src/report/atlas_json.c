// The address space for programs: docs/schema/map.json describes it.
#include "report/atlas.h"
#include "report/query_write.h"

// A small object on one line of its own.
static void line_begin(struct json *json)
{
	json_object_begin(json);
	json->pretty = false;
}

static void line_end(struct json *json)
{
	json_object_end(json);
	json->pretty = true;
}

static void write_hex(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_hex(json, value);
}

static const char *file_of(const struct atlas *atlas, file_id id)
{
	const struct trace_file *file = reader_file(atlas->asked->reader, id);

	return id && file ? file->path : "";
}

static void write_group(const struct atlas *atlas, struct json *json,
			const struct atlas_group *group)
{
	struct str type = { 0 };

	atlas_describe_type(group, &type);
	json_object_begin(json);
	json_kv_string(json, "owner", space_owner_word((enum space_owner)group->owner));
	json_kv_u64(json, "count", group->count);
	json_kv_u64(json, "bytes", group->bytes);
	json_kv_u64(json, "committed", group->committed);
	json_kv_u64(json, "waste", group->waste);
	json_kv_u64(json, "size_min", group->count ? group->size_min : 0);
	json_kv_u64(json, "size_max", group->size_max);
	json_kv_string(json, "type", str_get(&type));
	json_kv_u64(json, "age_min_ns", group->count ? group->age_min_ns : 0);
	json_kv_u64(json, "age_max_ns", group->age_max_ns);
	json_kv_u64(json, "largest_without", group->largest_without);
	json_kv_string(json, "mapped_file", file_of(atlas, group->stack ? 0 : group->file));
	moment_view_write_stack(atlas->asked, json, group->stack);
	json_object_end(json);
	str_fini(&type);
}

static void write_failures(const struct atlas *atlas, struct json *json)
{
	json_kv_u64(json, "failures_count", atlas->failures_count);
	json_key(json, "failures");
	json_array_begin(json);
	for (uint64_t i = 0; i < atlas->failures_count && i < ATLAS_FAILURES_MAX; i++) {
		const struct atlas_failure *failure = &atlas->failures[i];

		json_object_begin(json);
		json_kv_u64(json, "time_ns", failure->time_ns);
		json_kv_string(json, "call", atlas_failure_word(failure));
		json_kv_u64(json, "size", failure->size);
		json_kv_u64(json, "error", failure->error);
		write_hex(json, "low", failure->low);
		write_hex(json, "high", failure->high);
		json_kv_u64(json, "mapped", failure->mapped);
		json_kv_u64(json, "free", failure->holes.bytes);
		json_kv_u64(json, "holes", failure->holes.count);
		json_kv_u64(json, "largest_free", failure->holes.largest);
		moment_view_write_stack(atlas->asked, json, failure->stack);
		json_key(json, "in_the_way");
		if (failure->culprit.count)
			write_group(atlas, json, &failure->culprit);
		else
			json_null(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_ranges(const struct atlas *atlas, struct json *json)
{
	const struct space *space = present_space(atlas->asked->present);
	const struct ranges *ranges = space_ranges(space, atlas->process);
	const struct range *range;

	json_key(json, "ranges");
	json_array_begin(json);
	for (uint64_t at = 0; (range = ranges_from(ranges, at)); at = range->end) {
		line_begin(json);
		write_hex(json, "start", range->start);
		write_hex(json, "end", range->end);
		json_kv_u64(json, "protection", range->protection);
		json_kv_bool(json, "committed", range->commit != 0);
		json_kv_string(json, "owner", space_owner_word(space_owner(space, range)));
		json_kv_string(json, "mapped_file", file_of(atlas, range->file));
		line_end(json);
	}
	json_array_end(json);
}

static void write_curve(const struct atlas *atlas, struct json *json)
{
	json_key(json, "curve");
	json_array_begin(json);
	for (uint64_t i = 0; i < ATLAS_POINTS; i++) {
		const struct atlas_point *point = &atlas->points[i];

		line_begin(json);
		json_kv_u64(
			json, "to_ns",
			(uint64_t)((double)atlas->points_end_ns * (double)(i + 1) / ATLAS_POINTS));
		json_kv_u64(json, "free", point->free_min);
		json_kv_u64(json, "largest_free", point->largest_min);
		json_kv_u64(json, "holes", point->holes_max);
		json_kv_u64(json, "mapped", point->reserved_max);
		json_kv_u64(json, "committed", point->committed_max);
		line_end(json);
	}
	json_array_end(json);
}

static void write_limit(struct json *json, const char *key, uint64_t bytes)
{
	json_key(json, key);
	if (bytes)
		json_u64(json, bytes);
	else
		json_null(json);
}

void atlas_write_json(const struct atlas *atlas, struct sink *sink)
{
	const struct trace_process *process = reader_process(atlas->asked->reader, atlas->process);
	uint64_t rows = atlas->options->rows_max ? atlas->options->rows_max : UINT64_MAX;
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-map-1");
	json_kv_bool(&json, "complete", atlas->asked->complete);
	query_write_warnings(atlas->asked, &json);
	json_kv_u64(&json, "at_ns", moment_view_time(atlas->asked));
	json_kv_bool(&json, "at_exit", atlas->asked->at_exit);
	json_kv_u64(&json, "process", process->pid);
	json_kv_u64(&json, "process_id", atlas->process);
	json_kv_u64(&json, "bits", process->bits);
	json_kv_u64(&json, "granularity", atlas->options->granularity);
	write_hex(&json, "low", atlas->low);
	write_hex(&json, "high", atlas->high);
	write_limit(&json, "mapped_limit", process->mapped_limit);
	write_limit(&json, "data_limit", process->data_limit);
	json_kv_u64(&json, "free", atlas->holes.bytes);
	json_kv_u64(&json, "holes", atlas->holes.count);
	json_kv_u64(&json, "largest_free", atlas->holes.largest);
	write_hex(&json, "largest_free_at", atlas->holes.largest_at);
	json_kv_u64(&json, "largest_free_slots", atlas->largest_slots);
	json_kv_u64(&json, "unusable", atlas->unusable);
	json_kv_u64(&json, "mapped", atlas->reserved);
	json_kv_u64(&json, "committed", atlas->committed);
	json_key(&json, "owners");
	json_object_begin(&json);
	for (int owner = 0; owner < SPACE_OWNERS_COUNT; owner++)
		if (atlas->owners[owner])
			json_kv_u64(&json, space_owner_word((enum space_owner)owner),
				    atlas->owners[owner]);
	json_object_end(&json);
	json_key(&json, "rows");
	json_array_begin(&json);
	for (size_t i = 0; i < atlas->groups_count && i < rows; i++)
		write_group(atlas, &json, &atlas->groups[i]);
	json_array_end(&json);
	write_failures(atlas, &json);
	write_curve(atlas, &json);
	write_ranges(atlas, &json);
	json_object_end(&json);
	sink_text(sink, "\n");
}
