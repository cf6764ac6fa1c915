/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "cipherlane_socket.h"
#include "gateway_client.h"

#include <daemon.h>
#include <threading/mutex.h>
#include <threading/thread.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Microseconds between two tries to find a gateway. */
#define AGAIN 200000

/* Bytes of the longest datagram with its addresses. */
#define LONGEST (65536 + 64)

typedef struct {
	socket_t public;
	mutex_t *mutex;
	/* -1: there is no gateway. Closed by the receiver alone, which waits at it. */
	int fd;
	uint16_t ike_port;
	uint16_t esp_port;
	/* Where the receiver reads to; there is one receiver. */
	uint8_t *buffer;
} private_t;

static int connection(private_t *this)
{
	int fd;

	this->mutex->lock(this->mutex);
	fd = this->fd;
	this->mutex->unlock(this->mutex);
	return fd;
}

/* Replaces the connection, if it is still 'old'. */
static void reconnect(private_t *this, int old)
{
	gateway_welcome_t welcome = {};
	int fd;

	this->mutex->lock(this->mutex);
	if (this->fd == old && old >= 0)
	{
		close(old);
		this->fd = -1;
	}
	this->mutex->unlock(this->mutex);
	fd = gateway_connect(GATEWAY_DATAGRAMS, FALSE, &welcome);
	if (fd < 0)
	{
		return;
	}
	this->mutex->lock(this->mutex);
	this->fd = fd;
	this->ike_port = welcome.ike_port;
	this->esp_port = welcome.esp_port;
	this->mutex->unlock(this->mutex);
}

METHOD(socket_t, receive_, status_t, private_t *this, packet_t **out)
{
	gateway_reader_t reader;
	host_t *source, *destination;
	packet_t *packet;
	ssize_t len = -1;
	bool old;
	int fd;

	old = thread_cancelability(TRUE);
	fd = connection(this);
	if (fd >= 0)
	{
		len = recv(fd, this->buffer, LONGEST, 0);
	}
	if (len <= 0 && !(len < 0 && errno == EINTR))
	{
		usleep(AGAIN);
		thread_cancelability(FALSE);
		reconnect(this, fd);
		thread_cancelability(old);
		return FAILED;
	}
	thread_cancelability(old);
	if (len < 0)
	{
		return FAILED;
	}
	reader = (gateway_reader_t){ .data = this->buffer, .len = len };
	if (gateway_get16(&reader) != GATEWAY_DATAGRAM)
	{
		return FAILED;
	}
	gateway_get16(&reader);
	gateway_get32(&reader);
	source = gateway_get_endpoint(&reader);
	destination = gateway_get_endpoint(&reader);
	if (reader.failed || !source || !destination)
	{
		DESTROY_IF(source);
		DESTROY_IF(destination);
		return FAILED;
	}
	packet = packet_create();
	packet->set_source(packet, source);
	packet->set_destination(packet, destination);
	packet->set_data(packet, chunk_clone(chunk_create((uint8_t*)reader.data, reader.len)));
	*out = packet;
	return SUCCESS;
}

METHOD(socket_t, send_, status_t, private_t *this, packet_t *packet)
{
	gateway_message_t addresses;
	host_t *source, *destination;
	chunk_t data;
	bool sent = FALSE;

	source = packet->get_source(packet);
	destination = packet->get_destination(packet);
	data = packet->get_data(packet);
	gateway_begin(&addresses, GATEWAY_DATAGRAM);
	gateway_put_endpoint(&addresses, source);
	gateway_put_endpoint(&addresses, destination);
	if (addresses.failed)
	{
		return FAILED;
	}
	struct iovec parts[] = {
		{ .iov_base = addresses.data, .iov_len = addresses.len },
		{ .iov_base = data.ptr, .iov_len = data.len },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = countof(parts) };
	this->mutex->lock(this->mutex);
	if (this->fd >= 0)
	{
		sent = sendmsg(this->fd, &message, MSG_NOSIGNAL) >= 0;
	}
	this->mutex->unlock(this->mutex);
	if (!sent)
	{
		DBG1(DBG_NET, "a datagram to %#H was not sent: the gateway does not answer",
			 destination);
	}
	return sent ? SUCCESS : FAILED;
}

METHOD(socket_t, get_port, uint16_t, private_t *this, bool nat_t)
{
	return nat_t ? this->esp_port : this->ike_port;
}

METHOD(socket_t, supported_families, socket_family_t, private_t *this)
{
	return SOCKET_FAMILY_BOTH;
}

METHOD(socket_t, destroy, void, private_t *this)
{
	if (this->fd >= 0)
	{
		close(this->fd);
	}
	this->mutex->destroy(this->mutex);
	free(this->buffer);
	free(this);
}

socket_t *cipherlane_socket_create()
{
	private_t *this;

	INIT(this,
		.public = {
			.receive = _receive_,
			.send = _send_,
			.get_port = _get_port,
			.supported_families = _supported_families,
			.destroy = _destroy,
		},
		.mutex = mutex_create(MUTEX_TYPE_DEFAULT),
		.fd = -1,
		.ike_port = 500,
		.esp_port = 4500,
		.buffer = malloc(LONGEST),
	);
	reconnect(this, -1);
	return &this->public;
}
