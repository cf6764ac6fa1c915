// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms that authenticate.
 *
 * In memory the additional data stands before the payload, and a tag behind it. For
 * rfc4106(gcm(aes)) the last 8 bytes of the additional data are the IV again, which is
 * not authenticated a second time.
 */
#include <crypto/authenc.h>
#include <crypto/gcm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>

#include "cipherlane.h"

#define CL_SALT		4
#define CL_ESP_IV	8

int cl_aead_fallback(struct cl_req *req, u32 flags, crypto_completion_t complete, void *data)
{
	struct aead_request *fallback = &req->fallback.aead;

	aead_request_set_tfm(fallback, req->ctx->fallback.aead);
	aead_request_set_callback(fallback, flags, complete, data);
	aead_request_set_crypt(fallback, req->src, req->dst, req->in_len, req->iv);
	aead_request_set_ad(fallback, req->skip);
	return req->encrypt ? crypto_aead_encrypt(fallback) : crypto_aead_decrypt(fallback);
}

/* Whether the device knows this shape; what is wrong is told by software. */
static bool cl_takes_shape(const struct cl_req *req)
{
	const struct cl_ctx *ctx = req->ctx;

	if (req->skip > CL_ASSOC_MAX)
		return false;
	switch (ctx->alg) {
	case CL_GCM_AES:
		return true;
	case CL_RFC4106_GCM_AES:
		return req->skip == 16 || req->skip == 20;
	default:
		return req->len % AES_BLOCK_SIZE == 0 &&
		       (ctx->tag_len == 12 || ctx->tag_len == 16 || ctx->tag_len == 32);
	}
}

/* As authenc() of the kernel does, for users that look for it there. */
static void cl_copy_assoc(struct cl_req *req)
{
	u8 copy[64];
	u32 at, here;

	for (at = 0; at < req->skip; at += here) {
		here = min_t(u32, req->skip - at, sizeof(copy));
		sg_pcopy_to_buffer(req->src, sg_nents(req->src), copy, here, at);
		sg_pcopy_from_buffer(req->dst, sg_nents(req->dst), copy, here, at);
	}
}

static int cl_aead_crypt(struct aead_request *base, bool encrypt)
{
	struct cl_ctx *ctx = crypto_aead_ctx(crypto_aead_reqtfm(base));
	struct cl_req *req = aead_request_ctx(base);
	unsigned int tag_len = ctx->tag_len;

	if (!encrypt && base->cryptlen < tag_len)
		return -EINVAL;
	req->base = &base->base;
	req->ctx = ctx;
	req->src = base->src;
	req->dst = base->dst;
	req->iv = base->iv;
	req->skip = base->assoclen;
	req->aad_len = base->assoclen;
	req->len = encrypt ? base->cryptlen : base->cryptlen - tag_len;
	req->in_len = base->cryptlen;
	req->out_len = encrypt ? base->cryptlen + tag_len : req->len;
	req->encrypt = encrypt;
	if (!cl_takes_shape(req))
		return cl_software(req, CL_STAT_SOFTWARE_SHAPE);
	if (ctx->alg == CL_RFC4106_GCM_AES)
		req->aad_len -= CL_ESP_IV;
	else if (ctx->alg == CL_AUTHENC_SHA256_CBC_AES && req->src != req->dst)
		cl_copy_assoc(req);
	return cl_crypt(req);
}

static int cl_aead_encrypt(struct aead_request *base)
{
	return cl_aead_crypt(base, true);
}

static int cl_aead_decrypt(struct aead_request *base)
{
	return cl_aead_crypt(base, false);
}

static int cl_aead_setkey(struct crypto_aead *tfm, const u8 *key, unsigned int len)
{
	struct cl_ctx *ctx = crypto_aead_ctx(tfm);
	struct crypto_aead *fallback = ctx->fallback.aead;
	struct crypto_authenc_keys keys;
	int ret;

	crypto_aead_clear_flags(fallback, CRYPTO_TFM_REQ_MASK);
	crypto_aead_set_flags(fallback, crypto_aead_get_flags(tfm) & CRYPTO_TFM_REQ_MASK);
	ret = crypto_aead_setkey(fallback, key, len);
	if (ret)
		return ret;
	cl_forget_session(ctx);
	memzero_explicit(ctx->key, sizeof(ctx->key));
	if (ctx->alg != CL_AUTHENC_SHA256_CBC_AES) {
		memcpy(ctx->key, key, len);
		ctx->key_len = len;
		ctx->aes_len = ctx->alg == CL_RFC4106_GCM_AES ? len - CL_SALT : len;
		return 0;
	}
	ret = crypto_authenc_extractkeys(&keys, key, len);
	if (ret)
		return ret;
	/* HMAC pads a short key with zeros; one longer than its digest stays with software. */
	ctx->has_odd_key = keys.authkeylen > SHA256_DIGEST_SIZE ||
			   keys.enckeylen > AES_MAX_KEY_SIZE;
	if (!ctx->has_odd_key) {
		memcpy(ctx->key, keys.authkey, keys.authkeylen);
		memcpy(ctx->key + SHA256_DIGEST_SIZE, keys.enckey, keys.enckeylen);
		ctx->key_len = SHA256_DIGEST_SIZE + keys.enckeylen;
		ctx->aes_len = keys.enckeylen;
	}
	memzero_explicit(&keys, sizeof(keys));
	return 0;
}

