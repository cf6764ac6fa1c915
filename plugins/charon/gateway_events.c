/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "gateway_events.h"

#include <daemon.h>
#include <threading/thread.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Microseconds between two tries to find a gateway. */
#define AGAIN 200000

/* A selector of one address. */
static traffic_selector_t *selector_of(host_t *host)
{
	uint8_t bits = host->get_family(host) == AF_INET ? 32 : 128;

	return traffic_selector_create_from_subnet(host, bits, 0, 0, 65535);
}

/* Tells charon of an event. */
static void act(gateway_reader_t *reader)
{
	uint16_t kind = gateway_get16(reader);
	host_t *first, *second;
	uint32_t number;

	gateway_get16(reader);
	gateway_get32(reader);
	/* A reqid or an SPI. */
	number = gateway_get32(reader);
	first = gateway_get_address(reader);
	if (!first)
	{
		return;
	}
	switch (kind)
	{
		case GATEWAY_ACQUIRE:
			second = gateway_get_address(reader);
			if (second)
			{
				kernel_acquire_data_t data = {
					.src = selector_of(first),
					.dst = selector_of(second),
				};
				charon->kernel->acquire(charon->kernel, number, &data);
				data.src->destroy(data.src);
				data.dst->destroy(data.dst);
				return;
			}
			break;
		case GATEWAY_EXPIRE:
			charon->kernel->expire(charon->kernel, IPPROTO_ESP, htonl(number), first,
								   gateway_get8(reader));
			break;
		case GATEWAY_MAPPING:
			second = gateway_get_endpoint(reader);
			if (second)
			{
				charon->kernel->mapping(charon->kernel, IPPROTO_ESP, htonl(number), first,
										second);
				second->destroy(second);
			}
			break;
		default:
			DBG2(DBG_KNL, "the gateway tells of an unknown event %d", kind);
			break;
	}
	first->destroy(first);
}

/* Closes a connection when the thread is cancelled. */
static void close_events(int *fd)
{
	close(*fd);
}

job_requeue_t gateway_listen_for_events(gateway_link_t *this)
{
	gateway_welcome_t welcome = {};
	gateway_reader_t reader;
	uint8_t event[GATEWAY_LONGEST];
	ssize_t len = -1;
	bool old;
	int fd;

	fd = gateway_connect(GATEWAY_EVENTS, FALSE, &welcome);
	if (fd < 0)
	{
		thread_cancelability(TRUE);
		usleep(AGAIN);
		thread_cancelability(FALSE);
		return JOB_REQUEUE_DIRECT;
	}
	/* If it is another gateway than before, it is given what the last one had. */
	gateway_follow(this, welcome.life);
	while (TRUE)
	{
		thread_cleanup_push((void*)close_events, &fd);
		old = thread_cancelability(TRUE);
		len = recv(fd, event, sizeof(event), 0);
		thread_cancelability(old);
		thread_cleanup_pop(FALSE);
		if (len < 0 && errno == EINTR)
		{
			continue;
		}
		if (len <= 0)
		{
			break;
		}
		reader = (gateway_reader_t){ .data = event, .len = len };
		act(&reader);
	}
	close(fd);
	DBG1(DBG_KNL, "the gateway has gone");
	return JOB_REQUEUE_DIRECT;
}
