/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "cipherlane_ipsec.h"
#include "gateway_client.h"

#include <daemon.h>
#include <collections/linked_list.h>
#include <processing/jobs/callback_job.h>
#include <threading/mutex.h>
#include <threading/thread.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Microseconds between two tries to find a gateway. */
#define AGAIN 200000

typedef struct {
	kernel_ipsec_t public;
	/* For all below. */
	mutex_t *mutex;
	/* For requests; -1: there is no gateway. */
	int commands;
	/* The life of the gateway that has our SAs; 0 before the first. */
	uint64_t life;
	/* Numbers of requests. */
	uint32_t number;
	/* What the gateway has from us: inbound SAs (sa_t), and policies (policy_t). */
	linked_list_t *sas;
	linked_list_t *policies;
} private_t;

/* An inbound SA. */
typedef struct {
	uint32_t spi;
	host_t *dst;
} sa_t;

/* A policy, as the gateway was asked for it. */
typedef struct {
	gateway_message_t message;
	/* Bytes of the message that tell the policy from others. */
	size_t len;
} policy_t;

static void destroy_sa(sa_t *this)
{
	this->dst->destroy(this->dst);
	free(this);
}

/* Sends a request and reads the reply: its status, or -1 where the gateway has gone. */
static int exchange(private_t *this, gateway_message_t *request, uint8_t *reply,
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

static void disconnect(private_t *this)
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
static bool restore(private_t *this)
{
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	enumerator_t *enumerator;
	policy_t *policy;
	sa_t *sa;

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
		destroy_sa(sa);
	}
	return TRUE;
}

/* Makes the connection for requests where there is none. */
static bool ensure(private_t *this)
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

