// A commit is a lifetime, of which a part may end. Then it is two: for example 8192 bytes from
// step 3 on, of which 4096 are unmapped at step 9
//
//     before     begin 3, no end, 8192 bytes
//     after      begin 3, no end, 4096 bytes
//                begin 3, end 9,  4096 bytes
//
// which add up to what there was, at any moment. What malloc has claimed says whose a mapping is,
// so the cell of a lifetime may still change while it lives. Beside them a list of the calls is
// kept, from which a moment is put together again without reading the trace.
#include "engine/space/vm_lives.h"

#include "base/mem.h"
#include "trace/effect.h"

static struct window_cell cell_of(const struct space_commit *commit)
{
	return (struct window_cell){ .process = commit->process,
				     .thread = commit->thread,
				     .stack = commit->stack,
				     .layer = WINDOW_VM,
				     .owner = commit->owner,
				     .size = commit->size };
}

// Whether what the process had at its beginning was there before the recording was.
static bool was_there(const struct vm_lives *lives, process_id id)
{
	const struct trace_process *process = reader_process(lives->reader, id);

	return process && process->parent == TRACE_NONE;
}

// Of a baseline in a process that no process of the trace started, the beginning is not known: it
// is put before all steps, at time 0. Where the trace saw the process begin, the time of the look
// is right.
static void on_begin(void *context, const struct space_commit *commit)
{
	struct vm_lives *lives = context;
	struct window_cell cell = cell_of(commit);
	struct plain_life life = { .begin = lives->step,
				   .end = WINDOW_NEVER,
				   .exit = WINDOW_NEVER,
				   .begin_ns = commit->time_ns,
				   .cell = plain_cell(lives->plain, &cell) };

	ASSERT(commit->size > 0);
	if (commit->baseline && was_there(lives, commit->process))
		life.begin = life.begin_ns = 0;
	*map_put(&lives->of_commit, commit->id, NULL) = plain_add(lives->plain, &life);
}

// An end by a call is an end; one by exit or exec is written apart, as `exit`: whether that counts
// as an end is the window's to say.
static void end_life(const struct vm_lives *lives, struct plain_life *life,
		     const struct space_end *end)
{
	ASSERT(life->end == WINDOW_NEVER);
	switch (end->ending) {
	case SPACE_EXITED:
	case SPACE_EXECED:
		life->exit = lives->step;
		life->exit_ns = end->time_ns;
		life->exit_kind = end->ending == SPACE_EXECED ? WINDOW_END_EXEC : WINDOW_END_EXIT;
		break;
	default:
		life->end = lives->step;
		life->end_ns = end->time_ns;
		life->end_kind = WINDOW_END_FREE;
		break;
	}
}

// With `rest`, the entry that is there lives on with less, and a new one is added for the part: the
// same beginning, this end.
static void on_end(void *context, const struct space_commit *commit,
		   const struct space_commit *rest, const struct space_end *end)
{
	struct vm_lives *lives = context;
	const struct space_commit *whole = rest ? rest : commit;
	uint64_t *index = map_find(&lives->of_commit, whole->id);
	struct window_cell cell = cell_of(commit);
	struct plain_life part;

	if (!index)
		return;
	if (!rest) {
		end_life(lives, &lives->plain->lives[*index], end);
		map_remove(&lives->of_commit, whole->id);
		return;
	}
	part = lives->plain->lives[*index];
	part.cell = plain_cell(lives->plain, &cell);
	end_life(lives, &part, end);
	cell = cell_of(rest);
	lives->plain->lives[*index].cell = plain_cell(lives->plain, &cell);
	plain_add(lives->plain, &part);
}

static void on_owner(void *context, const struct space_commit *commit)
{
	struct vm_lives *lives = context;
	const uint64_t *index = map_find(&lives->of_commit, commit->id);
	struct window_cell cell = cell_of(commit);

	if (index)
		lives->plain->lives[*index].cell = plain_cell(lives->plain, &cell);
}

