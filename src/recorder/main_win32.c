// main_win32: where the guest begins: in the loader, before all other DLLs of the program.
//
// Nothing is ever taken back: the hooks stay until the process ends, and so does the DLL.
#include "recorder/codemap_win32.h"
#include "recorder/hook_win32.h"
#include "recorder/lane.h"
#include "recorder/notes.h"
#include "recorder/recording_win32.h"
#include "recorder/text.h"

enum {
	MAIN_PROCESS_ATTACH = 1,
	MAIN_TEXT_MAX = 256,
	MAIN_HEADERS_AT = 0x3c, // where an image says where its headers are
	MAIN_IMAGE_BYTES = 80,  // and in them how large it is
};

NT_CALL int32_t main_entry(void *module, uint32_t reason, void *reserved);
void tidemark_guest(void);

// What the image's import table names, by its number: so that there is something to import.
EXPORT void tidemark_guest(void)
{
}

static const struct patch_hook main_hooks[] = {
#define MAIN_HOOK(result, name, arguments) \
	{ #name, (void **)&patch_real.name, (void *)hook_##name },
	NT_HOOKED(MAIN_HOOK)
#undef MAIN_HOOK
};

static void main_tell(const char *name, const char *why, bool hooked)
{
	char text[MAIN_TEXT_MAX];
	size_t length = text_length(name), more = text_length(why);

	if (length + more + 2 > sizeof(text))
		return;
	memcpy(text, name, length);
	text[length] = ' ';
	memcpy(text + length + 1, why, more + 1);
	notes_message(hooked ? NOTE_MESSAGE_OTHER : NOTE_MESSAGE_UNSEEN, text);
}

// Eight bytes of the image's headers, an entry of its directory (address, size), as they were
// before the host changed them. The loader has read ours by now, or we would not be here. Headers
// are read-only memory.
static bool main_write(uint64_t at, const uint32_t was[2])
{
	void *page = (void *)(uintptr_t)at;
	size_t bytes = 8;
	uint32_t old;

	if (!at)
		return true;
	if (patch_real.NtProtectVirtualMemory(NT_SELF, &page, &bytes, NT_PAGE_READWRITE, &old) < 0)
		return false;
	memcpy((void *)(uintptr_t)at, was, 8);
	patch_real.NtProtectVirtualMemory(NT_SELF, &page, &bytes, old, &old);
	return true;
}

// This DLL and the invitation are noted as ours first, so that they are in no figure of the
// program's. The hooks come late: what they call has to be there. The host reads what else is in
// the invitation when `state` is no longer OPEN or TAKEN, so that is written last.
static void main_begin(struct invite *invite, uint8_t *module)
{
	uint32_t headers_at, bytes;

	memcpy(&headers_at, module + MAIN_HEADERS_AT, 4);
	memcpy(&bytes, module + headers_at + MAIN_IMAGE_BYTES, 4);
	patch_own = (struct patch_range){ (uintptr_t)module, bytes };
	recording_note_own(module, bytes);
	recording_note_own(invite, INVITE_BYTES);
	kernel_names_given = !invite->import_at; // else no thread has run yet
	if (!recording_accept(invite)) {
		__atomic_store_n(&invite->state, INVITE_REFUSED, __ATOMIC_RELEASE);
		return;
	}
	codemap_watch();
	if (!patch_start(main_hooks, sizeof(main_hooks) / sizeof(*main_hooks), main_tell)) {
		main_tell("the program", "does not allow code to be changed: nothing is recorded",
			  false);
		recording_stop();
		invite->reason = INVITE_NO_CODE;
		__atomic_store_n(&invite->state, INVITE_REFUSED, __ATOMIC_RELEASE);
		return;
	}
	// The first lane: what is mapped already is told before the program maps anything.
	if (lane_enter())
		lane_get_mine()->limit = lane_get_mine()->open_limit;
	codemap_reach();
	__atomic_store_n(&invite->state, INVITE_JOINED, __ATOMIC_RELEASE);
}

// 1 in any case: a DLL of the import table that answers 0 ends the start of its program, and one
// that cannot record must not.
NT_CALL int32_t main_entry(void *module, uint32_t reason, void *)
{
	struct invite *invite;

	if (reason != MAIN_PROCESS_ATTACH || recording_state)
		return 1;
	patch_find();
	invite = recording_find_invite();
	if (!invite)
		return 1;
	main_write(invite->import_at, invite->import_was);
	main_write(invite->bound_at, invite->bound_was);
	main_begin(invite, module);
	return 1;
}
