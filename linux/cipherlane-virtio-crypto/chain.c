// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that gather, and go out together.
 *
 * A request that finds a chain of requests under way in its queue waits for the end of that, with
 * all that come meanwhile, and they become the next chain: one kick and one interrupt for
 * all of them.
 *
 * A request that finds none is held until the processor has nothing else to do, which a thread of
 * low priority finds out, or until none has come for half a millisecond, but for two at most:
 * users that have more to give do so meanwhile. Where that was in vain, since there is one user
 * who waits for each result, the next requests go out at once, and holding is tried again later.
 * Nothing is held when much has gathered, or after completions: those who were called with a
 * result have given what they have.
 *
 * Everything here is under the lock of the device.
 */
#include <linux/mm.h>
#include <linux/virtio_crypto.h>

#include "virtio.h"

/* Chains between those that wait for more requests, where none come. */
#define CLV_ALONE	64

int clv_add_chains(struct clv_device *dev)
{
	struct device *parent = dev->common.parent;
	unsigned int i, j;

	dev->key_queues = devm_kzalloc(parent, dev->common.sessions, GFP_KERNEL);
	if (!dev->key_queues)
		return -ENOMEM;
	for (i = 0; i < dev->queue_count; i++) {
		struct clv_queue *queue = &dev->queues[i];

		for (j = 0; j < CLV_CHAINS; j++) {
			struct clv_chain *chain = devm_kzalloc(parent, sizeof(*chain), GFP_KERNEL);

			if (!chain)
				return -ENOMEM;
			INIT_LIST_HEAD(&chain->slots);
			list_add(&chain->list, &queue->free);
		}
	}
	return 0;
}

static void clv_free_chain(struct clv_queue *queue, struct clv_chain *chain)
{
	/* The copy of a key stands nowhere else. */
	if (!chain->count)
		memzero_explicit(chain->key, sizeof(chain->key));
	INIT_LIST_HEAD(&chain->slots);
	list_add(&chain->list, &queue->free);
}

static void clv_gathers_anew(struct clv_queue *queue)
{
	queue->gathered_count = 0;
	queue->gathered_len = 0;
	queue->gathered_units = 0;
	queue->held = false;
}

/* After a reset: the device has nothing any more. */
void clv_drop_chains(struct clv_device *dev, struct clv_queue *queue)
{
	void *chain;

	while ((chain = virtqueue_detach_unused_buf(queue->vq)))
		if (chain != &dev->hello)
			clv_free_chain(queue, chain);
	INIT_LIST_HEAD(&queue->gathered);
	clv_gathers_anew(queue);
	queue->is_under_way = false;
}

static void clv_write_header(struct clv_chain *chain, u32 opcode, u32 session)
{
	memset(&chain->header, 0, sizeof(chain->header));
	chain->header.opcode = cpu_to_le32(opcode);
	chain->header.version = cpu_to_le32(CLV_VERSION);
	chain->header.magic = cpu_to_le64(CLV_MAGIC);
	chain->header.session = cpu_to_le32(session);
}

/* Gives a chain with these lists to the device. No memory: there is no indirect table. */
static int clv_add(struct clv_queue *queue, struct clv_chain *chain, u32 head_len,
		   unsigned int outs, unsigned int ins)
{
	unsigned int statuses = chain->count + 1;

	memset(chain->status, CLV_NO_STATUS, statuses);
	sg_init_one(&chain->head, &chain->header, head_len);
	sg_init_one(&chain->tail, chain->status, statuses);
	chain->lists[0] = &chain->head;
	chain->lists[outs + ins - 1] = &chain->tail;
	queue->is_fresh = true;
	return virtqueue_add_sgs(queue->vq, chain->lists, outs, ins, chain, GFP_ATOMIC);
}

/* Bytes that a request counts towards those of its chain. */
static u32 clv_len(const struct cl_req *req)
{
	return req->skip + max(req->in_len, req->out_len);
}

