/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * The connection for requests, and what the gateway has from charon: a gateway that was started anew
 * is given it again.
 */
#ifndef GATEWAY_LINK_H_
#define GATEWAY_LINK_H_

#include "gateway_client.h"

#include <collections/linked_list.h>
#include <threading/mutex.h>

/* An inbound SA. */
typedef struct {
	uint32_t spi;
	host_t *dst;
} link_sa_t;

/* A policy, as the gateway was asked for it. */
typedef struct {
	gateway_message_t message;
	/* Bytes of the message that tell the policy from others. */
	size_t len;
} link_policy_t;

typedef struct {
	/* For all below. */
	mutex_t *mutex;
	/* For requests; -1: there is no gateway. */
	int commands;
	/* The life of the gateway that has our SAs; 0 before the first. */
	uint64_t life;
	/* Numbers of requests. */
	uint32_t number;
	/* What the gateway has from us: inbound SAs (link_sa_t), and policies (link_policy_t). */
	linked_list_t *sas;
	linked_list_t *policies;
} gateway_link_t;

void gateway_link_begin(gateway_link_t *this);
void gateway_link_end(gateway_link_t *this);

void gateway_destroy_sa(link_sa_t *this);

/* Makes the connection for requests where there is none. Callers hold the mutex. */
bool gateway_ensure(gateway_link_t *this);

/* Takes note of the gateway's life: the connection to another one is closed, and made again. */
void gateway_follow(gateway_link_t *this, uint64_t life);

/*
 * A request of charon's; the connection is made again once. Callers hold the mutex. Returns the
 * status of the reply, or -1 where there is none.
 */
int gateway_ask(gateway_link_t *this, gateway_message_t *request, uint8_t *reply,
				gateway_reader_t *reader);

/* The same, of a request whose reply has no fields. It takes the mutex itself. */
status_t gateway_ask_simply(gateway_link_t *this, gateway_message_t *request);

/* A status of the gateway's as charon has it. */
status_t gateway_verdict(int status);

#endif /* GATEWAY_LINK_H_ */
