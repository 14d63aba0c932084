// Brings the recorder's DLL into a program, before its first instruction where that is possible:
//
//     patch_imports   a program that was started suspended: its list of imports gets one more in
//                     front, so the loader loads us before all else. Not for .NET, whose loader
//                     looks at the list
//     queue_load      else the first thread is asked to call LoadLibraryW before it begins
//     load_first      the same of 32 bits, where there is no LoadLibraryW yet: a thread that begins
//                     and ends makes the process ready, then load_now
//     load_now        a program that runs: a thread of ours calls LoadLibraryW
//
// The program is of another size than we are, perhaps, and from anybody: its memory is read by
// calls, and nothing in it is believed without bounds.
//
// A list of imports, in memory of our own after the image, since entries count from its beginning
// by 32 bits. With two imports, of 64 bits:
//
//     0    descriptor of ours, kernel32's, user32's, one of zeros    4 * 20 bytes
//     80   ordinal 1 of ours, 0                                      2 * 8, what is wanted
//     96   ordinal 1 of ours, 0                                      2 * 8, where its address goes
//     112  "C:\…\tidemark64.dll"
#include "collect/invite_win32.h"

#include "wire/invite.h"

#include <string.h>
#include <windows.h>

#include <winternl.h>

enum {
	STEP = 1 << 16, // of addresses that can be had
	IMPORTS_MAX = 4096,
	LOAD_MS = 10000,
	PATHS_MAX = 4 * MAX_PATH,
	EXPORTS_MAX = 1 << 16,
	DIRECTORY_EXPORTS = 0,
	DIRECTORY_IMPORTS = 1,
	DIRECTORY_BOUND = 11,
	DIRECTORY_NET = 14,
	ASK_NARROW_PEB = 26, // of NtQueryInformationProcess
	PEB_IMAGE = 16,      // in it: where the executable is
	PEB_NARROW_IMAGE = 8,
};

// A program that is being invited.
struct guest {
	const struct invite_call *call;
	bool narrow;
	wchar_t dll[PATHS_MAX];
	char dll_bytes[PATHS_MAX]; // the same, as a list of imports has names
	uint8_t *image;            // of the executable, in the program
	uint64_t directories_at;   // of its headers, in the program
	IMAGE_DATA_DIRECTORY directories[16];
	uint8_t *invite_at;
	struct invite invite;
};

static IMAGE_IMPORT_DESCRIPTOR imports[IMPORTS_MAX + 1]; // one invitation at a time

static bool fail(struct err *err, const char *what)
{
	return err_set(err, ERR_IO, "%s (error %lu)", what, (unsigned long)GetLastError());
}

bool invite_is_narrow(void *process)
{
	BOOL narrow = FALSE;

	return IsWow64Process(process, &narrow) && narrow;
}

static bool read_program(const struct guest *guest, uint64_t at, void *out, size_t size)
{
	SIZE_T got = 0;

	return ReadProcessMemory(guest->call->process, (void *)(uintptr_t)at, out, size, &got) &&
	       got == size;
}

static bool write_program(const struct guest *guest, uint64_t at, const void *bytes, size_t size)
{
	SIZE_T put = 0;

	return WriteProcessMemory(guest->call->process, (void *)(uintptr_t)at, bytes, size, &put) &&
	       put == size;
}

// ---- The executable's headers ---------------------------------------------------------------