static int cl_aead_setauthsize(struct crypto_aead *tfm, unsigned int len)
{
	struct cl_ctx *ctx = crypto_aead_ctx(tfm);
	int ret;

	ret = crypto_aead_setauthsize(ctx->fallback.aead, len);
	if (ret)
		return ret;
	/* The device knows a key together with the length of its tags. */
	cl_forget_session(ctx);
	ctx->tag_len = len;
	return 0;
}

struct cl_aead {
	struct aead_alg aead;
	enum cl_algorithm number;
	bool registered;
};

static int cl_aead_init(struct crypto_aead *tfm)
{
	struct cl_aead *alg = container_of(crypto_aead_alg(tfm), struct cl_aead, aead);
	struct cl_ctx *ctx = crypto_aead_ctx(tfm);
	struct crypto_aead *fallback;

	fallback = crypto_alloc_aead(alg->aead.base.cra_name, 0,
				     CRYPTO_ALG_NEED_FALLBACK | CRYPTO_ALG_ALLOCATES_MEMORY);
	if (IS_ERR(fallback))
		return PTR_ERR(fallback);
	ctx->alg = alg->number;
	ctx->force = -1;
	ctx->tag_len = alg->aead.maxauthsize;
	ctx->fallback.aead = fallback;
	crypto_aead_set_reqsize(tfm, sizeof(struct cl_req) + crypto_aead_reqsize(fallback));
	return 0;
}

static void cl_aead_exit(struct crypto_aead *tfm)
{
	struct cl_ctx *ctx = crypto_aead_ctx(tfm);

	cl_forget_session(ctx);
	crypto_free_aead(ctx->fallback.aead);
	memzero_explicit(ctx->key, sizeof(ctx->key));
}

#define CL_AEAD(name, driver, block, iv, tag)					\
	{									\
		.base.cra_name = name,						\
		.base.cra_driver_name = driver "-" CL_SUFFIX,			\
		.base.cra_flags = CRYPTO_ALG_ASYNC | CRYPTO_ALG_NEED_FALLBACK |	\
				  CRYPTO_ALG_KERN_DRIVER_ONLY,			\
		.base.cra_blocksize = block,					\
		.base.cra_ctxsize = sizeof(struct cl_ctx),			\
		.base.cra_module = THIS_MODULE,					\
		.ivsize = iv,							\
		.maxauthsize = tag,						\
		.chunksize = AES_BLOCK_SIZE,					\
		.setkey = cl_aead_setkey,					\
		.setauthsize = cl_aead_setauthsize,				\
		.encrypt = cl_aead_encrypt,					\
		.decrypt = cl_aead_decrypt,					\
		.init = cl_aead_init,						\
		.exit = cl_aead_exit,						\
	}

static struct cl_aead cl_aeads[] = {
	{
		.number = CL_GCM_AES,
		.aead = CL_AEAD("gcm(aes)", "gcm-aes", 1, GCM_AES_IV_SIZE, AES_BLOCK_SIZE),
	},
	{
		.number = CL_RFC4106_GCM_AES,
		.aead = CL_AEAD("rfc4106(gcm(aes))", "rfc4106-gcm-aes", 1, GCM_RFC4106_IV_SIZE,
				AES_BLOCK_SIZE),
	},
	{
		.number = CL_AUTHENC_SHA256_CBC_AES,
		.aead = CL_AEAD("authenc(hmac(sha256),cbc(aes))", "authenc-hmac-sha256-cbc-aes",
				AES_BLOCK_SIZE, AES_BLOCK_SIZE, SHA256_DIGEST_SIZE),
	},
};

/* authenc() of the kernel has ten times the priority of its cipher, and that of its hash. */
static int cl_aead_priority(enum cl_algorithm alg)
{
	return alg == CL_AUTHENC_SHA256_CBC_AES ? 10 * cl_priority + 400 : cl_priority;
}

/* One whose software is not there, such as a module that was not loaded, is left out. */
int cl_register_aeads(struct cl_device *dev)
{
	int ret = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(cl_aeads) && !ret; i++) {
		struct cl_aead *alg = &cl_aeads[i];

		if (alg->registered || !(dev->features & BIT_ULL(alg->number)) ||
		    !crypto_has_alg(alg->aead.base.cra_name, CRYPTO_ALG_TYPE_AEAD,
				    CRYPTO_ALG_TYPE_MASK | CRYPTO_ALG_NEED_FALLBACK))
			continue;
		alg->aead.base.cra_priority = cl_aead_priority(alg->number);
		ret = crypto_register_aead(&alg->aead);
		alg->registered = !ret;
	}
	return ret;
}

void cl_unregister_aeads(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cl_aeads); i++)
		if (cl_aeads[i].registered)
			crypto_unregister_aead(&cl_aeads[i].aead);
}
