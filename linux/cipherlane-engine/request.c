// SPDX-License-Identifier: GPL-2.0
/*
 * From a request of the CryptoAPI to a slot, and back.
 *
 * Input and output go to the device where they lie if its rules allow that, and through
 * the slot's bounce buffer if not. Output that lies over the input goes through the bounce
 * buffer in any case: so the input of a request is intact until the device has reported
 * success, and software can do the request again whatever the device did.
 *
 * Payload behind additional data hardly ever begins where a device wants it, so that of
 * the algorithms that authenticate always goes through the bounce buffer; additional data
 * and tag stand in the slot.
 */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/scatterlist.h>

#include "engine.h"

static u64 cle_slot_offset(const struct cle_device *dev, u16 slot)
{
	return CLE_REGISTERS + 2 * dev->ring * CLE_ENTRY + slot * CLE_SLOT;
}

/*
 * Descriptors for the first @len bytes of a list, or 0 if the device cannot take them
 * where they lie.
 */
static u32 cle_pieces(const struct cle_device *dev, struct scatterlist *list, u32 len, int *nents)
{
	u32 align = max_t(u32, dev->alignment, dma_get_cache_alignment());
	u32 pieces = 0;
	struct scatterlist *sg;

	*nents = 0;
	for (sg = list; len; sg = sg_next(sg)) {
		u32 here;

		if (!sg)
			return 0;
		here = min(sg->length, len);
		len -= here;
		(*nents)++;
		if (!here)
			return 0;
		if (!IS_ALIGNED(sg->offset, align) || (len && here % dev->block))
			return 0;
		pieces += DIV_ROUND_UP(here, dev->segment);
	}
	return pieces;
}

/* What goes where it lies, and what is copied. False: the device cannot take it at all. */
bool cle_plan(struct cl_device *common, struct cl_req *req, struct cl_plan *plan)
{
	struct cle_device *dev = cle_of(common);
	u32 bounced = DIV_ROUND_UP(req->len, dev->segment);
	u32 in, out = 0;

	if (req->len > common->max_request)
		return false;
	if (cl_is_aead(req->ctx->alg)) {
		plan->in_direct = false;
		plan->out_direct = false;
		plan->units = 1 + 2 * bounced;
		return req->len && req->aad_len <= CLE_AAD &&
		       req->skip + max(req->in_len, req->out_len) <= common->bounce_len &&
		       plan->units <= dev->ring / 2;
	}
	in = cle_pieces(dev, req->src, req->len, &plan->src_nents);
	if (!cl_bounce_output && !req->audited && !cl_overlaps(req->src, req->dst, req->len))
		out = cle_pieces(dev, req->dst, req->len, &plan->dst_nents);
	plan->in_direct = in;
	plan->out_direct = out;
	plan->units = 1 + (in ?: bounced) + (out ?: bounced);
	if (!(in && out) && req->len > common->bounce_len)
		return false;
	return plan->units <= dev->ring / 2;
}

static void cle_write_operation(struct cle_device *dev, struct cl_slot *slot,
				const struct cle_operation *op)
{
	memcpy_toio(dev->bar + cle_slot_offset(dev, slot->id), op, sizeof(*op));
}

/* Payload into the bounce buffer, additional data and a tag that is compared into the slot. */
static void cle_copy_aead(struct cle_device *dev, struct cl_slot *slot, struct cle_operation *op)
{
	u64 offset = cle_slot_offset(dev, slot->id) + CLE_OPERATION;
	struct cl_req *req = slot->req;
	int nents = sg_nents(req->src);
	u8 copy[CLE_AAD];

	BUILD_BUG_ON(CLE_TAG > CLE_AAD);
	sg_pcopy_to_buffer(req->src, nents, slot->bounce, req->len, req->skip);
	op->aad_len = cpu_to_le64(req->aad_len);
	op->aad = cpu_to_le64(offset);
	op->tag_len = req->ctx->tag_len;
	op->tag = cpu_to_le64(offset + CLE_AAD);
	sg_copy_to_buffer(req->src, nents, copy, req->aad_len);
	memcpy_toio(dev->bar + offset, copy, req->aad_len);
	if (!req->encrypt) {
		sg_pcopy_to_buffer(req->src, nents, copy, op->tag_len, req->skip + req->len);
		memcpy_toio(dev->bar + offset + CLE_AAD, copy, op->tag_len);
	}
}