/* Makes a chain of what has gathered, and gives it to the device. */
static bool clv_send_run(struct clv_device *dev, struct clv_queue *queue)
{
	struct clv_chain *chain = list_first_entry(&queue->free, struct clv_chain, list);
	unsigned int outs = 1, ins = 0;
	struct cl_slot *slot, *next;
	struct clv_slot *own;
	u32 bytes = 0;

	list_del(&chain->list);
	chain->count = 0;
	chain->written = 0;
	list_for_each_entry_safe(slot, next, &queue->gathered, list) {
		u32 len = clv_len(slot->req);

		if (chain->count == dev->together ||
		    (chain->count && bytes + len > dev->common.max_request))
			break;
		bytes += len;
		own = slot->transport;
		chain->entries[chain->count++] = own->entry;
		chain->written += slot->req->out_len;
		if (own->out_count)
			chain->lists[outs++] = own->out;
		queue->gathered_count--;
		queue->gathered_len -= len;
		queue->gathered_units -= slot->units;
		list_move_tail(&slot->list, &chain->slots);
	}
	list_for_each_entry(slot, &chain->slots, list) {
		own = slot->transport;
		if (own->in_count)
			chain->lists[outs + ins++] = own->in;
	}
	chain->written += chain->count + 1;
	clv_write_header(chain, CLV_OP_RUN, 0);
	chain->header.count = cpu_to_le32(chain->count);
	if (clv_add(queue, chain, sizeof(chain->header) + chain->count * sizeof(*chain->entries),
		    outs, ins + 1)) {
		clv_free_chain(queue, chain);
		return false;
	}
	queue->is_under_way = true;
	if (chain->count > 1)
		queue->alone = 0;
	else if (queue->held)
		queue->alone = CLV_ALONE;
	else if (queue->alone)
		queue->alone--;
	queue->held = false;
	return true;
}

/*
 * Whether what has gathered goes out, or is to be held. Without the lock it can be asked by who has
 * just given a request: if not, somebody will look who takes the lock after that.
 */
bool clv_has_to_send(struct clv_queue *queue, bool now)
{
	if (!READ_ONCE(queue->gathered_count) || READ_ONCE(queue->is_under_way))
		return false;
	return now || !READ_ONCE(queue->held) || READ_ONCE(queue->gathered_count) >= CLV_ENOUGH ||
	       READ_ONCE(queue->gathered_len) >= CLV_ENOUGH_LEN;
}

/* From time to time: whether what is held goes on waiting, since more has come. */
bool clv_holds_on(struct clv_queue *queue)
{
	if (!queue->held || queue->held_count == queue->gathered_count || !--queue->held_looks)
		return false;
	queue->held_count = queue->gathered_count;
	hrtimer_start(&queue->timer, ns_to_ktime(CLV_LOOK_NS), HRTIMER_MODE_REL_SOFT);
	return true;
}

/* What has gathered goes out, or waits for more unless it shall go @now. */
void clv_send(struct clv_device *dev, struct clv_queue *queue, bool now)
{
	if (!clv_has_to_send(queue, now) || list_empty(&queue->free))
		return;
	if (!now && !queue->alone && queue->gathered_count < CLV_ENOUGH &&
	    queue->gathered_len < CLV_ENOUGH_LEN) {
		if (!queue->held) {
			queue->held = true;
			queue->held_count = queue->gathered_count;
			queue->held_looks = CLV_LOOKS;
			kthread_queue_work(queue->worker, &queue->work);
			hrtimer_start(&queue->timer, ns_to_ktime(CLV_LOOK_NS),
				      HRTIMER_MODE_REL_SOFT);
		}
		return;
	}
	/* There was room for it: if not, the queue is broken, and its requests are taken back. */
	if (!clv_send_run(dev, queue))
		WRITE_ONCE(dev->common.broken, true);
}

