// Why a program on Windows cannot be recorded, as far as its file or its process says so: that is a
// better message than the error of the call that failed. All of it is read from headers that
// anybody may have written; what cannot be read says nothing.
//
// The headers of a PE file, from its beginning: a DOS header, whose last word says where the rest
// is; a signature; what machine it is for; an optional header (32 or 64 bits) that ends with
// directories, each an address in memory and a size; then the sections, by which an address becomes
// a place in the file (place_of). For example rva 0x2010, in a section of address 0x2000 whose
// bytes begin at 0x600 of the file: place 0x610.
#include "collect/obstacle_win32.h"

#include "os/file.h"

#include <windows.h>

enum {
	HEADER_MAX = 4096,     // where the headers begin, at most
	DIRECTORY_CONFIG = 10, // the load configuration
	CONFIG_CHPE_AT = 200,  // in it: the address of what describes ARM64EC code, or 0
	CONFIG_CHPE_BYTES = 8, // mingw's header ends before it
	DIRECTORY_DEBUG = 6,
	DIRECTORIES_AT = 96, // in an optional header of 32 bits; 16 further in one of 64
	DEBUG_ENTRIES_MAX = 64,
	DEBUG_EXTENDED = 20,    // an entry with further characteristics, of which
	EXTENDED_CET = 1,       // this one asks for hardware-enforced stacks
	PROTECTION_CLASS = 7,   // ProcessProtectionLevelInfo
	PROTECTION_LAST = 8,    // PROTECTION_LEVEL_PPL_APP; higher numbers are no protection
	SECTIONS_MAX = 96,      // as the loader
	TOKEN_LABEL_BYTES = 96, // with the longest SID
};

// ---- The file -------------------------------------------------------------------------------

static bool read_file(int fd, uint64_t at, void *out, size_t size)
{
	return file_read_at(fd, out, size, at) == (ptrdiff_t)size;
}

// Where the bytes at `rva` are in the file. 0: nowhere.
static uint64_t place_of(int fd, uint64_t sections_at, uint16_t count, uint32_t rva)
{
	IMAGE_SECTION_HEADER section;

	for (uint16_t i = 0; i < count && i < SECTIONS_MAX; i++) {
		if (!read_file(fd, sections_at + i * sizeof section, &section, sizeof section))
			return 0;
		if (rva >= section.VirtualAddress &&
		    rva - section.VirtualAddress < section.SizeOfRawData)
			return section.PointerToRawData + (uint64_t)(rva - section.VirtualAddress);
	}
	return 0;
}

// Whether code of ARM64 calls itself x64: its load configuration has the address of a description
// of that code. It is at a fixed place of a struct that has grown over the years and says how long
// it is.
static bool is_arm64ec(int fd, uint64_t headers_at, const IMAGE_NT_HEADERS64 *headers)
{
	uint64_t sections_at = headers_at + offsetof(IMAGE_NT_HEADERS64, OptionalHeader) +
			       headers->FileHeader.SizeOfOptionalHeader;
	uint32_t size, rva;
	uint64_t at, chpe;

	if (headers->OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC ||
	    headers->OptionalHeader.NumberOfRvaAndSizes <= DIRECTORY_CONFIG)
		return false;
	rva = headers->OptionalHeader.DataDirectory[DIRECTORY_CONFIG].VirtualAddress;
	if (rva == 0)
		return false;
	at = place_of(fd, sections_at, headers->FileHeader.NumberOfSections, rva);
	return at != 0 && read_file(fd, at, &size, sizeof size) &&
	       size >= CONFIG_CHPE_AT + CONFIG_CHPE_BYTES &&
	       read_file(fd, at + CONFIG_CHPE_AT, &chpe, sizeof chpe) && chpe != 0;
}

// The headers, which are at `*at`. Up to its optional header that of 32 bits is the same.
static bool read_headers(int fd, IMAGE_NT_HEADERS64 *headers, uint32_t *at)
{
	IMAGE_DOS_HEADER dos;

	if (!read_file(fd, 0, &dos, sizeof dos) || dos.e_magic != IMAGE_DOS_SIGNATURE ||
	    dos.e_lfanew < 0 || dos.e_lfanew > HEADER_MAX)
		return false;
	*at = (uint32_t)dos.e_lfanew;
	return read_file(fd, *at, headers, sizeof *headers) &&
	       headers->Signature == IMAGE_NT_SIGNATURE;
}

static const char *obstacle_of_file(int fd)
{
	IMAGE_NT_HEADERS64 headers;
	uint32_t at;

	if (!read_headers(fd, &headers, &at))
		return NULL;
	switch (headers.FileHeader.Machine) {
	case IMAGE_FILE_MACHINE_ARM64:
		return "it is an ARM64 program, and the recorder is for x86 and x64";
	case IMAGE_FILE_MACHINE_ARMNT:
		return "it is an ARM program, and the recorder is for x86 and x64";
	case IMAGE_FILE_MACHINE_AMD64:
		return is_arm64ec(fd, at, &headers)
			       ? "its code is ARM64EC, and the recorder is for x86 and x64"
			       : NULL;
	default:
		return NULL;
	}
}

