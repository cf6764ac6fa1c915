// SPDX-License-Identifier: GPL-2.0
/*
 * Results of the device that software makes again.
 *
 * The kernel tests an algorithm once, when it is registered. A device that begins to be wrong
 * later would spoil everything that is written with it, and nobody would know before it is read.
 * So one request in some is served by both: the device writes to the slot's bounce buffer, software
 * to where the user wants the result, and both are compared. The user of such a request has
 * what software made, whatever the device did. A device that was wrong is turned off, by the
 * switch that its user has too.
 *
 * Both read a copy of the input and of the IV: users may change theirs meanwhile, as tcrypt does,
 * or a program whose pages are being written out. One request at a time is audited, by the
 * device's workqueue, since software may have to wait.
 */
#include <linux/module.h>

#include "cipherlane.h"

int cl_audit_init(struct cl_device *dev)
{
	struct cl_audit *audit = &dev->audit;

	audit->copy = (void *)devm_get_free_pages(dev->parent, GFP_KERNEL,
						  get_order(dev->bounce_len));
	INIT_WORK(&audit->work, cl_audit);
	return audit->copy ? 0 : -ENOMEM;
}

/* A request for the device: whether it is one of those that are audited. */
void cl_pick_for_audit(struct cl_device *dev, struct cl_req *req)
{
	struct cl_audit *audit = &dev->audit;
	u32 every = READ_ONCE(cl_audit_every);
	u32 len = req->skip + req->in_len;

	/* The result must have room in the bounce buffer. Who measures shall not be disturbed. */
	if (!every || req->ctx->force >= 0 ||
	    req->skip + max(req->in_len, req->out_len) > dev->bounce_len ||
	    (u32)atomic_inc_return(&audit->turn) % every || cmpxchg(&audit->req, NULL, req))
		return;
	req->audited = true;
	audit->src = req->src;
	audit->iv = req->iv;
	sg_copy_to_buffer(req->src, sg_nents(req->src), audit->copy, len);
	sg_init_one(&audit->sg, audit->copy, len);
	memcpy(audit->iv_copy, req->iv, cl_iv_len(req->ctx->alg));
	req->src = &audit->sg;
	req->iv = audit->iv_copy;
}

/* Has a request be as if it had not been picked. It is not mapped any more. */
void cl_drop_audit(struct cl_device *dev, struct cl_req *req)
{
	struct cl_audit *audit = &dev->audit;

	if (!req->audited)
		return;
	req->audited = false;
	req->src = audit->src;
	req->iv = audit->iv;
	memzero_explicit(audit->copy, req->skip + req->in_len);
	/* The next one may have all of this from here on. */
	smp_store_release(&audit->req, NULL);
}

/* A request that the device has ended, and that is audited. */
void cl_audit_later(struct cl_device *dev, struct cl_slot *slot)
{
	dev->audit.slot = slot;
	queue_work(dev->workqueue, &dev->audit.work);
}

/* Whether software has made what the device has made. */
static bool cl_is_same(struct cl_slot *slot)
{
	struct cl_req *req = slot->req;
	struct sg_mapping_iter iter;
	bool same = true;
	u32 at = 0;

	if (!req->out_len)
		return true;
	sg_miter_start(&iter, req->dst, sg_nents(req->dst), SG_MITER_FROM_SG);
	if (!sg_miter_skip(&iter, req->skip))
		same = false;
	while (same && at < req->out_len && sg_miter_next(&iter)) {
		u32 here = min_t(u32, iter.length, req->out_len - at);

		same = !memcmp(iter.addr, slot->bounce + at, here);
		at += here;
	}
	sg_miter_stop(&iter);
	return same && at == req->out_len;
}

void cl_audit(struct work_struct *work)
{
	struct cl_audit *audit = container_of(work, struct cl_audit, work);
	struct cl_device *dev = container_of(audit, struct cl_device, audit);
	struct cl_slot *slot = audit->slot;
	struct cl_req *req = slot->req;
	struct crypto_async_request *base = req->base;
	bool done = slot->result == CL_DONE;
	DECLARE_CRYPTO_WAIT(wait);
	int ret;

	ret = cl_run_fallback(req, CRYPTO_TFM_REQ_MAY_BACKLOG, crypto_req_done, &wait);
	ret = crypto_wait_req(ret, &wait);
	cl_count(CL_STAT_AUDITED);
	/* Where software has failed otherwise there is nothing to compare with. */
	if (ret == -EBADMSG ? done : !ret && (!done || !cl_is_same(slot))) {
		cl_count(CL_STAT_WRONG);
		WRITE_ONCE(cl_enabled, false);
		dev_err_ratelimited(dev->parent,
				    "a wrong result of %u bytes by %s: it is turned off, and earlier results may be wrong\n",
				    req->len, crypto_tfm_alg_driver_name(base->tfm));
	}
	/* The IV of what would follow. */
	if (!cl_is_aead(req->ctx->alg))
		memcpy(audit->iv, audit->iv_copy, cl_iv_len(req->ctx->alg));
	cl_drop_audit(dev, req);
	cl_count(req->encrypt ? CL_STAT_ENCRYPTED : CL_STAT_DECRYPTED);
	cl_add(CL_STAT_BYTES, req->len);
	atomic_dec(&req->ctx->flying);
	local_bh_disable();
	crypto_request_complete(base, ret);
	local_bh_enable();
	cl_release(dev, slot);
}