/* Maps, copies, and writes the operation. */
int cle_fill(struct cl_device *common, struct cl_slot *slot, const struct cl_plan *plan)
{
	struct cle_device *dev = cle_of(common);
	struct cle_slot *dma = slot->transport;
	struct cl_req *req = slot->req;
	struct cle_operation op = {
		.opcode = req->encrypt ? CLE_OP_ENCRYPT : CLE_OP_DECRYPT,
		.algorithm = req->ctx->alg,
		.iv_len = cl_iv_len(req->ctx->alg),
		.turn = cpu_to_le16(slot->turn),
		.session = cpu_to_le32(slot->session),
		.len = cpu_to_le32(req->len),
	};

	dma->src_nents = 0;
	dma->dst_nents = 0;
	if (cl_is_aead(req->ctx->alg)) {
		cle_copy_aead(dev, slot, &op);
	} else if (plan->in_direct) {
		dma->src_mapped = dma_map_sg(common->parent, req->src, plan->src_nents,
					     DMA_TO_DEVICE);
		if (!dma->src_mapped)
			return -ENOMEM;
		dma->src_nents = plan->src_nents;
	} else {
		cl_copy_in(slot);
	}
	if (plan->out_direct) {
		dma->dst_mapped = dma_map_sg(common->parent, req->dst, plan->dst_nents,
					     DMA_FROM_DEVICE);
		if (!dma->dst_mapped) {
			cle_unfill(common, slot);
			return -ENOMEM;
		}
		dma->dst_nents = plan->dst_nents;
	}
	memcpy(op.iv, req->iv, op.iv_len);
	cle_write_operation(dev, slot, &op);
	return 0;
}

static void cle_write_descriptor(struct cle_device *dev, struct cl_slot *slot, u64 address,
				 u32 len, u16 flags)
{
	struct cle_slot *dma = slot->transport;
	struct cle_descriptor descriptor = {
		.address = cpu_to_le64(address),
		.len = cpu_to_le32(len),
		.flags = cpu_to_le16(flags | (--dma->descriptors ? CLE_DESC_MORE : 0)),
		.slot = cpu_to_le16(slot->id),
	};
	u32 index = dev->tail++ & (dev->ring - 1);

	memcpy_toio(dev->bar + CLE_REGISTERS + index * CLE_ENTRY, &descriptor, sizeof(descriptor));
}

/* The descriptors of a stretch of memory, in pieces that the device takes. */
static void cle_write_stretch(struct cle_device *dev, struct cl_slot *slot, dma_addr_t address,
			      u32 len, u16 flags)
{
	while (len) {
		u32 here = min(len, dev->segment);

		cle_write_descriptor(dev, slot, CLE_BUS | address, here, flags);
		address += here;
		len -= here;
	}
}

static void cle_write_side(struct cle_device *dev, struct cl_slot *slot, struct scatterlist *list,
			   int mapped, u16 flags)
{
	struct cle_slot *dma = slot->transport;
	u32 left = slot->req->len;
	struct scatterlist *sg;
	int i;

	if (!mapped)
		return cle_write_stretch(dev, slot, dma->bounce_dma, left,
					 flags | CLE_DESC_BOUNCE);
	for_each_sg(list, sg, mapped, i) {
		u32 here = min(sg_dma_len(sg), left);

		left -= here;
		cle_write_stretch(dev, slot, sg_dma_address(sg), here, flags);
	}
}