const char *obstacle_of_image(const char *path)
{
	int fd = file_open(path, FILE_READ);
	const char *found;

	if (fd < 0)
		return NULL;
	found = obstacle_of_file(fd);
	file_close(fd);
	return found;
}

// Whether the image says that shadow stacks suit it.
static bool asks_for_cet(int fd, uint32_t headers_at, const IMAGE_NT_HEADERS64 *headers)
{
	uint64_t optional_at = headers_at + offsetof(IMAGE_NT_HEADERS64, OptionalHeader);
	bool wide = headers->OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC;
	IMAGE_DATA_DIRECTORY directory;
	IMAGE_DEBUG_DIRECTORY entry;
	uint32_t flags;
	uint64_t at;

	if (!read_file(fd,
		       optional_at + DIRECTORIES_AT + (wide ? 16 : 0) +
			       DIRECTORY_DEBUG * sizeof directory,
		       &directory, sizeof directory) ||
	    directory.VirtualAddress == 0)
		return false;
	at = place_of(fd, optional_at + headers->FileHeader.SizeOfOptionalHeader,
		      headers->FileHeader.NumberOfSections, directory.VirtualAddress);
	for (uint32_t i = 0; at != 0 && i < directory.Size / sizeof entry && i < DEBUG_ENTRIES_MAX;
	     i++)
		if (read_file(fd, at + i * sizeof entry, &entry, sizeof entry) &&
		    entry.Type == DEBUG_EXTENDED &&
		    read_file(fd, entry.PointerToRawData, &flags, sizeof flags))
			return flags & EXTENDED_CET;
	return false;
}

const char *obstacle_guard_of_image(const char *path)
{
	int fd = file_open(path, FILE_READ);
	IMAGE_NT_HEADERS64 headers;
	bool flow = false, stacks = false;
	uint32_t at;

	if (fd < 0)
		return NULL;
	if (read_headers(fd, &headers, &at)) {
		// At the same place in both sizes.
		flow = headers.OptionalHeader.DllCharacteristics &
		       IMAGE_DLLCHARACTERISTICS_GUARD_CF;
		stacks = asks_for_cet(fd, at, &headers);
	}
	file_close(fd);
	if (flow && stacks)
		return "asks for Control Flow Guard and for hardware-enforced stacks (CET): the "
		       "recorder is made to go with both, but was not tried under either";
	if (stacks)
		return "asks for hardware-enforced stacks (CET): the recorder is made to go with "
		       "them, but was not tried under them";
	return flow ? "asks for Control Flow Guard: the recorder is made to go with it, but was "
		      "not tried under it"
		    : NULL;
}

// ---- The process ----------------------------------------------------------------------------

// Windows has protected processes (antivirus, media) that not even an administrator may write to.
static bool is_protected(HANDLE process)
{
	typedef BOOL(WINAPI * get_information)(HANDLE, int, void *, DWORD);
	HMODULE kernel32 = GetModuleHandleW(L"kernel32.dll");
	get_information get = // since Windows 8
		(get_information)(void *)GetProcAddress(kernel32, "GetProcessInformation");
	DWORD level = 0;

	return get && get(process, PROTECTION_CLASS, &level, sizeof level) &&
	       level <= PROTECTION_LAST;
}

// How much Windows trusts a process: 0x2000 medium, 0x3000 high, 0x4000 system. A process cannot
// write to one above its own. 0: that is not told.
static DWORD integrity_of(HANDLE process)
{
	union {
		TOKEN_MANDATORY_LABEL label;
		char bytes[TOKEN_LABEL_BYTES];
	} found;
	DWORD size = sizeof found, level = 0;
	HANDLE token;

	if (!OpenProcessToken(process, TOKEN_QUERY, &token))
		return 0;
	if (GetTokenInformation(token, TokenIntegrityLevel, &found, size, &size))
		level = *GetSidSubAuthority(
			found.label.Label.Sid,
			(DWORD)(*GetSidSubAuthorityCount(found.label.Label.Sid) - 1));
	CloseHandle(token);
	return level;
}

const char *obstacle_of_process(uint32_t pid)
{
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
	const char *found = NULL;

	if (!process)
		return NULL;
	if (is_protected(process))
		found = "it is a protected process, which no other program may change";
	else if (integrity_of(process) > integrity_of(GetCurrentProcess()))
		found = "it is of a higher integrity (try: start tidemark as administrator)";
	CloseHandle(process);
	return found;
}