/* The queue of this processor, or that of a key which is on its way. */
static struct clv_queue *clv_queue_for(struct clv_device *dev, u32 session)
{
	u8 queue = dev->key_queues[session];

	if (queue == CLV_ANY_QUEUE)
		queue = smp_processor_id() % dev->queue_count;
	return &dev->queues[queue];
}

int clv_give(struct cl_device *common, struct cl_slot *slot)
{
	struct clv_device *dev = clv_of(common);
	struct clv_queue *queue = clv_queue_for(dev, slot->session);

	queue->gathered_count++;
	queue->gathered_len += clv_len(slot->req);
	queue->gathered_units += slot->units;
	list_add_tail(&slot->list, &queue->gathered);
	return 0;
}

/* A chain that opens or closes a session. The key stands behind the header. */
int clv_give_key(struct cl_device *common, struct cl_slot *slot, struct cl_ctx *ctx)
{
	struct clv_device *dev = clv_of(common);
	unsigned int index = smp_processor_id() % dev->queue_count;
	struct clv_queue *queue = &dev->queues[index];
	struct clv_chain *chain;
	int ret;

	chain = list_first_entry_or_null(&queue->free, struct clv_chain, list);
	if (!chain)
		return -EAGAIN;
	list_del(&chain->list);
	chain->count = 0;
	chain->written = 1;
	clv_write_header(chain, ctx ? CLV_OP_OPEN : CLV_OP_CLOSE, slot->session);
	if (ctx) {
		chain->header.algorithm = cpu_to_le32(ctx->alg);
		chain->header.key_len = cpu_to_le32(ctx->key_len);
		chain->header.tag_len = cpu_to_le32(cl_is_aead(ctx->alg) ? ctx->tag_len : 0);
		memcpy(chain->key, ctx->key, ctx->key_len);
		dev->key_queues[slot->session] = index;
	}
	ret = clv_add(queue, chain, sizeof(chain->header) + (ctx ? ctx->key_len : 0), 1, 1);
	if (ret)
		clv_free_chain(queue, chain);
	else
		list_add(&slot->list, &chain->slots);
	return ret;
}

void clv_wipe_copy(struct cl_device *common, struct cl_slot *slot)
{
	/* It stood in the chain. */
}

static enum cl_result clv_status(const u8 *status)
{
	switch (READ_ONCE(*status)) {
	case VIRTIO_CRYPTO_OK:
		return CL_DONE;
	case VIRTIO_CRYPTO_BADMSG:
		return CL_BAD_TAG;
	case VIRTIO_CRYPTO_INVSESS:
		return CL_NO_SESSION;
	default:
		return CL_FAILED;
	}
}

/* The device has ended a chain: all of a request was done, or nothing. Returns its slots. */
u32 clv_end_chain(struct clv_device *dev, struct clv_queue *queue, struct clv_chain *chain,
		  u32 written, struct list_head *ended)
{
	enum cl_result whole = clv_status(&chain->status[chain->count]);
	struct cl_slot *slot, *next;
	u32 at = 0;

	if (chain->count && (whole != CL_DONE || written != chain->written))
		whole = CL_FAILED;
	list_for_each_entry_safe(slot, next, &chain->slots, list) {
		enum cl_result result = whole;

		list_del(&slot->list);
		if (!chain->count) {
			/* From now on other queues cannot be ahead of it. */
			if (slot->operation == CL_LOAD_KEY)
				dev->key_queues[slot->session] = CLV_ANY_QUEUE;
		} else if (whole == CL_DONE) {
			result = clv_status(&chain->status[at]);
			if (result == CL_BAD_TAG && slot->req->encrypt)
				result = CL_FAILED;
		}
		at++;
		cl_ended(&dev->common, slot, result, ended);
	}
	if (chain->count)
		queue->is_under_way = false;
	clv_free_chain(queue, chain);
	return at;
}