// Whether the image at `base` is the executable: then its directories are read.
static bool read_headers(struct guest *guest, uint8_t *base)
{
	IMAGE_DOS_HEADER dos;
	IMAGE_NT_HEADERS64 headers;
	uint64_t at = (uintptr_t)base;
	uint16_t machine = guest->narrow ? IMAGE_FILE_MACHINE_I386 : IMAGE_FILE_MACHINE_AMD64;
	size_t directories = guest->narrow
				     ? offsetof(IMAGE_NT_HEADERS32, OptionalHeader.DataDirectory)
				     : offsetof(IMAGE_NT_HEADERS64, OptionalHeader.DataDirectory);

	if (!read_program(guest, at, &dos, sizeof dos) || dos.e_magic != IMAGE_DOS_SIGNATURE ||
	    dos.e_lfanew < 0 || dos.e_lfanew > 4096)
		return false;
	at += (uint32_t)dos.e_lfanew;
	if (!read_program(guest, at, &headers, sizeof headers) ||
	    headers.Signature != IMAGE_NT_SIGNATURE || headers.FileHeader.Machine != machine ||
	    (headers.FileHeader.Characteristics & IMAGE_FILE_DLL))
		return false;
	guest->image = base;
	guest->directories_at = at + directories;
	return read_program(guest, guest->directories_at, guest->directories,
			    sizeof guest->directories);
}

// Among all that is mapped: nothing else is sure to tell where it is, in a program of another size
// that has not run yet.
static bool find_image(struct guest *guest)
{
	MEMORY_BASIC_INFORMATION region;
	uint8_t *at = NULL;

	while (VirtualQueryEx(guest->call->process, at, &region, sizeof region) == sizeof region) {
		if (region.Type == MEM_IMAGE && region.BaseAddress == region.AllocationBase &&
		    read_headers(guest, region.BaseAddress))
			return true;
		at = (uint8_t *)region.BaseAddress + region.RegionSize;
		if (at <= (uint8_t *)region.BaseAddress)
			break;
	}
	return false;
}

