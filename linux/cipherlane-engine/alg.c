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

#include "engine.h"

/* Of requests that software serves, one of this number is timed. */
#define CLE_TIMED	16

/* While the kernel's self-tests run, everything goes to the engine that it can take. */
static bool cle_testing;

static bool cle_takes_key(const struct cle_device *dev, const struct cle_ctx *ctx)
{
	unsigned int len = ctx->alg == CLE_XTS_AES ? ctx->key_len / 2 : ctx->key_len;
	u32 bit = (len - AES_KEYSIZE_128) / 8;

	return !dev->key_bits || (bit < 3 && dev->key_bits & BIT(bit));
}

static int cle_run_fallback(struct skcipher_request *req, u32 flags)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	struct cle_req *state = skcipher_request_ctx(req);
	struct skcipher_request *fallback = &state->fallback;

	skcipher_request_set_tfm(fallback, ctx->fallback);
	skcipher_request_set_callback(fallback, flags, req->base.complete, req->base.data);
	skcipher_request_set_crypt(fallback, req->src, req->dst, req->cryptlen, req->iv);
	return state->encrypt ? crypto_skcipher_encrypt(fallback) :
				crypto_skcipher_decrypt(fallback);
}

/* The caller's processor does it. */
int cle_software(struct skcipher_request *req, enum cle_stat why)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	struct cle_req *state = skcipher_request_ctx(req);
	unsigned int len = req->cryptlen;
	bool encrypt = state->encrypt;
	u64 since;
	int ret;

	cle_count(why);
	cle_add(CLE_STAT_SOFTWARE_BYTES, len);
	if (ctx->decisions % CLE_TIMED)
		return cle_run_fallback(req, req->base.flags);
	since = ktime_get_ns();
	ret = cle_run_fallback(req, req->base.flags);
	if (!ret)
		cle_learn(ctx, encrypt, len, CLE_WAY_SOFTWARE, ktime_get_ns() - since);
	return ret;
}

/* The same for a request whose caller was told to wait. */
void cle_finish_in_software(struct skcipher_request *req, enum cle_stat why)
{
	int ret;

	cle_count(why);
	cle_add(CLE_STAT_SOFTWARE_BYTES, req->cryptlen);
	local_bh_disable();
	ret = cle_run_fallback(req, req->base.flags & ~CRYPTO_TFM_REQ_MAY_SLEEP);
	if (ret != -EINPROGRESS && ret != -EBUSY)
		skcipher_request_complete(req, ret);
	local_bh_enable();
}

static int cle_crypt(struct skcipher_request *req, bool encrypt)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(crypto_skcipher_reqtfm(req));
	struct cle_req *state = skcipher_request_ctx(req);
	unsigned int len = req->cryptlen;
	struct cle_device *dev;
	int ret;

	if (ctx->alg == CLE_XTS_AES ? len < AES_BLOCK_SIZE :
	    ctx->alg != CLE_CTR_AES && len % AES_BLOCK_SIZE)
		return -EINVAL;
	if (!len)
		return 0;
	state->encrypt = encrypt;
	ctx->decisions++;
	if (!cle_enabled)
		return cle_software(req, CLE_STAT_SOFTWARE_OFF);
	if (!cle_testing && cle_choose(ctx, encrypt, len) == CLE_WAY_SOFTWARE)
		return cle_software(req, CLE_STAT_SOFTWARE_SMALL);

	rcu_read_lock();
	dev = rcu_dereference(cle_active);
	if (!dev || !cle_takes_key(dev, ctx) || !(dev->features & BIT_ULL(ctx->alg))) {
		rcu_read_unlock();
		return cle_software(req, dev ? CLE_STAT_SOFTWARE_KEY : CLE_STAT_SOFTWARE_DOWN);
	}
	if (atomic_read(&ctx->flying))
		ctx->burst = min(ctx->burst + 1, 15U);
	else if (ctx->burst)
		ctx->burst--;
	/* Decrypting in place, it would not be there any more. */
	if (ctx->alg == CLE_CBC_AES && !encrypt)
		sg_pcopy_to_buffer(req->src, sg_nents(req->src), state->iv, AES_BLOCK_SIZE,
				   len - AES_BLOCK_SIZE);
	state->since_ns = ktime_get_ns();
	ret = cle_submit(dev, req);
	rcu_read_unlock();
	if (ret == -EINPROGRESS || ret == -EBUSY)
		return ret;
	/* It has counted why. */
	cle_add(CLE_STAT_SOFTWARE_BYTES, len);
	return cle_run_fallback(req, req->base.flags);
}

static int cle_encrypt(struct skcipher_request *req)
{
	return cle_crypt(req, true);
}

static int cle_decrypt(struct skcipher_request *req)
{
	return cle_crypt(req, false);
}

