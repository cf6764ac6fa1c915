/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * The plugin's side of the gateway's control socket (docs/gateway-control.md): messages, and a
 * connection that is made again when the gateway was away.
 */
#ifndef GATEWAY_CLIENT_H_
#define GATEWAY_CLIENT_H_

#include <library.h>
#include <networking/host.h>
#include <selectors/traffic_selector.h>

/* Numbers of version 1 of the protocol. */
enum {
	GATEWAY_VERSION = 1,
	GATEWAY_HEADER = 8,
	GATEWAY_REPLY = 0x8000,
	/* Bytes of the longest message but a datagram's. */
	GATEWAY_LONGEST = 1024,
	/* Bytes of an address, and of an address with a port. */
	GATEWAY_ADDRESS = 17,
	GATEWAY_ENDPOINT = 19,
};

typedef enum {
	GATEWAY_HELLO = 1,
	GATEWAY_GET_SPI = 2,
	GATEWAY_ADD_SA = 3,
	GATEWAY_UPDATE_SA = 4,
	GATEWAY_QUERY_SA = 5,
	GATEWAY_DELETE_SA = 6,
	GATEWAY_FLUSH_SAS = 7,
	GATEWAY_ADD_POLICY = 8,
	GATEWAY_DELETE_POLICY = 9,
	GATEWAY_QUERY_POLICY = 10,
	GATEWAY_FLUSH_POLICIES = 11,
	GATEWAY_ACQUIRE = 0x4001,
	GATEWAY_EXPIRE = 0x4002,
	GATEWAY_MAPPING = 0x4003,
	GATEWAY_DATAGRAM = 0x4010,
} gateway_kind_t;

typedef enum {
	GATEWAY_COMMANDS = 1,
	GATEWAY_EVENTS = 2,
	GATEWAY_DATAGRAMS = 3,
} gateway_role_t;

/* Why the gateway has not done something. */
enum {
	GATEWAY_UNSUPPORTED = 2,
	GATEWAY_NOT_FOUND = 3,
};

/* A message that is written. What does not fit sets 'failed'. */
typedef struct {
	uint8_t data[GATEWAY_LONGEST];
	size_t len;
	bool failed;
} gateway_message_t;

/* A message that is read. What is not there reads as zeros and sets 'failed'. */
typedef struct {
	const uint8_t *data;
	size_t len;
	bool failed;
} gateway_reader_t;

void gateway_begin(gateway_message_t *this, gateway_kind_t kind);
void gateway_put8(gateway_message_t *this, uint8_t value);
void gateway_put16(gateway_message_t *this, uint16_t value);
void gateway_put32(gateway_message_t *this, uint32_t value);
void gateway_put64(gateway_message_t *this, uint64_t value);
void gateway_put_key(gateway_message_t *this, chunk_t key);
/* An address; NULL: none. */
void gateway_put_address(gateway_message_t *this, host_t *host);
/* An address and its port. */
void gateway_put_endpoint(gateway_message_t *this, host_t *host);
void gateway_put_selector(gateway_message_t *this, traffic_selector_t *ts);

uint16_t gateway_get16(gateway_reader_t *this);
uint32_t gateway_get32(gateway_reader_t *this);
uint64_t gateway_get64(gateway_reader_t *this);
uint8_t gateway_get8(gateway_reader_t *this);
/* An address, or NULL where there is none. */
host_t *gateway_get_address(gateway_reader_t *this);
/* An address and its port, or NULL. */
host_t *gateway_get_endpoint(gateway_reader_t *this);

/* What the gateway says of itself in its reply to a hello. */
typedef struct {
	/* Another number after each start of the gateway. */
	uint64_t life;
	/* The UDP ports of IKE, and of ESP. */
	uint16_t ike_port;
	uint16_t esp_port;
} gateway_welcome_t;

/*
 * Connects to the gateway and says hello; -1 where there is none, or none that understands us.
 * 'flush': what an earlier daemon has left is removed.
 */
int gateway_connect(gateway_role_t role, bool flush, gateway_welcome_t *welcome);

#endif /* GATEWAY_CLIENT_H_ */