/* A list may have become shorter when it was mapped. */
static u32 cle_count_side(struct cle_device *dev, struct cl_slot *slot, struct scatterlist *list,
			  int mapped)
{
	u32 left = slot->req->len;
	struct scatterlist *sg;
	u32 count = 0;
	int i;

	if (!mapped)
		return DIV_ROUND_UP(left, dev->segment);
	for_each_sg(list, sg, mapped, i) {
		u32 here = min(sg_dma_len(sg), left);

		left -= here;
		count += DIV_ROUND_UP(here, dev->segment);
	}
	return count;
}

/* The device sees descriptors up to the tail, and what was written before. */
static void cle_show_tail(struct cle_device *dev)
{
	writel(dev->tail, dev->bar + CLE_REG_SUBMIT_TAIL);
}

/* Under the lock: the chain of a slot that is filled. */
int cle_give(struct cl_device *common, struct cl_slot *slot)
{
	struct cle_device *dev = cle_of(common);
	struct cle_slot *dma = slot->transport;
	struct cl_req *req = slot->req;
	int in = dma->src_nents ? dma->src_mapped : 0;
	int out = dma->dst_nents ? dma->dst_mapped : 0;

	dma->descriptors = 1 + cle_count_side(dev, slot, req->src, in) +
			   cle_count_side(dev, slot, req->dst, out);
	cle_write_descriptor(dev, slot, cle_slot_offset(dev, slot->id), CLE_OPERATION,
			     CLE_DESC_HEADER);
	cle_write_side(dev, slot, req->src, in, 0);
	cle_write_side(dev, slot, req->dst, out, CLE_DESC_WRITE);
	cle_show_tail(dev);
	return 0;
}

/* Under the lock: a slot that loads or wipes a key. The key stands behind the operation. */
int cle_give_key(struct cl_device *common, struct cl_slot *slot, struct cl_ctx *ctx)
{
	struct cle_device *dev = cle_of(common);
	struct cle_slot *dma = slot->transport;
	u64 offset = cle_slot_offset(dev, slot->id);
	u64 key = offset + CLE_OPERATION;
	struct cle_operation op = {
		.opcode = ctx ? CLE_OP_LOAD_KEY : CLE_OP_WIPE_KEY,
		.turn = cpu_to_le16(slot->turn),
		.session = cpu_to_le32(slot->session),
	};

	if (ctx) {
		op.algorithm = ctx->alg;
		op.aad_len = cpu_to_le64(ctx->key_len);
		op.aad = cpu_to_le64(key);
		memcpy_toio(dev->bar + key, ctx->key, ctx->key_len);
	}
	cle_write_operation(dev, slot, &op);
	dma->descriptors = 1;
	cle_write_descriptor(dev, slot, offset, CLE_OPERATION, CLE_DESC_HEADER);
	cle_show_tail(dev);
	return 0;
}

/* The key that stands behind the operation. */
void cle_wipe_copy(struct cl_device *common, struct cl_slot *slot)
{
	struct cle_device *dev = cle_of(common);

	if (slot->operation == CL_LOAD_KEY)
		memset_io(dev->bar + cle_slot_offset(dev, slot->id) + CLE_OPERATION, 0,
			  CL_KEY_MAX);
}

void cle_unfill(struct cl_device *common, struct cl_slot *slot)
{
	struct cle_device *dev = cle_of(common);
	struct cle_slot *dma = slot->transport;
	struct cl_req *req = slot->req;

	/* The tag that was made follows the payload. */
	if (cl_is_aead(req->ctx->alg) && req->encrypt)
		memcpy_fromio(slot->bounce + req->len,
			      dev->bar + cle_slot_offset(dev, slot->id) + CLE_OPERATION + CLE_AAD,
			      req->ctx->tag_len);

	if (dma->src_nents)
		dma_unmap_sg(common->parent, slot->req->src, dma->src_nents, DMA_TO_DEVICE);
	if (dma->dst_nents)
		dma_unmap_sg(common->parent, slot->req->dst, dma->dst_nents, DMA_FROM_DEVICE);
	dma->src_nents = 0;
	dma->dst_nents = 0;
}
