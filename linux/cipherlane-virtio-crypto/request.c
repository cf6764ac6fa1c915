// SPDX-License-Identifier: GPL-2.0
/*
 * From a request of the CryptoAPI to pieces of memory.
 *
 * Input and output go to the device where they lie. Output that lies over the input goes
 * through the slot's bounce buffer: so the input of a request is intact until the device
 * has reported success, and software can do the request again when the device dies while
 * it writes.
 */
#include <linux/scatterlist.h>

#include "virtio.h"

/* Pieces of @len bytes of a list from @begin on; 0 if there are too many or too few. */
static int clv_pieces(struct scatterlist *list, u32 begin, u32 len)
{
	struct scatterlist *sg;
	int pieces = 0;

	for (sg = list; len; sg = sg_next(sg)) {
		u32 here;

		if (!sg)
			return 0;
		if (begin >= sg->length) {
			begin -= sg->length;
			continue;
		}
		here = min(sg->length - begin, len);
		begin = 0;
		len -= here;
		if (++pieces > CLV_PIECES)
			return 0;
	}
	return pieces;
}

/* What goes where it lies, and what is copied. False: the device cannot take it at all. */
bool clv_plan(struct cl_device *common, struct cl_req *req, struct cl_plan *plan)
{
	u32 in = req->skip + req->in_len;
	u32 both = req->skip + max(req->in_len, req->out_len);

	if (both > common->max_request)
		return false;
	plan->src_nents = clv_pieces(req->src, 0, in);
	plan->in_direct = plan->src_nents || !in;
	plan->dst_nents = 0;
	plan->out_direct = false;
	if (!cl_bounce_output && !req->audited && !cl_overlaps(req->src, req->dst, both)) {
		plan->dst_nents = clv_pieces(req->dst, req->skip, req->out_len);
		plan->out_direct = plan->dst_nents || !req->out_len;
	}
	/* What is said of it, both sides, the statuses. */
	plan->units = 2 + (plan->in_direct ? plan->src_nents : 1) +
		      (plan->out_direct ? plan->dst_nents : 1);
	return (plan->in_direct && plan->out_direct) || both <= common->bounce_len;
}

static void clv_add(struct scatterlist *list, int *at, struct page *page, u32 len, u32 offset)
{
	sg_unmark_end(&list[*at]);
	sg_set_page(&list[(*at)++], page, len, offset);
}

static void clv_add_buf(struct scatterlist *list, int *at, void *buf, u32 len)
{
	clv_add(list, at, virt_to_page(buf), len, offset_in_page(buf));
}

static void clv_add_list(struct scatterlist *list, int *at, struct scatterlist *from, u32 begin,
			 u32 len)
{
	struct scatterlist *sg;

	for (sg = from; len; sg = sg_next(sg)) {
		u32 here;

		if (begin >= sg->length) {
			begin -= sg->length;
			continue;
		}
		here = min(sg->length - begin, len);
		clv_add(list, at, sg_page(sg), here, sg->offset + begin);
		begin = 0;
		len -= here;
	}
}

static int clv_end_list(struct scatterlist *list, int at)
{
	if (at)
		sg_mark_end(&list[at - 1]);
	return at;
}

/* Describes the request, copies, and lists all pieces. */
int clv_fill(struct cl_device *common, struct cl_slot *slot, const struct cl_plan *plan)
{
	struct clv_slot *own = slot->transport;
	struct cl_req *req = slot->req;
	u32 in = req->skip + req->in_len;
	int at = 0;

	memset(&own->entry, 0, sizeof(own->entry));
	own->entry.session = cpu_to_le32(slot->session);
	own->entry.decrypt = !req->encrypt;
	own->entry.iv_len = cl_iv_len(req->ctx->alg);
	own->entry.tag_len = cl_is_aead(req->ctx->alg) ? req->ctx->tag_len : 0;
	own->entry.skip = req->skip - req->aad_len;
	own->entry.aad_len = cpu_to_le32(req->aad_len);
	own->entry.len = cpu_to_le32(req->len);
	memcpy(own->entry.iv, req->iv, own->entry.iv_len);

	if (plan->in_direct) {
		clv_add_list(own->out, &at, req->src, 0, in);
	} else {
		cl_copy_in(slot);
		clv_add_buf(own->out, &at, slot->bounce, in);
	}
	own->out_count = clv_end_list(own->out, at);
	at = 0;
	if (plan->out_direct)
		clv_add_list(own->in, &at, req->dst, req->skip, req->out_len);
	else if (req->out_len)
		clv_add_buf(own->in, &at, slot->bounce, req->out_len);
	own->in_count = clv_end_list(own->in, at);
	return 0;
}

void clv_unfill(struct cl_device *common, struct cl_slot *slot)
{
	/* The ring maps and unmaps by itself. */
}