static int cle_setkey(struct crypto_skcipher *tfm, const u8 *key, unsigned int len)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(tfm);
	int ret;

	crypto_skcipher_clear_flags(ctx->fallback, CRYPTO_TFM_REQ_MASK);
	crypto_skcipher_set_flags(ctx->fallback,
				  crypto_skcipher_get_flags(tfm) & CRYPTO_TFM_REQ_MASK);
	/* It knows which keys there are. */
	ret = crypto_skcipher_setkey(ctx->fallback, key, len);
	if (ret)
		return ret;
	cle_forget_session(ctx);
	memcpy(ctx->key, key, len);
	ctx->key_len = len;
	return 0;
}

static int cle_init_tfm(struct crypto_skcipher *tfm)
{
	struct cle_alg *alg = container_of(crypto_skcipher_alg(tfm), struct cle_alg, skcipher);
	struct cle_ctx *ctx = crypto_skcipher_ctx(tfm);
	const char *name = alg->skcipher.base.cra_name;

	ctx->alg = alg->number;
	ctx->force = -1;
	ctx->fallback = crypto_alloc_skcipher(name, 0, CRYPTO_ALG_NEED_FALLBACK |
							CRYPTO_ALG_ALLOCATES_MEMORY);
	if (IS_ERR(ctx->fallback))
		return PTR_ERR(ctx->fallback);
	crypto_skcipher_set_reqsize(tfm, sizeof(struct cle_req) +
					 crypto_skcipher_reqsize(ctx->fallback));
	return 0;
}

static void cle_exit_tfm(struct crypto_skcipher *tfm)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(tfm);

	cle_forget_session(ctx);
	crypto_free_skcipher(ctx->fallback);
	memzero_explicit(ctx->key, sizeof(ctx->key));
}

#define CLE_ALG(mode, block, iv, keys)						\
	{									\
		.base.cra_name = mode "(aes)",					\
		.base.cra_driver_name = mode "-aes-cipherlane",			\
		.base.cra_flags = CRYPTO_ALG_ASYNC | CRYPTO_ALG_NEED_FALLBACK |	\
				  CRYPTO_ALG_KERN_DRIVER_ONLY,			\
		.base.cra_blocksize = block,					\
		.base.cra_ctxsize = sizeof(struct cle_ctx),			\
		.base.cra_module = THIS_MODULE,					\
		.min_keysize = (keys) * AES_MIN_KEY_SIZE,				\
		.max_keysize = (keys) * AES_MAX_KEY_SIZE,				\
		.ivsize = iv,							\
		.chunksize = AES_BLOCK_SIZE,					\
		.setkey = cle_setkey,						\
		.encrypt = cle_encrypt,						\
		.decrypt = cle_decrypt,						\
		.init = cle_init_tfm,						\
		.exit = cle_exit_tfm,						\
	}

static struct cle_alg cle_algs[] = {
	{ .number = CLE_ECB_AES, .skcipher = CLE_ALG("ecb", AES_BLOCK_SIZE, 0, 1) },
	{ .number = CLE_CBC_AES, .skcipher = CLE_ALG("cbc", AES_BLOCK_SIZE, AES_BLOCK_SIZE, 1) },
	{ .number = CLE_CTR_AES, .skcipher = CLE_ALG("ctr", 1, AES_BLOCK_SIZE, 1) },
	{ .number = CLE_XTS_AES, .skcipher = CLE_ALG("xts", AES_BLOCK_SIZE, AES_BLOCK_SIZE, 2) },
};

/* Registers what the device offers and is not registered yet; then measures. */
int cle_register_algs(struct cle_device *dev)
{
	s64 before = atomic64_read(&cle_stats[CLE_STAT_ENCRYPTED]) +
		     atomic64_read(&cle_stats[CLE_STAT_DECRYPTED]);
	int ret = 0;
	int i;

	cle_testing = true;
	for (i = 0; i < ARRAY_SIZE(cle_algs) && !ret; i++) {
		struct cle_alg *alg = &cle_algs[i];

		if (alg->registered || !(dev->features & BIT_ULL(alg->number)))
			continue;
		alg->skcipher.base.cra_priority = cle_priority;
		/* The kernel tests it before this returns. */
		ret = crypto_register_skcipher(&alg->skcipher);
		alg->registered = !ret;
	}
	cle_testing = false;
	cle_add(CLE_STAT_SELFTEST, atomic64_read(&cle_stats[CLE_STAT_ENCRYPTED]) +
				   atomic64_read(&cle_stats[CLE_STAT_DECRYPTED]) - before);
	if (!ret)
		cle_calibrate(dev->key_bits, dev->features);
	return ret;
}

void cle_unregister_algs(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cle_algs); i++)
		if (cle_algs[i].registered)
			crypto_unregister_skcipher(&cle_algs[i].skcipher);
}
