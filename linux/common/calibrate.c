// SPDX-License-Identifier: GPL-2.0
/*
 * The first measurement of what each way costs, when a device is found. Sealing is
 * measured for the algorithms that authenticate, and opening is taken to cost as much
 * until it is learned.
 */
#include <crypto/authenc.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>

#include "cipherlane.h"

#define CL_ROUNDS	5
#define CL_TOGETHER	8
/* Additional data, as in ESP. */
#define CL_HEAD		16
#define CL_TAG		16
#define CL_ROOM		(CL_HEAD + CL_LARGEST + CL_TAG)

struct cl_bench {
	enum cl_algorithm alg;
	struct crypto_skcipher *skcipher;
	struct crypto_aead *aead;
	struct cl_ctx *ctx;
	struct crypto_async_request *reqs[CL_TOGETHER];
	struct crypto_wait waits[CL_TOGETHER];
	struct scatterlist src, dst;
	u8 *in, *out;
	u8 iv[CL_TOGETHER][AES_BLOCK_SIZE];
};

static int cl_bench_run(struct cl_bench *bench, int i, bool encrypt, unsigned int len)
{
	u32 flags = CRYPTO_TFM_REQ_MAY_BACKLOG;
	struct skcipher_request *skcipher;
	struct aead_request *aead;

	crypto_init_wait(&bench->waits[i]);
	if (cl_is_aead(bench->alg)) {
		aead = container_of(bench->reqs[i], struct aead_request, base);
		aead_request_set_callback(aead, flags, crypto_req_done, &bench->waits[i]);
		aead_request_set_crypt(aead, &bench->src, &bench->dst, len, bench->iv[i]);
		aead_request_set_ad(aead, CL_HEAD);
		return crypto_aead_encrypt(aead);
	}
	skcipher = skcipher_request_cast(bench->reqs[i]);
	skcipher_request_set_callback(skcipher, flags, crypto_req_done, &bench->waits[i]);
	skcipher_request_set_crypt(skcipher, &bench->src, &bench->dst, len, bench->iv[i]);
	return encrypt ? crypto_skcipher_encrypt(skcipher) : crypto_skcipher_decrypt(skcipher);
}

/* The time of some requests that are under way at once. */
static u64 cl_time(struct cl_bench *bench, bool encrypt, unsigned int len, unsigned int count)
{
	int ret[CL_TOGETHER];
	u64 since = ktime_get_ns();
	unsigned int i;
	bool failed = false;

	for (i = 0; i < count; i++)
		ret[i] = cl_bench_run(bench, i, encrypt, len);
	for (i = 0; i < count; i++)
		failed |= crypto_wait_req(ret[i], &bench->waits[i]);
	return failed ? 0 : ktime_get_ns() - since;
}

static void cl_measure(struct cl_bench *bench, bool encrypt, unsigned int len)
{
	unsigned int more = cl_is_aead(bench->alg) ? CL_HEAD : 0;
	int rounds = len < 8192 ? CL_ROUNDS : CL_ROUNDS / 2;
	struct cl_ctx *ctx = bench->ctx;
	enum cl_way way;
	int i;

	sg_init_one(&bench->src, bench->in, more + len);
	sg_init_one(&bench->dst, bench->out, more + len + (more ? CL_TAG : 0));
	for (way = 0; way < CL_WAYS; way++) {
		unsigned int count = way == CL_WAY_ENGINE_BUSY ? CL_TOGETHER : 1;
		u64 best = 0;

		ctx->force = way;
		for (i = 0; i <= rounds; i++) {
			u64 ns = cl_time(bench, encrypt, len, count);

			/* The first one loads keys and warms caches. */
			if (!ns || !i)
				continue;
			if (way == CL_WAY_ENGINE && len <= 1024 && ctx->last_ns &&
			    ctx->last_ns < ns && (!best || ns < best))
				cl_wake_ns = ns - ctx->last_ns;
			best = best ? min(best, ns) : ns;
		}
		if (!best)
			continue;
		cl_set_cost(bench->alg, encrypt, len, way, div_u64(best, count));
		if (more)
			cl_set_cost(bench->alg, false, len, way, div_u64(best, count));
	}
}

/* A key as setkey() of the algorithm takes it. Returns its length. */
static unsigned int cl_make_key(enum cl_algorithm alg, unsigned int aes_len, u8 *key)
{
	unsigned int head = RTA_SPACE(sizeof(struct crypto_authenc_key_param));
	struct crypto_authenc_key_param *param;
	struct rtattr *rta = (struct rtattr *)key;
	unsigned int i;

	for (i = 0; i < head + CL_KEY_MAX; i++)
		key[i] = 37 * i + 1;
	switch (alg) {
	case CL_XTS_AES:
		return 2 * aes_len;
	case CL_RFC4106_GCM_AES:
		return aes_len + 4;
	case CL_AUTHENC_SHA256_CBC_AES:
		rta->rta_len = RTA_LENGTH(sizeof(*param));
		rta->rta_type = CRYPTO_AUTHENC_KEYA_PARAM;
		param = RTA_DATA(rta);
		param->enckeylen = cpu_to_be32(aes_len);
		return head + SHA256_DIGEST_SIZE + aes_len;
	default:
		return aes_len;
	}
}

