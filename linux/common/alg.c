// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms, their keys, and the choice of a way.
 *
 * No memory is allocated for a request: what it needs stands in the memory that its
 * user has allocated with it, and in slots that are there from the beginning. So these
 * algorithms have no CRYPTO_ALG_ALLOCATES_MEMORY, and dm-crypt takes them.
 */
#include <crypto/xts.h>
#include <linux/module.h>
#include <linux/scatterlist.h>

#include "cipherlane.h"

/* Of requests that software serves, one of this number is timed. */
#define CL_TIMED	16

/*
 * Whether the kernel has yet to test an algorithm: until then everything goes to the
 * device that it can take, since the tests are short and would test software. It is the
 * kernel's own mark: newer kernels test when the registration has returned, so the time
 * of registration says nothing.
 */
static bool cl_is_untested(const struct cl_req *req)
{
	return !(req->base->tfm->__crt_alg->cra_flags & CRYPTO_ALG_TESTED);
}

static bool cl_takes(const struct cl_device *dev, const struct cl_ctx *ctx)
{
	u32 bit = (ctx->aes_len - AES_KEYSIZE_128) / 8;

	return dev->features & BIT_ULL(ctx->alg) && !ctx->has_odd_key &&
	       (!dev->key_bits || (bit < 3 && dev->key_bits & BIT(bit)));
}

int cl_run_fallback(struct cl_req *req, u32 flags, crypto_completion_t complete, void *data)
{
	struct skcipher_request *fallback = &req->fallback.skcipher;

	if (cl_is_aead(req->ctx->alg))
		return cl_aead_fallback(req, flags, complete, data);
	skcipher_request_set_tfm(fallback, req->ctx->fallback.skcipher);
	skcipher_request_set_callback(fallback, flags, complete, data);
	skcipher_request_set_crypt(fallback, req->src, req->dst, req->len, req->iv);
	return req->encrypt ? crypto_skcipher_encrypt(fallback) :
			      crypto_skcipher_decrypt(fallback);
}

/* The same in place of the device, for the request's own user. */
static int cl_replace(struct cl_req *req, u32 flags)
{
	return cl_run_fallback(req, flags, req->base->complete, req->base->data);
}

/* The caller's processor does it. */
int cl_software(struct cl_req *req, enum cl_stat why)
{
	struct cl_ctx *ctx = req->ctx;
	unsigned int len = req->len;
	bool encrypt = req->encrypt;
	u64 since;
	int ret;

	cl_count(why);
	cl_add(CL_STAT_SOFTWARE_BYTES, len);
	if (ctx->decisions % CL_TIMED)
		return cl_replace(req, req->base->flags);
	since = ktime_get_ns();
	ret = cl_replace(req, req->base->flags);
	if (!ret)
		cl_learn(ctx, encrypt, len, CL_WAY_SOFTWARE, ktime_get_ns() - since);
	return ret;
}

/* The same for a request whose caller was told to wait. */
void cl_finish_in_software(struct cl_req *req, enum cl_stat why)
{
	struct crypto_async_request *base = req->base;
	int ret;

	cl_count(why);
	cl_add(CL_STAT_SOFTWARE_BYTES, req->len);
	local_bh_disable();
	ret = cl_replace(req, base->flags & ~CRYPTO_TFM_REQ_MAY_SLEEP);
	if (ret != -EINPROGRESS && ret != -EBUSY)
		crypto_request_complete(base, ret);
	local_bh_enable();
}

/* A request that is described: to the device, or to software. */
int cl_crypt(struct cl_req *req)
{
	struct cl_ctx *ctx = req->ctx;
	struct cl_device *dev;
	int ret;

	ctx->decisions++;
	if (!cl_enabled)
		return cl_software(req, CL_STAT_SOFTWARE_OFF);
	if (!cl_is_untested(req) && cl_choose(ctx, req->encrypt, req->len) == CL_WAY_SOFTWARE)
		return cl_software(req, CL_STAT_SOFTWARE_SMALL);

	rcu_read_lock();
	dev = rcu_dereference(cl_active);
	if (!dev || !cl_takes(dev, ctx)) {
		rcu_read_unlock();
		return cl_software(req, dev ? CL_STAT_SOFTWARE_KEY : CL_STAT_SOFTWARE_DOWN);
	}
	if (atomic_read(&ctx->flying))
		ctx->burst = min(ctx->burst + 1, 15U);
	else if (ctx->burst)
		ctx->burst--;
	req->audited = false;
	if (!cl_is_untested(req))
		cl_pick_for_audit(dev, req);
	req->since_ns = ktime_get_ns();
	ret = cl_submit(dev, req);
	if (ret == -EINPROGRESS || ret == -EBUSY) {
		rcu_read_unlock();
		return ret;
	}
	cl_drop_audit(dev, req);
	rcu_read_unlock();
	/* It has counted why. */
	cl_add(CL_STAT_SOFTWARE_BYTES, req->len);
	return cl_replace(req, req->base->flags);
}