/* A request of charon's; the connection is made again once. Callers hold the mutex. */
static int ask(private_t *this, gateway_message_t *request, uint8_t *reply,
			   gateway_reader_t *reader)
{
	int status = -1, i;

	if (request->failed)
	{
		DBG1(DBG_KNL, "a request does not fit a message of the gateway");
		return -1;
	}
	for (i = 0; status < 0 && i < 2 && ensure(this); i++)
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

static status_t verdict(int status)
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

/* The same, of a request whose reply has no fields. */
static status_t ask_simply(private_t *this, gateway_message_t *request)
{
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	int status;

	this->mutex->lock(this->mutex);
	status = ask(this, request, reply, &reader);
	this->mutex->unlock(this->mutex);
	return verdict(status);
}

METHOD(kernel_ipsec_t, get_features, kernel_feature_t, private_t *this)
{
	return KERNEL_REQUIRE_UDP_ENCAPSULATION | KERNEL_NO_POLICY_UPDATES;
}

METHOD(kernel_ipsec_t, get_spi, status_t, private_t *this, host_t *src, host_t *dst,
	uint8_t protocol, uint32_t *spi)
{
	gateway_message_t request;
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	int status;

	if (protocol != IPPROTO_ESP)
	{
		return NOT_SUPPORTED;
	}
	gateway_begin(&request, GATEWAY_GET_SPI);
	this->mutex->lock(this->mutex);
	status = ask(this, &request, reply, &reader);
	this->mutex->unlock(this->mutex);
	if (status == 0)
	{
		*spi = htonl(gateway_get32(&reader));
	}
	return verdict(status);
}

METHOD(kernel_ipsec_t, get_cpi, status_t, private_t *this, host_t *src, host_t *dst,
	uint16_t *cpi)
{
	return NOT_SUPPORTED;
}

static void put_limits(gateway_message_t *request, uint64_t soft, uint64_t hard)
{
	gateway_put64(request, soft);
	gateway_put64(request, hard);
}

METHOD(kernel_ipsec_t, add_sa, status_t, private_t *this, kernel_ipsec_sa_id_t *id,
	kernel_ipsec_add_sa_t *data)
{
	gateway_message_t request;
	lifetime_cfg_t *life = data->lifetime;
	uint16_t flags = 0;
	status_t status;
	sa_t *sa;

	if (id->proto != IPPROTO_ESP || data->ipcomp != IPCOMP_NONE)
	{
		DBG1(DBG_KNL, "the gateway has neither AH nor IPComp");
		return FAILED;
	}
	flags |= data->esn ? 1 : 0;
	flags |= data->encap ? 2 : 0;
	flags |= data->copy_dscp == DSCP_COPY_OUT_ONLY || data->copy_dscp == DSCP_COPY_YES ? 4 : 0;
	flags |= data->copy_ecn ? 8 : 0;
	gateway_begin(&request, GATEWAY_ADD_SA);
	gateway_put32(&request, ntohl(id->spi));
	gateway_put8(&request, data->inbound ? 1 : 2);
	gateway_put8(&request, data->mode == MODE_TUNNEL ? 2 : 1);
	gateway_put16(&request, flags);
	gateway_put32(&request, data->reqid);
	gateway_put32(&request, data->replay_window);
	gateway_put_endpoint(&request, id->src);
	gateway_put_endpoint(&request, id->dst);
	gateway_put16(&request, data->enc_alg);
	gateway_put16(&request, data->int_alg == AUTH_UNDEFINED ? 0 : data->int_alg);
	/* Time passes for both SAs of a pair alike: one of them asks for new ones. */
	put_limits(&request, data->inbound ? life->time.rekey : 0, life->time.life);
	put_limits(&request, life->bytes.rekey, life->bytes.life);
	put_limits(&request, life->packets.rekey, life->packets.life);
	gateway_put_key(&request, data->enc_key);
	gateway_put_key(&request, data->int_key);
	status = ask_simply(this, &request);
	memwipe(&request, sizeof(request));
	if (status == SUCCESS && data->inbound)
	{
		INIT(sa,
			.spi = id->spi,
			.dst = id->dst->clone(id->dst),
		);
		this->mutex->lock(this->mutex);
		this->sas->insert_last(this->sas, sa);
		this->mutex->unlock(this->mutex);
	}
	return status;
}

/* Begins a request about an SA. */
static void begin_with_id(gateway_message_t *request, gateway_kind_t kind,
						  kernel_ipsec_sa_id_t *id)
{
	gateway_begin(request, kind);
	gateway_put32(request, ntohl(id->spi));
	gateway_put_address(request, id->dst);
}

/* Takes an inbound SA from the list, and puts it back with another address where there is one. */
static void note_change(private_t *this, kernel_ipsec_sa_id_t *id, host_t *dst)
{
	enumerator_t *enumerator;
	sa_t *sa;

	this->mutex->lock(this->mutex);
	enumerator = this->sas->create_enumerator(this->sas);
	while (enumerator->enumerate(enumerator, &sa))
	{
		if (sa->spi != id->spi || !sa->dst->ip_equals(sa->dst, id->dst))
		{
			continue;
		}
		if (dst)
		{
			sa->dst->destroy(sa->dst);
			sa->dst = dst->clone(dst);
		}
		else
		{
			this->sas->remove_at(this->sas, enumerator);
			destroy_sa(sa);
		}
		break;
	}
	enumerator->destroy(enumerator);
	this->mutex->unlock(this->mutex);
}

METHOD(kernel_ipsec_t, update_sa, status_t, private_t *this, kernel_ipsec_sa_id_t *id,
	kernel_ipsec_update_sa_t *data)
{
	gateway_message_t request;
	status_t status;

	begin_with_id(&request, GATEWAY_UPDATE_SA, id);
	gateway_put_endpoint(&request, data->new_src);
	gateway_put_endpoint(&request, data->new_dst);
	gateway_put8(&request, data->new_encap ? 1 : 0);
	status = ask_simply(this, &request);
	if (status == SUCCESS)
	{
		note_change(this, id, data->new_dst);
	}
	return status;
}

/* When something was used that has been idle for some seconds; 0: it was not used. */
static time_t used_at(uint64_t idle)
{
	return idle == UINT64_MAX ? 0 : time_monotonic(NULL) - (time_t)idle;
}

METHOD(kernel_ipsec_t, query_sa, status_t, private_t *this, kernel_ipsec_sa_id_t *id,
	kernel_ipsec_query_sa_t *data, uint64_t *bytes, uint64_t *packets, time_t *time)
{
	gateway_message_t request;
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	uint64_t values[3];
	int status, i;

	begin_with_id(&request, GATEWAY_QUERY_SA, id);
	this->mutex->lock(this->mutex);
	status = ask(this, &request, reply, &reader);
	this->mutex->unlock(this->mutex);
	if (status)
	{
		return verdict(status);
	}
	for (i = 0; i < countof(values); i++)
	{
		values[i] = gateway_get64(&reader);
	}
	if (reader.failed)
	{
		return FAILED;
	}
	if (bytes)
	{
		*bytes = values[0];
	}
	if (packets)
	{
		*packets = values[1];
	}
	if (time)
	{
		*time = used_at(values[2]);
	}
	return SUCCESS;
}

METHOD(kernel_ipsec_t, del_sa, status_t, private_t *this, kernel_ipsec_sa_id_t *id,
	kernel_ipsec_del_sa_t *data)
{
	gateway_message_t request;

	note_change(this, id, NULL);
	begin_with_id(&request, GATEWAY_DELETE_SA, id);
	return ask_simply(this, &request);
}

METHOD(kernel_ipsec_t, flush_sas, status_t, private_t *this)
{
	gateway_message_t request;

	this->mutex->lock(this->mutex);
	this->sas->destroy_function(this->sas, (void*)destroy_sa);
	this->sas = linked_list_create();
	this->mutex->unlock(this->mutex);
	gateway_begin(&request, GATEWAY_FLUSH_SAS);
	return ask_simply(this, &request);
}

/* Begins a request about a policy. */
static void begin_with_policy(gateway_message_t *request, gateway_kind_t kind,
							  kernel_ipsec_policy_id_t *id, policy_type_t type, uint32_t reqid)
{
	gateway_begin(request, kind);
	gateway_put8(request, id->dir == POLICY_IN ? 1 : id->dir == POLICY_OUT ? 2 : 3);
	gateway_put8(request, type == POLICY_IPSEC ? 1 : type == POLICY_DROP ? 2 : 3);
	gateway_put32(request, reqid);
	gateway_put_selector(request, id->src_ts);
	gateway_put_selector(request, id->dst_ts);
}

METHOD(kernel_ipsec_t, add_policy, status_t, private_t *this, kernel_ipsec_policy_id_t *id,
	kernel_ipsec_manage_policy_t *data)
{
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	host_t *own = NULL;
	policy_t *policy;
	int status;

	INIT(policy);
	begin_with_policy(&policy->message, GATEWAY_ADD_POLICY, id, data->type, data->sa->reqid);
	policy->len = policy->message.len;
	/* Packets of this host need a source address that the policy holds. */
	if (id->dir == POLICY_OUT &&
		charon->kernel->get_address_by_ts(charon->kernel, id->src_ts, &own, NULL) != SUCCESS)
	{
		own = NULL;
	}
	gateway_put_address(&policy->message, own);
	DESTROY_IF(own);
	this->mutex->lock(this->mutex);
	status = ask(this, &policy->message, reply, &reader);
	if (status > 0)
	{
		this->mutex->unlock(this->mutex);
		free(policy);
		return verdict(status);
	}
	/* A gateway that is away now is given the policy when it is back. */
	this->policies->insert_last(this->policies, policy);
	this->mutex->unlock(this->mutex);
	return SUCCESS;
}

METHOD(kernel_ipsec_t, query_policy, status_t, private_t *this, kernel_ipsec_policy_id_t *id,
	kernel_ipsec_query_policy_t *data, time_t *use_time)
{
	/* charon gives no reqid here; query_sa tells the time too. */
	return NOT_SUPPORTED;
}

METHOD(kernel_ipsec_t, del_policy, status_t, private_t *this, kernel_ipsec_policy_id_t *id,
	kernel_ipsec_manage_policy_t *data)
{
	gateway_message_t request;
	gateway_reader_t reader;
	uint8_t reply[GATEWAY_LONGEST];
	enumerator_t *enumerator;
	policy_t *policy;
	int status;

	begin_with_policy(&request, GATEWAY_DELETE_POLICY, id, data->type, data->sa->reqid);
	this->mutex->lock(this->mutex);
	enumerator = this->policies->create_enumerator(this->policies);
	while (enumerator->enumerate(enumerator, &policy))
	{
		if (policy->len == request.len &&
			memeq(policy->message.data + GATEWAY_HEADER, request.data + GATEWAY_HEADER,
				  request.len - GATEWAY_HEADER))
		{
			this->policies->remove_at(this->policies, enumerator);
			free(policy);
			break;
		}
	}
	enumerator->destroy(enumerator);
	status = ask(this, &request, reply, &reader);
	this->mutex->unlock(this->mutex);
	return verdict(status);
}

METHOD(kernel_ipsec_t, flush_policies, status_t, private_t *this)
{
	gateway_message_t request;

	this->mutex->lock(this->mutex);
	this->policies->destroy_function(this->policies, free);
	this->policies = linked_list_create();
	this->mutex->unlock(this->mutex);
	gateway_begin(&request, GATEWAY_FLUSH_POLICIES);
	return ask_simply(this, &request);
}

METHOD(kernel_ipsec_t, bypass_socket, bool, private_t *this, int fd, int family)
{
	return TRUE;
}

METHOD(kernel_ipsec_t, enable_udp_decap, bool, private_t *this, int fd, int family,
	uint16_t port)
{
	return TRUE;
}

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

/* Reads events until the gateway goes, and finds the next gateway. */
static job_requeue_t listen_for_events(private_t *this)
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
	this->mutex->lock(this->mutex);
	if (this->life != welcome.life)
	{
		disconnect(this);
	}
	ensure(this);
	this->mutex->unlock(this->mutex);
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

METHOD(kernel_ipsec_t, destroy, void, private_t *this)
{
	disconnect(this);
	this->sas->destroy_function(this->sas, (void*)destroy_sa);
	this->policies->destroy_function(this->policies, free);
	this->mutex->destroy(this->mutex);
	free(this);
}

kernel_ipsec_t *cipherlane_ipsec_create()
{
	private_t *this;

	INIT(this,
		.public = {
			.get_features = _get_features,
			.get_spi = _get_spi,
			.get_cpi = _get_cpi,
			.add_sa = _add_sa,
			.update_sa = _update_sa,
			.query_sa = _query_sa,
			.del_sa = _del_sa,
			.flush_sas = _flush_sas,
			.add_policy = _add_policy,
			.query_policy = _query_policy,
			.del_policy = _del_policy,
			.flush_policies = _flush_policies,
			.bypass_socket = _bypass_socket,
			.enable_udp_decap = _enable_udp_decap,
			.destroy = _destroy,
		},
		.mutex = mutex_create(MUTEX_TYPE_DEFAULT),
		.commands = -1,
		.sas = linked_list_create(),
		.policies = linked_list_create(),
	);
	if (!ensure(this))
	{
		DBG1(DBG_KNL, "there is no gateway yet; the plugin waits for one");
	}
	lib->processor->queue_job(lib->processor,
		(job_t*)callback_job_create_with_prio((callback_job_cb_t)listen_for_events, this, NULL,
			(callback_job_cancel_t)return_false, JOB_PRIO_CRITICAL));
	return &this->public;
}
