/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "gateway_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Where the gateway listens unless the option 'control' names another place. */
#define DEFAULT_CONTROL "/run/cipherlane/control.sock"

/* Seconds that the gateway may take for a reply. */
#define PATIENCE 5

static void put(gateway_message_t *this, const void *data, size_t len)
{
	if (this->failed || len > sizeof(this->data) - this->len)
	{
		this->failed = TRUE;
		return;
	}
	memcpy(this->data + this->len, data, len);
	this->len += len;
}

void gateway_put8(gateway_message_t *this, uint8_t value)
{
	put(this, &value, sizeof(value));
}

void gateway_put16(gateway_message_t *this, uint16_t value)
{
	value = htons(value);
	put(this, &value, sizeof(value));
}

void gateway_put32(gateway_message_t *this, uint32_t value)
{
	value = htonl(value);
	put(this, &value, sizeof(value));
}

void gateway_put64(gateway_message_t *this, uint64_t value)
{
	gateway_put32(this, value >> 32);
	gateway_put32(this, value);
}

void gateway_begin(gateway_message_t *this, gateway_kind_t kind)
{
	this->len = 0;
	this->failed = FALSE;
	gateway_put16(this, kind);
	gateway_put16(this, 0);
	gateway_put32(this, 0);
}

void gateway_put_key(gateway_message_t *this, chunk_t key)
{
	gateway_put16(this, min(key.len, UINT16_MAX));
	put(this, key.ptr, key.len);
}

/* Family and bytes of an address. */
static void put_bytes(gateway_message_t *this, chunk_t address)
{
	uint8_t field[GATEWAY_ADDRESS] = {};

	if (address.len == 4 || address.len == 16)
	{
		field[0] = address.len == 4 ? 4 : 6;
		memcpy(field + 1, address.ptr, address.len);
	}
	else
	{
		this->failed = TRUE;
	}
	put(this, field, sizeof(field));
}

void gateway_put_address(gateway_message_t *this, host_t *host)
{
	uint8_t none[GATEWAY_ADDRESS] = {};

	if (host)
	{
		put_bytes(this, host->get_address(host));
	}
	else
	{
		put(this, none, sizeof(none));
	}
}

void gateway_put_endpoint(gateway_message_t *this, host_t *host)
{
	gateway_put_address(this, host);
	gateway_put16(this, host->get_port(host));
}

void gateway_put_selector(gateway_message_t *this, traffic_selector_t *ts)
{
	put_bytes(this, ts->get_from_address(ts));
	put_bytes(this, ts->get_to_address(ts));
	gateway_put8(this, ts->get_protocol(ts));
	gateway_put16(this, ts->get_from_port(ts));
	gateway_put16(this, ts->get_to_port(ts));
}

static void get(gateway_reader_t *this, void *data, size_t len)
{
	if (len > this->len)
	{
		this->failed = TRUE;
		memset(data, 0, len);
		return;
	}
	memcpy(data, this->data, len);
	this->data += len;
	this->len -= len;
}

uint8_t gateway_get8(gateway_reader_t *this)
{
	uint8_t value;

	get(this, &value, sizeof(value));
	return value;
}

uint16_t gateway_get16(gateway_reader_t *this)
{
	uint16_t value;

	get(this, &value, sizeof(value));
	return ntohs(value);
}

uint32_t gateway_get32(gateway_reader_t *this)
{
	uint32_t value;

	get(this, &value, sizeof(value));
	return ntohl(value);
}

uint64_t gateway_get64(gateway_reader_t *this)
{
	uint64_t high = gateway_get32(this);

	return high << 32 | gateway_get32(this);
}

host_t *gateway_get_address(gateway_reader_t *this)
{
	uint8_t field[GATEWAY_ADDRESS];

	get(this, field, sizeof(field));
	switch (field[0])
	{
		case 4:
			return host_create_from_chunk(AF_INET, chunk_create(field + 1, 4), 0);
		case 6:
			return host_create_from_chunk(AF_INET6, chunk_create(field + 1, 16), 0);
		default:
			return NULL;
	}
}

host_t *gateway_get_endpoint(gateway_reader_t *this)
{
	host_t *host = gateway_get_address(this);
	uint16_t port = gateway_get16(this);

	if (host)
	{
		host->set_port(host, port);
	}
	return host;
}

/* Sends a hello, and reads what the gateway says. */
static bool greet(int fd, gateway_role_t role, bool flush, gateway_welcome_t *welcome)
{
	gateway_message_t hello;
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	uint16_t kind, status, version;
	ssize_t len;

	gateway_begin(&hello, GATEWAY_HELLO);
	put(&hello, "CLGW", 4);
	gateway_put16(&hello, GATEWAY_VERSION);
	gateway_put8(&hello, role);
	gateway_put8(&hello, flush ? 1 : 0);
	if (send(fd, hello.data, hello.len, MSG_NOSIGNAL) < 0)
	{
		return FALSE;
	}
	len = recv(fd, reply, sizeof(reply), 0);
	if (len < GATEWAY_HEADER)
	{
		return FALSE;
	}
	reader = (gateway_reader_t){ .data = reply, .len = len };
	kind = gateway_get16(&reader);
	status = gateway_get16(&reader);
	gateway_get32(&reader);
	if (kind != (GATEWAY_HELLO | GATEWAY_REPLY) || status)
	{
		DBG1(DBG_KNL, "the gateway refuses this plugin: %.*s", (int)reader.len,
			 reader.data);
		return FALSE;
	}
	version = gateway_get16(&reader);
	welcome->life = gateway_get64(&reader);
	welcome->ike_port = gateway_get16(&reader);
	welcome->esp_port = gateway_get16(&reader);
	return !reader.failed && version == GATEWAY_VERSION;
}

int gateway_connect(gateway_role_t role, bool flush, gateway_welcome_t *welcome)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE };
	struct timeval forever = {};
	const char *path;
	int fd;

	path = lib->settings->get_str(lib->settings, "%s.plugins.kernel-cipherlane.control",
								  DEFAULT_CONTROL, lib->ns);
	if (strlen(path) >= sizeof(address.sun_path))
	{
		DBG1(DBG_KNL, "the path '%s' of the gateway's control socket is too long", path);
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
	{
		DBG1(DBG_KNL, "no socket for the gateway: %s", strerror(errno));
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr*)&address, sizeof(address)) != 0 ||
		!greet(fd, role, flush, welcome))
	{
		DBG2(DBG_KNL, "no gateway at '%s': %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	if (role != GATEWAY_COMMANDS)
	{
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	}
	return fd;
}