static int cl_skcipher_crypt(struct skcipher_request *base, bool encrypt)
{
	struct cl_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(base));
	struct cl_req *req = skcipher_request_ctx(base);
	unsigned int len = base->cryptlen;

	if (ctx->alg == CL_XTS_AES ? len < AES_BLOCK_SIZE :
	    ctx->alg != CL_CTR_AES && len % AES_BLOCK_SIZE)
		return -EINVAL;
	if (!len)
		return 0;
	req->base = &base->base;
	req->ctx = ctx;
	req->src = base->src;
	req->dst = base->dst;
	req->iv = base->iv;
	req->skip = 0;
	req->aad_len = 0;
	req->len = len;
	req->in_len = len;
	req->out_len = len;
	req->encrypt = encrypt;
	/* Decrypting in place, it would not be there any more. */
	if (ctx->alg == CL_CBC_AES && !encrypt)
		sg_pcopy_to_buffer(req->src, sg_nents(req->src), req->next_iv, AES_BLOCK_SIZE,
				   len - AES_BLOCK_SIZE);
	return cl_crypt(req);
}

static int cl_skcipher_encrypt(struct skcipher_request *base)
{
	return cl_skcipher_crypt(base, true);
}

static int cl_skcipher_decrypt(struct skcipher_request *base)
{
	return cl_skcipher_crypt(base, false);
}

/* The IV of what would follow, as the CryptoAPI wants it back. */
static void cl_next_iv(struct cl_req *req)
{
	u32 blocks;

	switch (req->ctx->alg) {
	case CL_CBC_AES:
		if (req->encrypt)
			sg_pcopy_to_buffer(req->dst, sg_nents(req->dst), req->iv, AES_BLOCK_SIZE,
					   req->len - AES_BLOCK_SIZE);
		else
			memcpy(req->iv, req->next_iv, AES_BLOCK_SIZE);
		break;
	case CL_CTR_AES:
		for (blocks = DIV_ROUND_UP(req->len, AES_BLOCK_SIZE); blocks; blocks--)
			crypto_inc(req->iv, AES_BLOCK_SIZE);
		break;
	default:
		break;
	}
}

/* A request that the device has done: back to its user. */
void cl_finish(struct cl_slot *slot)
{
	struct cl_req *req = slot->req;
	struct cl_ctx *ctx = req->ctx;
	struct crypto_async_request *base = req->base;
	bool done = slot->result == CL_DONE;

	if (done) {
		if (slot->out_bounced)
			sg_pcopy_from_buffer(req->dst, sg_nents(req->dst), slot->bounce,
					     req->out_len, req->skip);
		cl_next_iv(req);
	}
	cl_count(!done ? CL_STAT_BAD_TAGS :
		 req->encrypt ? CL_STAT_ENCRYPTED : CL_STAT_DECRYPTED);
	cl_add(CL_STAT_BYTES, req->len);
	if (cl_is_untested(req))
		cl_count(CL_STAT_SELFTEST);
	cl_learn_engine(req);
	atomic_dec(&ctx->flying);
	local_bh_disable();
	crypto_request_complete(base, done ? 0 : -EBADMSG);
	local_bh_enable();
}

static int cl_skcipher_setkey(struct crypto_skcipher *tfm, const u8 *key, unsigned int len)
{
	struct cl_ctx *ctx = crypto_skcipher_ctx(tfm);
	struct crypto_skcipher *fallback = ctx->fallback.skcipher;
	int ret;

	crypto_skcipher_clear_flags(fallback, CRYPTO_TFM_REQ_MASK);
	crypto_skcipher_set_flags(fallback, crypto_skcipher_get_flags(tfm) & CRYPTO_TFM_REQ_MASK);
	/* It knows which keys there are. */
	ret = crypto_skcipher_setkey(fallback, key, len);
	if (ret)
		return ret;
	cl_forget_session(ctx);
	memcpy(ctx->key, key, len);
	ctx->key_len = len;
	ctx->aes_len = ctx->alg == CL_XTS_AES ? len / 2 : len;
	return 0;
}

