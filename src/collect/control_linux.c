// Each collector listens on an abstract socket "tidemark-ctl-PID", by datagrams. Who asks for
// process 4711 need not know which collector has it: all that /proc/net/unix lists are asked, 256
// at most. A collector without that process says so, and the one that has it answers. The kernel
// says whose datagram it is; only the same user and root are heard.
#include "collect/control.h"

#include "base/mem.h"
#include "collect/maps_text.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char prefix[] = "tidemark-ctl-";

enum {
	ANSWER_MS = 3000,
	SEARCH_MS = 120000,
	LOOK_MS = 250, // whether who was asked is there still
	COLLECTORS_MAX = 256,
	NAME_BYTES = 16,
};

// An abstract name: a NUL first, and its length says where it ends.
static socklen_t address_of(struct sockaddr_un *address, const char *pid)
{
	int length =
		snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s%s", prefix, pid);

	address->sun_family = AF_UNIX;
	address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int control_listen(void)
{
	struct sockaddr_un address = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char pid[16];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, address_of(&address, pid)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

// The kernel adds the sender's ids to the datagram; what it says of itself is not looked at.
static bool may_ask(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	struct ucred from;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS ||
	    header->cmsg_len < CMSG_LEN(sizeof from))
		return false;
	memcpy(&from, CMSG_DATA(header), sizeof from);
	return from.uid == 0 || from.uid == geteuid();
}

// One request, if there is one. False: nothing came, or what came is to have no answer, or was
// refused with one.
bool control_read(int fd, struct control_request *request, struct control_sender *sender)
{
	struct sockaddr_un address = { 0 };
	struct iovec part = { request, sizeof *request };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr message = { .msg_name = &address,
				  .msg_namelen = sizeof address,
				  .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof control.bytes };
	size_t head = offsetof(struct sockaddr_un, sun_path);
	ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	// Whom we answer has a name that the kernel chose: a NUL and five digits.
	if (size < 0 || message.msg_namelen <= head ||
	    message.msg_namelen - head > sizeof sender->name)
		return false;
	sender->length = (uint32_t)(message.msg_namelen - head);
	memcpy(sender->name, address.sun_path, sender->length);
	if (!may_ask(&message)) {
		control_reply(fd, sender, CONTROL_FOREIGN, "");
		return false;
	}
	request->text[CONTROL_TEXT_MAX - 1] = 0;
	return size == (ssize_t)sizeof *request && request->magic == CONTROL_MAGIC;
}

void control_reply(int fd, const struct control_sender *sender, enum control_status status,
		   const char *text)
{
	struct control_answer answer = { .magic = CONTROL_MAGIC, .status = status };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	ASSERT(sender->length <= sizeof sender->name);
	snprintf(answer.text, sizeof answer.text, "%s", text);
	memcpy(address.sun_path, sender->name, sender->length);
	sendto(fd, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sender->length));
}

// ---- the other side ----

// Collectors that have not answered yet, by what their sockets are called behind the prefix.
struct asked {
	char names[COLLECTORS_MAX][NAME_BYTES];
	unsigned count;
};

static unsigned find_asked(const struct asked *asked, const char *name)
{
	unsigned i = 0;

	while (i < asked->count && strcmp(asked->names[i], name) != 0)
		i++;
	return i;
}

// Give `each` the names of all that listen, as /proc/net/unix has them: a line ends with
// "@tidemark-ctl-4711".
static void each_collector(void (*each)(void *context, const char *name), void *context)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512];

	while (file && fgets(line, sizeof line, file)) {
		const char *name = strrchr(line, '@');

		line[strcspn(line, "\n")] = 0;
		if (name && strncmp(name + 1, prefix, sizeof prefix - 1) == 0 &&
		    strlen(name + sizeof prefix) < NAME_BYTES)
			each(context, name + sizeof prefix);
	}
	if (file)
		fclose(file);
}

// In a process. CANNOT_SAY: we may not read what it has mapped.
enum recorder {
	IS_THERE,
	IS_NOT_THERE,
	CANNOT_SAY,
};

struct asking {
	int fd;
	const struct control_request *request;
	struct asked asked;
	unsigned listening; // of those
};

static void ask_one(void *context, const char *name)
{
	struct asking *asking = context;
	struct sockaddr_un address = { 0 };

	if (asking->asked.count < COLLECTORS_MAX &&
	    sendto(asking->fd, asking->request, sizeof *asking->request, MSG_NOSIGNAL,
		   (struct sockaddr *)&address,
		   address_of(&address, name)) == (ssize_t)sizeof *asking->request)
		strcpy(asking->asked.names[asking->asked.count++], name);
}

static void count_listening(void *context, const char *name)
{
	struct asking *asking = context;

	asking->listening += find_asked(&asking->asked, name) < asking->asked.count;
}

static bool is_not_recorded(uint32_t pid, struct err *err)
{
	return err_set(err, ERR_USAGE, "process %u is not being recorded", pid);
}

