/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "cipherlane_ipsec.h"
#include "gateway_events.h"
#include "gateway_link.h"

#include <daemon.h>
#include <processing/jobs/callback_job.h>

#include <netinet/in.h>

typedef struct {
	kernel_ipsec_t public;
	gateway_link_t link;
} private_t;

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
	this->link.mutex->lock(this->link.mutex);
	status = gateway_ask(&this->link, &request, reply, &reader);
	this->link.mutex->unlock(this->link.mutex);
	if (status == 0)
	{
		*spi = htonl(gateway_get32(&reader));
	}
	return gateway_verdict(status);
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
	link_sa_t *sa;

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
	status = gateway_ask_simply(&this->link, &request);
	memwipe(&request, sizeof(request));
	if (status == SUCCESS && data->inbound)
	{
		INIT(sa,
			.spi = id->spi,
			.dst = id->dst->clone(id->dst),
		);
		this->link.mutex->lock(this->link.mutex);
		this->link.sas->insert_last(this->link.sas, sa);
		this->link.mutex->unlock(this->link.mutex);
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
	link_sa_t *sa;

	this->link.mutex->lock(this->link.mutex);
	enumerator = this->link.sas->create_enumerator(this->link.sas);
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
			this->link.sas->remove_at(this->link.sas, enumerator);
			gateway_destroy_sa(sa);
		}
		break;
	}
	enumerator->destroy(enumerator);
	this->link.mutex->unlock(this->link.mutex);
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
	status = gateway_ask_simply(&this->link, &request);
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
	this->link.mutex->lock(this->link.mutex);
	status = gateway_ask(&this->link, &request, reply, &reader);
	this->link.mutex->unlock(this->link.mutex);
	if (status)
	{
		return gateway_verdict(status);
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
	return gateway_ask_simply(&this->link, &request);
}

METHOD(kernel_ipsec_t, flush_sas, status_t, private_t *this)
{
	gateway_message_t request;

	this->link.mutex->lock(this->link.mutex);
	this->link.sas->destroy_function(this->link.sas, (void*)gateway_destroy_sa);
	this->link.sas = linked_list_create();
	this->link.mutex->unlock(this->link.mutex);
	gateway_begin(&request, GATEWAY_FLUSH_SAS);
	return gateway_ask_simply(&this->link, &request);
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
	link_policy_t *policy;
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
	this->link.mutex->lock(this->link.mutex);
	status = gateway_ask(&this->link, &policy->message, reply, &reader);
	if (status > 0)
	{
		this->link.mutex->unlock(this->link.mutex);
		free(policy);
		return gateway_verdict(status);
	}
	/* A gateway that is away now is given the policy when it is back. */
	this->link.policies->insert_last(this->link.policies, policy);
	this->link.mutex->unlock(this->link.mutex);
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
	link_policy_t *policy;
	int status;

	begin_with_policy(&request, GATEWAY_DELETE_POLICY, id, data->type, data->sa->reqid);
	this->link.mutex->lock(this->link.mutex);
	enumerator = this->link.policies->create_enumerator(this->link.policies);
	while (enumerator->enumerate(enumerator, &policy))
	{
		if (policy->len == request.len &&
			memeq(policy->message.data + GATEWAY_HEADER, request.data + GATEWAY_HEADER,
				  request.len - GATEWAY_HEADER))
		{
			this->link.policies->remove_at(this->link.policies, enumerator);
			free(policy);
			break;
		}
	}
	enumerator->destroy(enumerator);
	status = gateway_ask(&this->link, &request, reply, &reader);
	this->link.mutex->unlock(this->link.mutex);
	return gateway_verdict(status);
}

METHOD(kernel_ipsec_t, flush_policies, status_t, private_t *this)
{
	gateway_message_t request;

	this->link.mutex->lock(this->link.mutex);
	this->link.policies->destroy_function(this->link.policies, free);
	this->link.policies = linked_list_create();
	this->link.mutex->unlock(this->link.mutex);
	gateway_begin(&request, GATEWAY_FLUSH_POLICIES);
	return gateway_ask_simply(&this->link, &request);
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

METHOD(kernel_ipsec_t, destroy, void, private_t *this)
{
	gateway_link_end(&this->link);
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
	);
	gateway_link_begin(&this->link);
	if (!gateway_ensure(&this->link))
	{
		DBG1(DBG_KNL, "there is no gateway yet; the plugin waits for one");
	}
	lib->processor->queue_job(lib->processor,
		(job_t*)callback_job_create_with_prio((callback_job_cb_t)gateway_listen_for_events,
			&this->link, NULL, (callback_job_cancel_t)return_false, JOB_PRIO_CRITICAL));
	return &this->public;
}
