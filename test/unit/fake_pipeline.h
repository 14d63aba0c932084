// fake_pipeline: the collector's inside from lanes to trace, driven by hand, with a guest in the
// same process. No socket and no sleep: a test decides when the lanes are looked at.
#pragma once

#include "base/mem.h"
#include "collect/merge.h"
#include "collect/process_list.h"
#include "test/unit/fake_guest.h"

#include <stdlib.h>

enum { PIPELINE_LANES_MAX = 64 };

struct pipeline {
	struct tick tick;
	struct writer *writer;
	struct trace_builder trace_builder;
	struct process_list process_list;
	struct merge merge;
	struct image *image;
	struct fake_guest guest;
	struct fake_lane lanes[PIPELINE_LANES_MAX + 1];
	uint32_t lanes_count;
	int output_fd;
};

static inline void pipeline_fail(const struct err *err)
{
	fprintf(stderr, "fake_pipeline: %s\n", err->text);
	exit(3);
}

// Lanes 1 to `lanes_count`, and frames 1 to `frames` at 0x400000 + 16 * frame.
static inline void pipeline_open(struct pipeline *pipeline, uint32_t lanes_count, uint32_t frames,
				 uint32_t segment_options)
{
	struct collect_options options = { .report_fd = -1, .segment_options = segment_options };
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"",
				   .tick_ns = 100000 };
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	struct err err = { 0 };

	memset(pipeline, 0, sizeof *pipeline);
	pipeline->output_fd = memfd_create("trace", 0);
	pipeline->writer = writer_new(pipeline->output_fd, &info, &err);
	arrival->image = 1;
	arrival->pid = (uint32_t)getpid();
	arrival->pidfd = -1;
	arrival->exe = mem_copy_text("/bin/pipeline");
	arrival->hello.start = SEGMENT_START_EXEC;
	if (pipeline->writer == NULL || !tick_open(&pipeline->tick, 100000, TICK_ANY, &err) ||
	    !share_open(&arrival->share, 1, 0, 0, &err))
		pipeline_fail(&err);
	trace_builder_init(&pipeline->trace_builder, pipeline->writer, &options);
	pipeline->trace_builder.fold_ns = 200000;
	process_list_init(&pipeline->process_list, &pipeline->trace_builder, &pipeline->tick, true);
	merge_init(&pipeline->merge, &pipeline->trace_builder, process_list_special,
		   &pipeline->process_list);
	process_list_arrive(&pipeline->process_list, arrival);
	process_list_settle(&pipeline->process_list);
	pipeline->image = pipeline->process_list.images;
	pipeline->guest.segment_fd = pipeline->image->share.fd;
	pipeline->guest.segment = pipeline->image->share.segment;
	pipeline->guest.lanes = pipeline->image->share.lanes;
	pipeline->guest.frames = pipeline->image->share.frames;
	pipeline->guest.clock = pipeline->tick.clock;
	pipeline->guest.frames_count = 1;
	pipeline->lanes_count = lanes_count;
	for (uint32_t i = 0; i <= lanes_count; i++)
		fake_lane_open(&pipeline->lanes[i], &pipeline->guest, i);
	for (uint32_t i = 1; i <= frames; i++)
		fake_frame(&pipeline->guest, 0x400000 + 16 * i, 0);
}

// What the collector does between two looks and the next sleep.
static inline void pipeline_deliver(struct pipeline *pipeline)
{
	image_decode(pipeline->image);
	merge_add(&pipeline->merge, pipeline->image);
	merge_run(&pipeline->merge, UINT64_MAX);
}

static inline void pipeline_collect(struct pipeline *pipeline)
{
	image_look(pipeline->image);
	image_look_again(pipeline->image);
	pipeline_deliver(pipeline);
}

// The trace is whole; what is left is the writer's file.
static inline void pipeline_close(struct pipeline *pipeline)
{
	writer_end(pipeline->writer, &(struct trace_end){ .why = (char *)"" });
	for (uint32_t i = 0; i <= pipeline->lanes_count; i++)
		fake_lane_close(&pipeline->lanes[i]);
	merge_fini(&pipeline->merge);
	process_list_fini(&pipeline->process_list);
	trace_builder_fini(&pipeline->trace_builder);
	writer_free(pipeline->writer);
	tick_close(&pipeline->tick);
}