struct cl_alg {
	struct skcipher_alg skcipher;
	enum cl_algorithm number;
	bool registered;
};

static int cl_skcipher_init(struct crypto_skcipher *tfm)
{
	struct cl_alg *alg = container_of(crypto_skcipher_alg(tfm), struct cl_alg, skcipher);
	struct cl_ctx *ctx = crypto_skcipher_ctx(tfm);
	struct crypto_skcipher *fallback;

	fallback = crypto_alloc_skcipher(alg->skcipher.base.cra_name, 0,
					 CRYPTO_ALG_NEED_FALLBACK | CRYPTO_ALG_ALLOCATES_MEMORY);
	if (IS_ERR(fallback))
		return PTR_ERR(fallback);
	ctx->alg = alg->number;
	ctx->force = -1;
	ctx->fallback.skcipher = fallback;
	crypto_skcipher_set_reqsize(tfm, sizeof(struct cl_req) +
					 crypto_skcipher_reqsize(fallback));
	return 0;
}

static void cl_skcipher_exit(struct crypto_skcipher *tfm)
{
	struct cl_ctx *ctx = crypto_skcipher_ctx(tfm);

	cl_forget_session(ctx);
	crypto_free_skcipher(ctx->fallback.skcipher);
	memzero_explicit(ctx->key, sizeof(ctx->key));
}

#define CL_SKCIPHER(mode, block, iv, keys)					\
	{									\
		.base.cra_name = mode "(aes)",					\
		.base.cra_driver_name = mode "-aes-" CL_SUFFIX,			\
		.base.cra_flags = CRYPTO_ALG_ASYNC | CRYPTO_ALG_NEED_FALLBACK |	\
				  CRYPTO_ALG_KERN_DRIVER_ONLY,			\
		.base.cra_blocksize = block,					\
		.base.cra_ctxsize = sizeof(struct cl_ctx),			\
		.base.cra_module = THIS_MODULE,					\
		.min_keysize = (keys) * AES_MIN_KEY_SIZE,			\
		.max_keysize = (keys) * AES_MAX_KEY_SIZE,			\
		.ivsize = iv,							\
		.chunksize = AES_BLOCK_SIZE,					\
		.setkey = cl_skcipher_setkey,					\
		.encrypt = cl_skcipher_encrypt,					\
		.decrypt = cl_skcipher_decrypt,					\
		.init = cl_skcipher_init,					\
		.exit = cl_skcipher_exit,					\
	}

static struct cl_alg cl_algs[] = {
	{ .number = CL_ECB_AES, .skcipher = CL_SKCIPHER("ecb", AES_BLOCK_SIZE, 0, 1) },
	{ .number = CL_CBC_AES, .skcipher = CL_SKCIPHER("cbc", AES_BLOCK_SIZE, AES_BLOCK_SIZE, 1) },
	{ .number = CL_CTR_AES, .skcipher = CL_SKCIPHER("ctr", 1, AES_BLOCK_SIZE, 1) },
	{ .number = CL_XTS_AES, .skcipher = CL_SKCIPHER("xts", AES_BLOCK_SIZE, AES_BLOCK_SIZE, 2) },
};

/* Registers what the device offers and is not registered yet; then measures. */
int cl_register_algs(struct cl_device *dev)
{
	int ret = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(cl_algs) && !ret; i++) {
		struct cl_alg *alg = &cl_algs[i];

		if (alg->registered || !(dev->features & BIT_ULL(alg->number)))
			continue;
		alg->skcipher.base.cra_priority = cl_priority;
		ret = crypto_register_skcipher(&alg->skcipher);
		alg->registered = !ret;
	}
	if (!ret)
		ret = cl_register_aeads(dev);
	if (!ret)
		cl_calibrate(dev->key_bits, dev->features);
	return ret;
}

void cl_unregister_algs(void)
{
	int i;

	cl_unregister_aeads();
	for (i = 0; i < ARRAY_SIZE(cl_algs); i++)
		if (cl_algs[i].registered)
			crypto_unregister_skcipher(&cl_algs[i].skcipher);
}
