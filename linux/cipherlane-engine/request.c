// SPDX-License-Identifier: GPL-2.0
/*
 * From a request of the CryptoAPI to a slot, and back.
 *
 * Input and output go to the device where they lie if its rules allow that, and through
 * the slot's bounce buffer if not. Output that lies over the input goes through the bounce
 * buffer in any case: so the input of a request is intact until the device has reported
 * success, and software can do the request again whatever the device did.
 */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/scatterlist.h>

#include "engine.h"

/* Entries of a scatter list that are compared with those of another. */
#define CLE_COMPARED	16

size_t cle_bounce_len;

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

/* Whether any of the first @len bytes of both lists are the same memory. */
static bool cle_overlaps(struct scatterlist *a, struct scatterlist *b, u32 len)
{
	struct scatterlist *x, *y;
	u32 left_a, left_b;
	int i, j;

	if (a == b)
		return true;
	for (x = a, left_a = len, i = 0; x && left_a; x = sg_next(x), i++) {
		u32 here = min(x->length, left_a);

		left_a -= here;
		for (y = b, left_b = len, j = 0; y && left_b; y = sg_next(y), j++) {
			u32 there = min(y->length, left_b);

			left_b -= there;
			if (i == CLE_COMPARED || j == CLE_COMPARED)
				return true;	/* too long to tell */
			if (sg_phys(x) < sg_phys(y) + there && sg_phys(y) < sg_phys(x) + here)
				return true;
		}
	}
	return false;
}

/* What goes where it lies, and what is copied. False: the device cannot take it at all. */
bool cle_plan_request(struct cle_device *dev, struct skcipher_request *req, struct cle_plan *plan)
{
	u32 bounced = DIV_ROUND_UP(req->cryptlen, dev->segment);
	u32 in, out = 0;

	if (req->cryptlen > dev->max_request)
		return false;
	in = cle_pieces(dev, req->src, req->cryptlen, &plan->src_nents);
	if (!cle_bounce_output && !cle_overlaps(req->src, req->dst, req->cryptlen))
		out = cle_pieces(dev, req->dst, req->cryptlen, &plan->dst_nents);
	plan->in_direct = in;
	plan->out_direct = out;
	plan->descriptors = 1 + (in ?: bounced) + (out ?: bounced);
	if (!(in && out) && req->cryptlen > cle_bounce_len)
		return false;
	return plan->descriptors <= dev->ring / 2;
}

static void cle_write_operation(struct cle_device *dev, struct cle_slot *slot,
				const struct cle_operation *op)
{
	memcpy_toio(dev->bar + cle_slot_offset(dev, slot->id), op, sizeof(*op));
}

/* Maps, copies, and writes the operation. */
int cle_fill(struct cle_device *dev, struct cle_slot *slot, const struct cle_plan *plan)
{
	struct skcipher_request *req = slot->req;
	struct crypto_skcipher *tfm = crypto_skcipher_reqtfm(req);
	struct cle_ctx *ctx = crypto_skcipher_ctx(tfm);
	struct device *parent = &dev->pdev->dev;
	struct cle_operation op = {
		.opcode = slot->opcode,
		.algorithm = ctx->alg,
		.iv_len = crypto_skcipher_ivsize(tfm),
		.turn = cpu_to_le16(slot->turn),
		.session = cpu_to_le32(slot->session),
		.len = cpu_to_le32(req->cryptlen),
	};

	slot->src_nents = 0;
	slot->dst_nents = 0;
	slot->out_bounced = !plan->out_direct;
	slot->bounced = plan->in_direct && plan->out_direct ? 0 : req->cryptlen;
	if (plan->in_direct) {
		slot->src_mapped = dma_map_sg(parent, req->src, plan->src_nents, DMA_TO_DEVICE);
		if (!slot->src_mapped)
			return -ENOMEM;
		slot->src_nents = plan->src_nents;
	} else {
		sg_copy_to_buffer(req->src, sg_nents(req->src), slot->bounce, req->cryptlen);
	}
	if (plan->out_direct) {
		slot->dst_mapped = dma_map_sg(parent, req->dst, plan->dst_nents, DMA_FROM_DEVICE);
		if (!slot->dst_mapped) {
			cle_unmap(dev, slot);
			return -ENOMEM;
		}
		slot->dst_nents = plan->dst_nents;
	}
	memcpy(op.iv, req->iv, op.iv_len);
	cle_write_operation(dev, slot, &op);
	cle_count(plan->in_direct && plan->out_direct ? CLE_STAT_ZERO_COPY : CLE_STAT_BOUNCED);
	return 0;
}

static void cle_write_descriptor(struct cle_device *dev, struct cle_slot *slot, u64 address,
				 u32 len, u16 flags)
{
	struct cle_descriptor descriptor = {
		.address = cpu_to_le64(address),
		.len = cpu_to_le32(len),
		.flags = cpu_to_le16(flags | (--slot->descriptors ? CLE_DESC_MORE : 0)),
		.slot = cpu_to_le16(slot->id),
	};
	u32 index = dev->tail++ & (dev->ring - 1);

	memcpy_toio(dev->bar + CLE_REGISTERS + index * CLE_ENTRY, &descriptor, sizeof(descriptor));
}

