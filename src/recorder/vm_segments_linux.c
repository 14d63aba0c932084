#include "recorder/vm_segments_linux.h"

#include "recorder/kernel.h"
#include "recorder/recording_own.h"

#include <stddef.h>

// An address of 0 is a free entry.
static struct vm_segment {
	uint64_t address, size;
} vm_segments[1024];
static uint32_t vm_segments_used; // all that ever were

// Under files_lock. NULL: there is none.
static struct vm_segment *vm_segments_find(uint64_t address)
{
	for (uint32_t i = 0; i < vm_segments_used; i++)
		if (vm_segments[i].address == address)
			return &vm_segments[i];
	return NULL;
}

void vm_segments_put(uint64_t address, uint64_t size)
{
	struct vm_segment *segment;
	uint64_t signals;

	if (recording_phase() != RECORDING_ON)
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->files_lock);
	segment = vm_segments_find(address);
	if (!segment)
		segment = vm_segments_find(0);
	if (!segment && vm_segments_used < sizeof(vm_segments) / sizeof(*vm_segments))
		segment = &vm_segments[vm_segments_used++];
	if (segment)
		*segment = (struct vm_segment){ address, size };
	recording_unlock(&recording_state->files_lock);
	kernel_restore_signals(signals);
}

uint64_t vm_segments_take(uint64_t address)
{
	struct vm_segment *segment;
	uint64_t signals, size = 0;

	if (recording_phase() != RECORDING_ON)
		return 0;
	signals = kernel_block_signals();
	recording_lock(&recording_state->files_lock);
	segment = vm_segments_find(address);
	if (segment && address) {
		size = segment->size;
		segment->address = 0;
	}
	recording_unlock(&recording_state->files_lock);
	kernel_restore_signals(signals);
	return size;
}