void vm_lives_init(struct vm_lives *lives, struct plain *plain, const struct reader *reader)
{
	struct space_hooks hooks = {
		.context = lives, .begin = on_begin, .end = on_end, .owner = on_owner
	};

	ASSERT(plain && reader);
	*lives = (struct vm_lives){ .plain = plain, .reader = reader };
	lives->space = space_new(&hooks);
}

void vm_lives_fini(struct vm_lives *lives)
{
	space_free(lives->space);
	map_fini(&lives->of_commit);
	*lives = (struct vm_lives){ 0 };
}

void vm_lives_keep(struct vm_lives *lives, struct vault *calls)
{
	ASSERT(!lives->calls);
	lives->calls = calls;
}

static void keep(struct vm_lives *lives, struct vm_call *call)
{
	if (!lives->calls)
		return;
	call->step = lives->step;
	vm_calls_put(lives->calls, &lives->last, call);
}

static void add_call(struct vm_lives *lives, const struct trace_event *event)
{
	lives->any = true;
	space_learn(lives->space, lives->reader);
	space_add_event(lives->space, event);
}

// Only a claim that was news is kept. So a replay claims the same addresses in the same order and
// finds the same owners, without the blocks.
void vm_lives_claim(struct vm_lives *lives, uint64_t number, uint64_t address, process_id process,
		    uint64_t step)
{
	lives->step = step;
	if (space_claim(lives->space, process, address))
		keep(lives, &(struct vm_call){ .what = VM_CALL_CLAIM,
					       .events = number,
					       .process = process,
					       .event.address = address });
}

// A failed call of the heap is kept for who reads the list in place of the trace (index_moment.h).
void vm_lives_add_event(struct vm_lives *lives, const struct trace_event *event, process_id process,
			uint64_t step)
{
	unsigned effect = effect_of(event->kind);

	lives->step = step;
	lives->events = event->number + 1;
	if (trace_kind_is_vm(event->kind)) {
		add_call(lives, event);
		keep(lives, &(struct vm_call){
				    .events = event->number, .event = *event, .vm = *event->vm });
		return;
	}
	if (effect & EFFECT_FAILS)
		keep(lives, &(struct vm_call){ .events = event->number, .event = *event });
	if (effect & EFFECT_BEGINS && !trace_kind_is_pool(event->kind) && lives->any)
		vm_lives_claim(lives, event->number, event->address, process, step);
}

void vm_lives_add_note(struct vm_lives *lives, const struct trace_note *note, uint64_t step)
{
	struct vm_call call = { .what = VM_CALL_NOTE, .events = lives->events, .note = *note };

	lives->step = step;
	space_learn(lives->space, lives->reader);
	space_add_note(lives->space, note);
	if (note->kind == TRACE_NOTE_PROCESS_START || note->kind == TRACE_NOTE_PROCESS_END)
		keep(lives, &call);
}

// What vm_lives_add_event and _note did to the space, from the list. Ids are from a file: they are
// held against what the reader knows.
static bool replay(struct vm_lives *lives, const struct vm_call *call)
{
	lives->step = call->step;
	lives->events = call->events;
	space_learn(lives->space, lives->reader);
	switch (call->what) {
	case VM_CALL_EVENT:
		lives->events++;
		if (!vm_calls_fit(call, lives->reader))
			return false;
		if (trace_kind_is_vm(call->event.kind))
			add_call(lives, &call->event);
		return true;
	case VM_CALL_CLAIM:
		if (call->process >= reader_processes_count(lives->reader))
			return false;
		space_claim(lives->space, call->process, call->event.address);
		return true;
	default:
		space_add_note(lives->space, &call->note);
		return true;
	}
}

bool vm_lives_replay(struct vm_lives *lives, const struct vault *calls, struct err *err)
{
	uint8_t *bytes = vault_copy(calls, err);
	const uint8_t *at = bytes;
	struct vm_call call;
	bool ok = bytes != NULL;

	while (ok && at < bytes + calls->size)
		ok = vm_calls_next(&at, bytes + calls->size, &lives->last, &call) &&
		     replay(lives, &call);
	mem_free(bytes);
	return ok || err_set(err, ERR_FORMAT, "the state of the index is damaged");
}
