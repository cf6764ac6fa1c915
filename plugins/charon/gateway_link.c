/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "gateway_link.h"

#include <daemon.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void gateway_destroy_sa(link_sa_t *this)
{
	this->dst->destroy(this->dst);
	free(this);
}

/* Sends a request and reads the reply: its status, or -1 where the gateway has gone. */
static int exchange(gateway_link_t *this, gateway_message_t *request, uint8_t *reply,
					gateway_reader_t *reader)
{
	uint32_t number = htonl(++this->number);
	ssize_t len;
	int status;

	memcpy(request->data + 4, &number, sizeof(number));
	if (send(this->commands, request->data, request->len, MSG_NOSIGNAL) < 0)
	{
		return -1;
	}
	len = recv(this->commands, reply, GATEWAY_LONGEST, 0);
	if (len < GATEWAY_HEADER || memcmp(reply + 4, &number, sizeof(number)))
	{
		return -1;
	}
	*reader = (gateway_reader_t){ .data = reply, .len = len };
	gateway_get16(reader);
	status = gateway_get16(reader);
	gateway_get32(reader);
	return status;
}

static void disconnect(gateway_link_t *this)
{
	if (this->commands >= 0)
	{
		close(this->commands);
		this->commands = -1;
	}
}

/*
 * A gateway that was started again has none of this daemon's SAs: it is given the policies, and
 * charon makes the SAs anew.
 */
static bool restore(gateway_link_t *this)
{
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	enumerator_t *enumerator;
	link_policy_t *policy;
	link_sa_t *sa;

	DBG1(DBG_KNL, "the gateway was started anew: %d policies are restored, %d CHILD_SAs are "
		 "made again", this->policies->get_count(this->policies),
		 this->sas->get_count(this->sas));
	enumerator = this->policies->create_enumerator(this->policies);
	while (enumerator->enumerate(enumerator, &policy))
	{
		if (exchange(this, &policy->message, reply, &reader) < 0)
		{
			disconnect(this);
			break;
		}
	}
	enumerator->destroy(enumerator);
	if (this->commands < 0)
	{
		return FALSE;
	}
	while (this->sas->remove_first(this->sas, (void**)&sa) == SUCCESS)
	{
		charon->kernel->expire(charon->kernel, IPPROTO_ESP, sa->spi, sa->dst, TRUE);
		gateway_destroy_sa(sa);
	}
	return TRUE;
}

bool gateway_ensure(gateway_link_t *this)
{
	gateway_welcome_t welcome = {};
	bool is_first = this->life == 0;

	if (this->commands >= 0)
	{
		return TRUE;
	}
	this->commands = gateway_connect(GATEWAY_COMMANDS, is_first, &welcome);
	if (this->commands < 0)
	{
		return FALSE;
	}
	if (this->life == welcome.life)
	{
		return TRUE;
	}
	/* Before the first connection charon may have added policies. */
	if ((!is_first || this->policies->get_count(this->policies)) && !restore(this))
	{
		/* The gateway has a part of them: the next connection restores all again. */
		return FALSE;
	}
	this->life = welcome.life;
	return TRUE;
}

int gateway_ask(gateway_link_t *this, gateway_message_t *request, uint8_t *reply,
				gateway_reader_t *reader)
{
	int status = -1, i;

	if (request->failed)
	{
		DBG1(DBG_KNL, "a request does not fit a message of the gateway");
		return -1;
	}
	for (i = 0; status < 0 && i < 2 && gateway_ensure(this); i++)
	{
		status = exchange(this, request, reply, reader);
		if (status < 0)
		{
			disconnect(this);
		}
	}
	if (status < 0)
	{
		DBG1(DBG_KNL, "the gateway does not answer; is 'cipherlane gateway run' running, with "
			 "'control' in its gateway.toml?");
	}
	else if (status > 0 && status != GATEWAY_NOT_FOUND)
	{
		DBG1(DBG_KNL, "the gateway refuses: %.*s", (int)reader->len, reader->data);
	}
	return status;
}

status_t gateway_verdict(int status)
{
	switch (status)
	{
		case 0:
			return SUCCESS;
		case GATEWAY_UNSUPPORTED:
			return NOT_SUPPORTED;
		case GATEWAY_NOT_FOUND:
			return NOT_FOUND;
		default:
			return FAILED;
	}
}

status_t gateway_ask_simply(gateway_link_t *this, gateway_message_t *request)
{
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	int status;

	this->mutex->lock(this->mutex);
	status = gateway_ask(this, request, reply, &reader);
	this->mutex->unlock(this->mutex);
	return gateway_verdict(status);
}

void gateway_follow(gateway_link_t *this, uint64_t life)
{
	this->mutex->lock(this->mutex);
	if (this->life != life)
	{
		disconnect(this);
	}
	gateway_ensure(this);
	this->mutex->unlock(this->mutex);
}

void gateway_link_begin(gateway_link_t *this)
{
	this->mutex = mutex_create(MUTEX_TYPE_DEFAULT);
	this->commands = -1;
	this->sas = linked_list_create();
	this->policies = linked_list_create();
}

void gateway_link_end(gateway_link_t *this)
{
	disconnect(this);
	this->sas->destroy_function(this->sas, (void*)gateway_destroy_sa);
	this->policies->destroy_function(this->policies, free);
	this->mutex->destroy(this->mutex);
}