/* The descriptors of a stretch of memory, in pieces that the device takes. */
static void cle_write_stretch(struct cle_device *dev, struct cle_slot *slot, dma_addr_t address,
			      u32 len, u16 flags)
{
	while (len) {
		u32 here = min(len, dev->segment);

		cle_write_descriptor(dev, slot, CLE_BUS | address, here, flags);
		address += here;
		len -= here;
	}
}

static void cle_write_side(struct cle_device *dev, struct cle_slot *slot, struct scatterlist *list,
			   int mapped, u16 flags)
{
	u32 left = slot->req->cryptlen;
	struct scatterlist *sg;
	int i;

	if (!mapped)
		return cle_write_stretch(dev, slot, slot->bounce_dma, left,
					 flags | CLE_DESC_BOUNCE);
	for_each_sg(list, sg, mapped, i) {
		u32 here = min(sg_dma_len(sg), left);

		left -= here;
		cle_write_stretch(dev, slot, sg_dma_address(sg), here, flags);
	}
}

/* A list may have become shorter when it was mapped. */
static u32 cle_count_side(struct cle_device *dev, struct cle_slot *slot, struct scatterlist *list,
			  int mapped)
{
	u32 left = slot->req->cryptlen;
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

/* Under the lock: the chain of a slot that is filled. */
void cle_write_chain(struct cle_device *dev, struct cle_slot *slot)
{
	struct skcipher_request *req = slot->req;
	int in = slot->src_nents ? slot->src_mapped : 0;
	int out = slot->dst_nents ? slot->dst_mapped : 0;

	slot->descriptors = 1 + cle_count_side(dev, slot, req->src, in) +
			    cle_count_side(dev, slot, req->dst, out);
	cle_write_descriptor(dev, slot, cle_slot_offset(dev, slot->id), CLE_OPERATION,
			     CLE_DESC_HEADER);
	cle_write_side(dev, slot, req->src, in, 0);
	cle_write_side(dev, slot, req->dst, out, CLE_DESC_WRITE);
}

/* Under the lock: a slot that loads or wipes a key. The key stands behind the operation. */
void cle_write_key(struct cle_device *dev, struct cle_slot *slot, struct cle_ctx *ctx)
{
	u64 offset = cle_slot_offset(dev, slot->id);
	u64 key = offset + CLE_OPERATION;
	struct cle_operation op = {
		.opcode = slot->opcode,
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
	slot->descriptors = 1;
	cle_write_descriptor(dev, slot, offset, CLE_OPERATION, CLE_DESC_HEADER);
}

void cle_unmap(struct cle_device *dev, struct cle_slot *slot)
{
	struct device *parent = &dev->pdev->dev;

	if (slot->src_nents)
		dma_unmap_sg(parent, slot->req->src, slot->src_nents, DMA_TO_DEVICE);
	if (slot->dst_nents)
		dma_unmap_sg(parent, slot->req->dst, slot->dst_nents, DMA_FROM_DEVICE);
	slot->src_nents = 0;
	slot->dst_nents = 0;
}

/* The IV of what would follow, as the CryptoAPI wants it back. */
static void cle_next_iv(struct skcipher_request *req)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	struct cle_req *state = skcipher_request_ctx(req);
	u32 blocks;

	switch (ctx->alg) {
	case CLE_CBC_AES:
		if (state->encrypt)
			sg_pcopy_to_buffer(req->dst, sg_nents(req->dst), req->iv, AES_BLOCK_SIZE,
					   req->cryptlen - AES_BLOCK_SIZE);
		else
			memcpy(req->iv, state->iv, AES_BLOCK_SIZE);
		break;
	case CLE_CTR_AES:
		for (blocks = DIV_ROUND_UP(req->cryptlen, AES_BLOCK_SIZE); blocks; blocks--)
			crypto_inc(req->iv, AES_BLOCK_SIZE);
		break;
	default:
		break;
	}
}

/* A request that the device has reported as done: back to its user. */
void cle_finish(struct cle_device *dev, struct cle_slot *slot)
{
	struct skcipher_request *req = slot->req;
	struct cle_req *state = skcipher_request_ctx(req);
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));

	if (slot->out_bounced)
		sg_copy_from_buffer(req->dst, sg_nents(req->dst), slot->bounce, req->cryptlen);
	cle_next_iv(req);
	cle_count(state->encrypt ? CLE_STAT_ENCRYPTED : CLE_STAT_DECRYPTED);
	cle_add(CLE_STAT_BYTES, req->cryptlen);
	cle_learn_engine(ctx, req);
	atomic_dec(&ctx->flying);
	local_bh_disable();
	skcipher_request_complete(req, 0);
	local_bh_enable();
}
