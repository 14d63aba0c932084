// A hello is one message of SOCK_SEQPACKET, so that it comes whole or not at all.
#include "collect/hello_linux.h"

#include "base/mem.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// Descriptors go as SCM_RIGHTS, which makes copies in the receiver. MSG_DONTWAIT: a visitor who
// does not read must not stop the door.
bool hello_answer(int fd, const struct segment_welcome *welcome, const int *fds, size_t count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SEGMENT_SPARES_AT_ONCE * sizeof *fds)];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)welcome, sizeof *welcome };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	ASSERT(count <= SEGMENT_SPARES_AT_ONCE);
	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof *fds);
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *welcome;
}

// What is aligned has room for two: one that is not wanted is closed, or strangers could fill our
// table with them.
static int first_of(struct cmsghdr *header)
{
	size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int first = -1;

	for (size_t i = 0, fd_size = sizeof(int); i < count; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(header) + i * fd_size, fd_size);
		if (i == 0)
			first = fd;
		else
			close(fd);
	}
	return first;
}

ssize_t hello_receive(int fd, struct hello_heard *heard)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { heard, offsetof(struct hello_heard, size) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control,
	};
	ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	socklen_t length = sizeof heard->from;

	heard->fd = -1;
	if (size < 0)
		return size;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_RIGHTS)
		heard->fd = first_of(&control.header);
	heard->size = (size_t)size;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &heard->from, &length) != 0)
		return 0;
	return size;
}

bool hello_valid(const struct segment_hello *hello, size_t size)
{
	return size >= offsetof(struct segment_hello, exe) && hello->magic == SEGMENT_MAGIC &&
	       hello->version == SEGMENT_VERSION &&
	       hello->exe_length <= size - offsetof(struct segment_hello, exe) &&
	       hello->exe_length <= sizeof hello->exe &&
	       (hello->image == 0 || hello->start == SEGMENT_START_FORK) &&
	       hello->start >= SEGMENT_START_EXEC && hello->start <= SEGMENT_START_SPARES;
}