static int cl_bench_open(struct cl_bench *bench, const char *name, unsigned int aes_len)
{
	u8 key[RTA_SPACE(sizeof(struct crypto_authenc_key_param)) + CL_KEY_MAX] __aligned(4);
	unsigned int len = cl_make_key(bench->alg, aes_len, key);
	int ret;

	if (cl_is_aead(bench->alg)) {
		bench->aead = crypto_alloc_aead(name, 0, 0);
		if (IS_ERR(bench->aead))
			return PTR_ERR(bench->aead);
		bench->ctx = crypto_aead_ctx(bench->aead);
		ret = crypto_aead_setkey(bench->aead, key, len) ?:
		      crypto_aead_setauthsize(bench->aead, CL_TAG);
		if (ret)
			crypto_free_aead(bench->aead);
	} else {
		bench->skcipher = crypto_alloc_skcipher(name, 0, 0);
		if (IS_ERR(bench->skcipher))
			return PTR_ERR(bench->skcipher);
		bench->ctx = crypto_skcipher_ctx(bench->skcipher);
		ret = crypto_skcipher_setkey(bench->skcipher, key, len);
		if (ret)
			crypto_free_skcipher(bench->skcipher);
	}
	return ret;
}

static struct crypto_async_request *cl_bench_request(struct cl_bench *bench)
{
	struct skcipher_request *skcipher;
	struct aead_request *aead;

	if (cl_is_aead(bench->alg)) {
		aead = aead_request_alloc(bench->aead, GFP_KERNEL);
		return aead ? &aead->base : NULL;
	}
	skcipher = skcipher_request_alloc(bench->skcipher, GFP_KERNEL);
	return skcipher ? &skcipher->base : NULL;
}

static void cl_calibrate_alg(struct cl_bench *bench, const char *name, unsigned int aes_len)
{
	unsigned int len;
	int i;

	if (cl_bench_open(bench, name, aes_len))
		return;			/* it did not pass its self-test, or is not there */
	for (i = 0; i < CL_TOGETHER; i++) {
		bench->reqs[i] = cl_bench_request(bench);
		if (!bench->reqs[i])
			goto free;
	}
	for (len = 16; len <= CL_LARGEST; len *= 2) {
		cl_measure(bench, true, len);
		if (!cl_is_aead(bench->alg))
			cl_measure(bench, false, len);
	}
free:
	while (i--) {
		if (cl_is_aead(bench->alg))
			aead_request_free(container_of(bench->reqs[i], struct aead_request, base));
		else
			skcipher_request_free(skcipher_request_cast(bench->reqs[i]));
	}
	if (cl_is_aead(bench->alg))
		crypto_free_aead(bench->aead);
	else
		crypto_free_skcipher(bench->skcipher);
}

void cl_calibrate(u32 key_bits, u64 features)
{
	static const char *const names[CL_ALGORITHMS] = {
		[CL_ECB_AES] = "ecb-aes-" CL_SUFFIX,
		[CL_CBC_AES] = "cbc-aes-" CL_SUFFIX,
		[CL_CTR_AES] = "ctr-aes-" CL_SUFFIX,
		[CL_XTS_AES] = "xts-aes-" CL_SUFFIX,
		[CL_GCM_AES] = "gcm-aes-" CL_SUFFIX,
		[CL_RFC4106_GCM_AES] = "rfc4106-gcm-aes-" CL_SUFFIX,
		[CL_AUTHENC_SHA256_CBC_AES] = "authenc-hmac-sha256-cbc-aes-" CL_SUFFIX,
	};
	unsigned int aes_len = AES_KEYSIZE_128 + 8 * (key_bits & 7 ? __ffs(key_bits & 7) : 0);
	struct cl_bench *bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	int i;

	if (!bench)
		return;
	/* Who asks for one waits for its self-test, which would disturb the measurement. */
	for (i = 0; i < CL_ALGORITHMS; i++)
		if (names[i] && features & BIT_ULL(i))
			crypto_has_alg(names[i], 0, 0);
	bench->in = kzalloc(CL_ROOM, GFP_KERNEL);
	bench->out = kzalloc(CL_ROOM, GFP_KERNEL);
	for (i = 0; i < CL_ALGORITHMS && bench->in && bench->out; i++) {
		bench->alg = i;
		if (names[i] && features & BIT_ULL(i))
			cl_calibrate_alg(bench, names[i], aes_len);
	}
	kfree(bench->in);
	kfree(bench->out);
	kfree(bench);
}