// Where the trace is: the kernel's own word for the descriptor. A pipe or a file that was removed
// has none.
bool control_where(int fd, char text[CONTROL_TEXT_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, text, CONTROL_TEXT_MAX - 1);
	if (length > 0 && length < CONTROL_TEXT_MAX - 1 && text[0] == '/') {
		text[length] = 0;
		return true;
	}
	strcpy(text, "its trace has no name that could be said (try: top FILE)");
	return false;
}

// The next answer. False: there will be none, or it has taken too long.
// Every quarter of a second it is looked whether any of those that were asked is still there: if
// all are gone, there is nothing to wait for. An answer of one is taken off the list, whatever it
// says.
static bool hear(struct asking *asking, int patience_ms, struct control_answer *answer)
{
	struct pollfd ready = { .fd = asking->fd, .events = POLLIN };
	struct sockaddr_un from = { 0 };
	socklen_t length = sizeof from;
	unsigned which;

	for (;;) {
		int nap_ms = patience_ms < LOOK_MS ? patience_ms : LOOK_MS;
		int count = poll(&ready, 1, nap_ms);

		if (count > 0)
			break;
		asking->listening = 0;
		each_collector(count_listening, asking);
		// What was said last may have come meanwhile.
		if (asking->listening == 0 && poll(&ready, 1, 0) > 0)
			break;
		patience_ms -= nap_ms;
		if (asking->listening == 0 || patience_ms <= 0)
			return false;
	}
	if (recvfrom(asking->fd, answer, sizeof *answer, 0, (struct sockaddr *)&from, &length) !=
		    (ssize_t)sizeof *answer ||
	    answer->magic != CONTROL_MAGIC) {
		answer->status = CONTROL_UNKNOWN;
		return true;
	}
	answer->text[CONTROL_TEXT_MAX - 1] = 0;
	from.sun_path[sizeof from.sun_path - 1] = 0;
	which = find_asked(&asking->asked, from.sun_path + sizeof prefix);
	if (which < asking->asked.count)
		memmove(asking->asked.names[which], asking->asked.names[--asking->asked.count],
			NAME_BYTES);
	return true;
}

// One DONE is enough. A refusal is kept until all have answered, for another collector may have the
// process.
static bool wait_for_answers(struct asking *asking, enum recorder recorder,
			     char text[CONTROL_TEXT_MAX], struct err *err)
{
	struct control_answer answer;
	int patience_ms = asking->request->verb == CONTROL_REACHABILITY ? SEARCH_MS : ANSWER_MS;
	uint32_t pid = asking->request->pid;
	bool refused = false, foreign = false;

	while (asking->asked.count > 0 && hear(asking, patience_ms, &answer)) {
		if (answer.status == CONTROL_DONE && text)
			memcpy(text, answer.text, CONTROL_TEXT_MAX);
		if (answer.status == CONTROL_DONE)
			return true;
		if (answer.status == CONTROL_REFUSED) {
			refused = true;
			err_set(err, ERR_USAGE, "process %u: %s", pid, answer.text);
		}
		foreign = foreign || answer.status == CONTROL_FOREIGN;
	}
	if (refused)
		return false;
	// Of all that were asked some end, or are stopped: that is no reason to think it is theirs.
	if (foreign || (asking->asked.count > 0 && recorder == CANNOT_SAY))
		return err_set(err, ERR_USAGE,
			       "process %u is not being recorded, or by another user (try it as "
			       "root)",
			       pid);
	if (asking->asked.count > 0 && asking->listening == 0)
		return err_set(err, ERR_IO,
			       "the recording of process %u has ended, and gave no answer", pid);
	if (asking->asked.count > 0)
		return err_set(err, ERR_IO, "the collector of process %u does not answer", pid);
	return is_not_recorded(pid, err);
}

// Whether the process has our recorder in its memory. Collectors that do not answer, as they end or
// are stopped, are no reason to doubt that it has none.
static enum recorder recorder_of(uint32_t pid)
{
	char path[32], *text = NULL;
	struct maps_line line;
	size_t room = 0;
	ssize_t length;
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? IS_NOT_THERE : CANNOT_SAY;
	while (!found && (length = getline(&text, &room, maps)) > 0) {
		const char *at = text;

		found = maps_text_next(&at, text + length, &line) && maps_text_is_ours(&line);
	}
	free(text);
	fclose(maps);
	return found ? IS_THERE : IS_NOT_THERE;
}

// All collectors are asked, as it is not known which of them records the process; those that do not
// say so.
bool control_ask(const struct control_request *request, char text[CONTROL_TEXT_MAX],
		 struct err *err)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct asking asking = { .request = request };
	enum recorder recorder = recorder_of(request->pid);
	int fd;
	bool ok;

	if (recorder == IS_NOT_THERE)
		return is_not_recorded(request->pid, err);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "cannot make a socket");
	// The kernel chooses a name, to which the answer comes.
	if (bind(fd, (const struct sockaddr *)&any, sizeof any.sun_family) != 0) {
		close(fd);
		return err_errno(err, errno, "cannot name a socket");
	}
	asking.fd = fd;
	each_collector(ask_one, &asking);
	ok = wait_for_answers(&asking, recorder, text, err);
	close(fd);
	return ok;
}