// Memory behind the image, so that what lies there has a place counted from the image's beginning.
static uint8_t *take_behind_image(const struct guest *guest, size_t size)
{
	uint64_t end = (uintptr_t)guest->image + (guest->narrow ? 0x7fff0000u : 0xfff00000u);
	uint8_t *at = guest->image;
	MEMORY_BASIC_INFORMATION region;

	while ((uintptr_t)at < end &&
	       VirtualQueryEx(guest->call->process, at, &region, sizeof region) == sizeof region) {
		uint64_t start = ((uintptr_t)region.BaseAddress + STEP - 1) & ~(uint64_t)(STEP - 1);
		uint64_t behind = (uintptr_t)region.BaseAddress + region.RegionSize;

		if (region.State == MEM_FREE && start + size <= behind && start + size <= end) {
			uint8_t *taken = VirtualAllocEx(guest->call->process,
							(void *)(uintptr_t)start, size,
							MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

			if (taken)
				return taken;
		}
		at = (uint8_t *)(uintptr_t)behind;
	}
	return NULL;
}

// The page with the headers is made writable for that, and then as it was.
static bool write_headers(struct guest *guest)
{
	uint64_t at = guest->directories_at;
	DWORD old;
	bool done;

	if (!VirtualProtectEx(guest->call->process, (void *)(uintptr_t)at,
			      sizeof guest->directories, PAGE_READWRITE, &old))
		return false;
	done = write_program(guest, at, guest->directories, sizeof guest->directories);
	VirtualProtectEx(guest->call->process, (void *)(uintptr_t)at, sizeof guest->directories,
			 old, &old);
	return done;
}

// What the image imports, with ours in front. Returns how many there are, or 0 when they cannot be
// read.
static size_t read_imports(const struct guest *guest)
{
	const IMAGE_DATA_DIRECTORY *directory = &guest->directories[DIRECTORY_IMPORTS];
	uint64_t at = (uintptr_t)guest->image + directory->VirtualAddress;
	size_t count = 1;

	memset(&imports[0], 0, sizeof imports[0]);
	if (directory->VirtualAddress == 0)
		return count;
	for (; count < IMPORTS_MAX; count++, at += sizeof *imports) {
		if (!read_program(guest, at, &imports[count], sizeof *imports))
			return 0;
		if (imports[count].Name == 0 || imports[count].FirstThunk == 0)
			return count;
	}
	return 0;
}

// Our DLL becomes the first import. False: it cannot, and nothing has changed.
static bool patch_imports(struct guest *guest)
{
	size_t count = read_imports(guest);
	size_t list = (count + 1) * sizeof *imports;
	size_t name = strlen(guest->dll_bytes) + 1;
	size_t word = guest->narrow ? 4 : 8;
	uint64_t ordinal = guest->narrow ? IMAGE_ORDINAL_FLAG32 | 1 : IMAGE_ORDINAL_FLAG64 | 1;
	uint8_t thunks[32] = { 0 };
	uint8_t *block;
	uint32_t block_at;

	if (count == 0 || guest->directories[DIRECTORY_NET].VirtualAddress != 0)
		return false;
	block = take_behind_image(guest, list + sizeof thunks + name);
	if (!block)
		return false;
	block_at = (uint32_t)(block - guest->image);
	imports[0].OriginalFirstThunk = block_at + (uint32_t)list;
	imports[0].FirstThunk = block_at + (uint32_t)(list + 2 * word);
	imports[0].Name = block_at + (uint32_t)(list + sizeof thunks);
	memset(&imports[count], 0, sizeof *imports);
	memcpy(thunks, &ordinal, word);
	memcpy(thunks + 2 * word, &ordinal, word);
	guest->invite.import_at =
		guest->directories_at + DIRECTORY_IMPORTS * sizeof(IMAGE_DATA_DIRECTORY);
	guest->invite.bound_at =
		guest->directories_at + DIRECTORY_BOUND * sizeof(IMAGE_DATA_DIRECTORY);
	memcpy(guest->invite.import_was, &guest->directories[DIRECTORY_IMPORTS], 8);
	memcpy(guest->invite.bound_was, &guest->directories[DIRECTORY_BOUND], 8);
	guest->directories[DIRECTORY_IMPORTS].VirtualAddress = block_at;
	guest->directories[DIRECTORY_IMPORTS].Size = (uint32_t)list;
	memset(&guest->directories[DIRECTORY_BOUND], 0, sizeof guest->directories[0]);
	if (write_program(guest, (uintptr_t)block, imports, list) &&
	    write_program(guest, (uintptr_t)block + list, thunks, sizeof thunks) &&
	    write_program(guest, (uintptr_t)block + list + sizeof thunks, guest->dll_bytes, name) &&
	    write_headers(guest))
		return true;
	guest->invite.import_at = guest->invite.bound_at = 0;
	VirtualFreeEx(guest->call->process, block, 0, MEM_RELEASE);
	return false;
}

// ---- The invitation -------------------------------------------------------------------------

// The DLL's path, as the system has it and as a list of imports has it.
// A list of imports has the path in the system's code page. What that cannot say may still have a
// short name (8.3); else dll_bytes is "" and the list is left alone.
static bool find_dll(struct guest *guest, struct err *err)
{
	wchar_t directory[PATHS_MAX], brief[PATHS_MAX];
	BOOL lossy = FALSE;

	if (!MultiByteToWideChar(CP_UTF8, 0, guest->call->directory, -1, directory, PATHS_MAX) ||
	    _snwprintf(guest->dll, PATHS_MAX, L"%ls\\tidemark%d.dll", directory,
		       guest->narrow ? 32 : 64) < 0)
		return err_set(err, ERR_IO, "the path of the recorder is too long");
	guest->dll[PATHS_MAX - 1] = 0;
	if (GetFileAttributesW(guest->dll) == INVALID_FILE_ATTRIBUTES)
		return err_set(err, ERR_IO, "there is no tidemark%d.dll in %s",
			       guest->narrow ? 32 : 64, guest->call->directory);
	if (WideCharToMultiByte(CP_ACP, WC_NO_BEST_FIT_CHARS, guest->dll, -1, guest->dll_bytes,
				PATHS_MAX, NULL, &lossy) &&
	    !lossy)
		return true;
	if (GetShortPathNameW(guest->dll, brief, PATHS_MAX) &&
	    WideCharToMultiByte(CP_ACP, WC_NO_BEST_FIT_CHARS, brief, -1, guest->dll_bytes,
				PATHS_MAX, NULL, &lossy) &&
	    !lossy)
		return true;
	guest->dll_bytes[0] = 0;
	return true;
}

static bool give(const struct guest *guest, void *handle, uint32_t *number)
{
	HANDLE theirs = NULL;

	if (!DuplicateHandle(GetCurrentProcess(), handle, guest->call->process, &theirs, 0, FALSE,
			     DUPLICATE_SAME_ACCESS))
		return false;
	*number = (uint32_t)(uintptr_t)theirs;
	return true;
}

// The invitation, and after it the DLL's path, to be an argument of LoadLibraryW.
static bool write_invite(struct guest *guest, struct err *err)
{
	static const uint8_t magic[INVITE_MAGIC_BYTES] = INVITE_MAGIC;
	struct invite *invite = &guest->invite;
	const struct invite_call *call = guest->call;

	memcpy(invite->magic, magic, sizeof magic);
	invite->version = INVITE_VERSION;
	invite->image = call->image;
	invite->options = call->options;
	invite->collector_pid = GetCurrentProcessId();
	invite->late = call->thread == NULL;
	invite->segment_bytes = segment_ring_at(SEGMENT_LANES_MAX);
	if (!give(guest, call->session, &invite->session) ||
	    !give(guest, call->segment, &invite->segment) ||
	    !give(guest, call->bell, &invite->bell))
		return fail(err, "cannot give the program its handles");
	guest->invite_at = VirtualAllocEx(call->process, NULL, INVITE_BYTES + sizeof guest->dll,
					  MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	if (!guest->invite_at ||
	    !write_program(guest, (uintptr_t)guest->invite_at, invite, sizeof *invite) ||
	    !write_program(guest, (uintptr_t)guest->invite_at + INVITE_BYTES, guest->dll,
			   sizeof guest->dll))
		return fail(err, "cannot write into the program");
	return true;
}

// ---- Other ways in --------------------------------------------------------------------------

// The place of an exported function of the module at `base`, in the program. 0: it has none of that
// name, or only refers to another module's.
static uint64_t find_export(const struct guest *guest, uint64_t base,
			    const IMAGE_DATA_DIRECTORY *directory, const char *wanted)
{
	IMAGE_EXPORT_DIRECTORY exports;
	DWORD name_at, function_at;
	WORD ordinal;
	char name[32];

	if (!read_program(guest, base + directory->VirtualAddress, &exports, sizeof exports))
		return 0;
	for (DWORD i = 0; i < exports.NumberOfNames && i < EXPORTS_MAX; i++) {
		if (!read_program(guest, base + exports.AddressOfNames + 4 * i, &name_at, 4) ||
		    !read_program(guest, base + name_at, name, sizeof name))
			return 0;
		if (memcmp(name, wanted, strlen(wanted) + 1) != 0)
			continue;
		if (!read_program(guest, base + exports.AddressOfNameOrdinals + 2 * i, &ordinal,
				  2) ||
		    !read_program(guest, base + exports.AddressOfFunctions + 4 * ordinal,
				  &function_at, 4) ||
		    function_at - directory->VirtualAddress < directory->Size)
			return 0;
		return base + function_at;
	}
	return 0;
}

// A function in a program of 32 bits, whose modules lie elsewhere than ours: in whichever of its
// modules has it.
static uint64_t find_function(const struct guest *guest, const char *wanted)
{
	MEMORY_BASIC_INFORMATION region;
	uint8_t *at = NULL;
	IMAGE_DOS_HEADER dos;
	IMAGE_NT_HEADERS32 nt;

	while (VirtualQueryEx(guest->call->process, at, &region, sizeof region) == sizeof region) {
		uint64_t base = (uintptr_t)region.BaseAddress, found;

		at = (uint8_t *)region.BaseAddress + region.RegionSize;
		if (at <= (uint8_t *)region.BaseAddress)
			break;
		if (region.Type != MEM_IMAGE || region.BaseAddress != region.AllocationBase ||
		    !read_program(guest, base, &dos, sizeof dos) ||
		    dos.e_magic != IMAGE_DOS_SIGNATURE || dos.e_lfanew < 0 || dos.e_lfanew > 4096 ||
		    !read_program(guest, base + (uint32_t)dos.e_lfanew, &nt, sizeof nt) ||
		    nt.Signature != IMAGE_NT_SIGNATURE ||
		    nt.FileHeader.Machine != IMAGE_FILE_MACHINE_I386 ||
		    !nt.OptionalHeader.DataDirectory[DIRECTORY_EXPORTS].Size)
			continue;
		found = find_export(guest, base,
				    &nt.OptionalHeader.DataDirectory[DIRECTORY_EXPORTS], wanted);
		if (found)
			return found;
	}
	return 0;
}

// LoadLibraryW of the program. Its kernel32 lies where ours does, if it is of our size.
static void *load_library(const struct guest *guest)
{
	FARPROC function;

	if (guest->narrow)
		return (void *)(uintptr_t)find_function(guest, "LoadLibraryW");
	function = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW");
	return (void *)(uintptr_t)function;
}

// The first thread loads the DLL before it begins.
static bool queue_load(const struct guest *guest, struct err *err)
{
	void *function = load_library(guest);

	if (!function || !QueueUserAPC((PAPCFUNC)(uintptr_t)function, guest->call->thread,
				       (ULONG_PTR)(guest->invite_at + INVITE_BYTES)))
		return err_set(err, ERR_IO,
			       "the program's imports cannot be changed, and its "
			       "first thread cannot be made to load the recorder");
	return true;
}

// A thread of ours loads the DLL, in a program that runs.
static bool load_now(const struct guest *guest, struct err *err)
{
	void *function = load_library(guest);
	struct invite seen;
	HANDLE thread;

	if (!function)
		return err_set(err, ERR_IO, "the program has no LoadLibraryW yet");
	thread = CreateRemoteThread(guest->call->process, NULL, 0,
				    (LPTHREAD_START_ROUTINE)(uintptr_t)function,
				    guest->invite_at + INVITE_BYTES, 0, NULL);
	if (!thread)
		return fail(err, "cannot start a thread in the program");
	WaitForSingleObject(thread, LOAD_MS);
	CloseHandle(thread);
	if (!read_program(guest, (uintptr_t)guest->invite_at, &seen, sizeof seen) ||
	    seen.state == INVITE_OPEN)
		return err_set(err, ERR_IO,
			       "the program has not loaded the recorder: is it being recorded "
			       "already, or was it once?");
	if (seen.state == INVITE_REFUSED)
		return err_set(err, ERR_IO, "the program does not let itself be recorded%s",
			       seen.reason == INVITE_NO_CODE ? ": it forbids dynamic code" : "");
	return true;
}

// A program of 32 bits that has not run yet has no LoadLibraryW, and what its first thread is asked
// to do first has another form there. So a thread of ours begins and ends: the first one to begin
// makes the process ready.
static bool load_first(const struct guest *guest, struct err *err)
{
	uint64_t function = find_function(guest, "RtlExitUserThread");
	HANDLE thread = function ? CreateRemoteThread(guest->call->process, NULL, 0,
						      (LPTHREAD_START_ROUTINE)(uintptr_t)function,
						      NULL, 0, NULL)
				 : NULL;

	if (!thread)
		return err_set(err, ERR_IO,
			       "the program's imports cannot be changed, and no thread can be "
			       "started in it that loads the recorder");
	WaitForSingleObject(thread, LOAD_MS);
	CloseHandle(thread);
	return load_now(guest, err);
}

static bool bring_in(struct guest *guest, bool *first, struct err *err)
{
	if (!find_dll(guest, err))
		return false;
	if (!guest->call->thread)
		return write_invite(guest, err) && load_now(guest, err);
	*first = guest->dll_bytes[0] && find_image(guest) && patch_imports(guest);
	if (!write_invite(guest, err))
		return false;
	return *first || (guest->narrow ? load_first(guest, err) : queue_load(guest, err));
}

bool invite_send(const struct invite_call *call, struct invite_sent *sent, struct err *err)
{
	static struct guest guest; // large; one invitation at a time
	bool good;

	memset(&guest, 0, sizeof guest);
	guest.call = call;
	guest.narrow = invite_is_narrow(call->process);
	sent->first = false;
	good = bring_in(&guest, &sent->first, err);
	sent->at = (uintptr_t)guest.invite_at;
	return good;
}

// ---- Once more ------------------------------------------------------------------------------

// The executable by what the process itself calls it: who replaces it may put the new one
// elsewhere. Where that cannot be asked, it is looked for.
static bool find_named_image(struct guest *guest)
{
	PROCESS_BASIC_INFORMATION basic = { 0 };
	ULONG_PTR peb = 0;
	uint64_t base = 0;

	if (guest->narrow) {
		NtQueryInformationProcess(guest->call->process, (PROCESSINFOCLASS)ASK_NARROW_PEB,
					  &peb, sizeof peb, NULL);
		if (!peb || !read_program(guest, peb + PEB_NARROW_IMAGE, &base, 4))
			return find_image(guest);
	} else {
		NtQueryInformationProcess(guest->call->process, ProcessBasicInformation, &basic,
					  sizeof basic, NULL);
		peb = (ULONG_PTR)basic.PebBaseAddress;
		if (!peb || !read_program(guest, peb + PEB_IMAGE, &base, 8))
			return find_image(guest);
	}
	return read_headers(guest, (uint8_t *)(uintptr_t)base);
}

// Whether the executable imports us. Another list in place of ours may have taken ours over.
static bool imports_us(struct guest *guest)
{
	size_t length = strlen(guest->dll_bytes) + 1, count;
	char name[sizeof guest->dll_bytes];

	if (!find_named_image(guest))
		return false;
	count = read_imports(guest);
	for (size_t i = 1; i < count; i++)
		if (read_program(guest, (uintptr_t)guest->image + imports[i].Name, name, length) &&
		    memcmp(name, guest->dll_bytes, length) == 0)
			return true;
	return false;
}

// What we have changed in the headers is gone, and so must not be put back by the guest. The rest
// of the invitation serves as it is.
bool invite_renew(const struct invite_call *call, uint64_t invite_at, bool *again, struct err *err)
{
	static const uint8_t magic[INVITE_MAGIC_BYTES] = INVITE_MAGIC;
	static struct guest guest; // large; one invitation at a time
	static const uint64_t nowhere[2];

	*again = false;
	memset(&guest, 0, sizeof guest);
	guest.call = call;
	guest.narrow = invite_is_narrow(call->process);
	guest.invite_at = (uint8_t *)(uintptr_t)invite_at;
	if (!find_dll(&guest, err))
		return false;
	if (!read_program(&guest, invite_at, &guest.invite, sizeof guest.invite) ||
	    memcmp(guest.invite.magic, magic, sizeof magic) != 0)
		return err_set(err, ERR_IO, "its invitation is gone");
	if (guest.invite.state != INVITE_OPEN || imports_us(&guest))
		return true;
	*again = write_program(&guest, invite_at + offsetof(struct invite, import_at), nowhere,
			       sizeof nowhere) &&
		 (guest.narrow ? load_first(&guest, err) : queue_load(&guest, err));
	return *again;
}
