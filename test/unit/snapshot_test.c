// What docs/format.md section 5.11 promises about snapshots of memory.
#include "test/test.h"
#include "trace/snapshot.h"

static struct trace_mapping mappings[] = {
	{ .start = 0x400000,
	  .end = 0x401000,
	  .protection = 5,
	  .file = 2,
	  .rss = 4096,
	  .pss = 1365 },
	{ .start = 0x401000, .end = 0x500000, .offset = 4096, .protection = 3, .shared = true },
	{ .start = 0x7fff00000000, .end = UINT64_MAX & ~4095ull, .swap = 8192, .locked = 4096 },
};

static struct trace_pages pages[] = {
	{ .start = 0, .end = 4096, .flags = TRACE_PAGES_PRESENT },
	{ .start = 4096, .end = 8192, .flags = TRACE_PAGES_SWAPPED },
	{ .start = 0x7fff00000000, .end = UINT64_MAX & ~4095ull, .flags = 255 },
};

static struct trace_snapshot sample(void)
{
	return (struct trace_snapshot){
		.process = 3,
		.reason = TRACE_SNAPSHOT_RELEASE,
		.flags = TRACE_SNAPSHOT_NO_PAGES,
		.time_ns = 77,
		.began = UINT64_MAX - 1,
		.ended = UINT64_MAX,
		.page_bytes = 4096,
		.rss_bytes = 1 << 30,
		.rss_bytes_max = UINT64_MAX,
		.cost_ns = 12345,
		.mappings = mappings,
		.pages = pages,
		.mappings_count = 3,
		.pages_count = 3,
	};
}

static bool decode(const struct bytes *bytes, size_t size, struct trace_snapshot *snapshot)
{
	const uint8_t *copy = test_guarded_copy(bytes->data, size);

	return snapshot_decode(bytes_cursor(copy, size), 3, true, snapshot);
}

TEST(snapshot_comes_back_as_it_was)
{
	struct trace_snapshot put = sample(), got;
	struct bytes bytes = { 0 };

	snapshot_encode(&bytes, &put);
	CHECK(decode(&bytes, bytes.size, &got));
	CHECK_EQ(put.process, got.process);
	CHECK_EQ(put.reason, got.reason);
	CHECK_EQ(put.flags, got.flags);
	CHECK_EQ(put.time_ns, got.time_ns);
	CHECK_EQ(put.began, got.began);
	CHECK_EQ(put.ended, got.ended);
	CHECK_EQ(put.page_bytes, got.page_bytes);
	CHECK_EQ(put.rss_bytes, got.rss_bytes);
	CHECK_EQ(put.rss_bytes_max, got.rss_bytes_max);
	CHECK_EQ(put.cost_ns, got.cost_ns);
	CHECK_EQ(3, got.mappings_count);
	CHECK_BYTES(mappings, got.mappings, sizeof mappings);
	CHECK_EQ(3, got.pages_count);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pages[i].start, got.pages[i].start);
		CHECK_EQ(pages[i].end, got.pages[i].end);
		CHECK_EQ(pages[i].flags, got.pages[i].flags);
	}
	snapshot_fini(&got);
	// The same checks without the arrays.
	CHECK(snapshot_decode(bytes_cursor(bytes.data, bytes.size), 3, false, &got));
	CHECK(!got.mappings && !got.pages);
	CHECK_EQ(3, got.pages_count);
	// A file that nobody defined.
	CHECK(!snapshot_decode(bytes_cursor(bytes.data, bytes.size), 2, true, &got));
	bytes_fini(&bytes);
}

// A snapshot from numbers: 4 KiB pages, and what is given behind the head.
static bool takes(const uint64_t *numbers, size_t count)
{
	static const uint64_t head[] = { 0, 1, 0, 0, 0, 0, 4096, 0, 0, 0 };
	struct bytes bytes = { 0 };
	struct trace_snapshot snapshot;
	bool ok;

	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		bytes_add_varint(&bytes, head[i]);
	for (size_t i = 0; i < count; i++)
		bytes_add_varint(&bytes, numbers[i]);
	ok = decode(&bytes, bytes.size, &snapshot);
	if (ok)
		snapshot_fini(&snapshot);
	bytes_fini(&bytes);
	return ok;
}

#define TAKES(...)                               \
	takes((const uint64_t[]){ __VA_ARGS__ }, \
	      sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

TEST(snapshot_with_ranges_that_cannot_be_is_refused)
{
	CHECK(TAKES(0, 0));
	CHECK(TAKES(0, 1, 5, 1, 1));
	CHECK(!TAKES(0, 1, 5, 0, 1));                            // an empty range
	CHECK(!TAKES(0, 1, 5, 1, 0));                            // pages without a flag
	CHECK(!TAKES(0, 1, 5, 1, 256));                          // more flags than a byte has
	CHECK(!TAKES(0, 1, 1ull << 52, 1, 1));                   // the product leaves 64 bits
	CHECK(!TAKES(0, 2, 1ull << 51, 1, 1, 1ull << 51, 1, 1)); // the sum does: it would fall
	CHECK(!TAKES(0, 1000, 5, 1, 1));                         // more than there are bytes for
	CHECK(!TAKES(1000, 0));
	CHECK(TAKES(1, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	CHECK(!TAKES(1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)); // an empty mapping
	CHECK(!TAKES(1, 9, UINT64_MAX - 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(snapshot_stays_sound_whatever_is_cut_or_flipped)
{
	struct trace_snapshot put = sample(), got;
	struct bytes bytes = { 0 };

	snapshot_encode(&bytes, &put);
	for (size_t cut = 0; cut < bytes.size; cut++)
		CHECK(!decode(&bytes, cut, &got));
	for (size_t at = 0; at < bytes.size; at++)
		for (int bit = 0; bit < 8; bit++) {
			bytes.data[at] ^= (uint8_t)(1 << bit);
			if (decode(&bytes, bytes.size, &got)) {
				for (uint32_t i = 1; i < got.pages_count; i++)
					CHECK(got.pages[i].start >= got.pages[i - 1].end);
				for (uint32_t i = 1; i < got.mappings_count; i++)
					CHECK(got.mappings[i].start >= got.mappings[i - 1].end);
				snapshot_fini(&got);
			}
			bytes.data[at] ^= (uint8_t)(1 << bit);
		}
	bytes_fini(&bytes);
}
