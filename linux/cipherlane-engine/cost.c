// SPDX-License-Identifier: GPL-2.0
/*
 * What each way costs, measured: the threshold.
 *
 * For each algorithm, direction and size (a power of two) there are three times: of the
 * caller's processor; of the engine, for a caller that waits, with everything from its
 * request until it runs again; and of the engine for a caller that has several requests
 * under way, which is the time between two results. A request takes the way that is
 * shorter. All are measured when the device is found, and learned from what is served;
 * the way that is not taken is tried from time to time, the more rarely the longer it takes.
 */
#include <linux/scatterlist.h>
#include <linux/seq_file.h>

#include "engine.h"

/* 16 bytes to 64 KiB. */
#define CLE_SIZES	13
#define CLE_LARGEST	(16U << (CLE_SIZES - 1))
/* The engine must be cheaper by this part: one eighth. */
#define CLE_MARGIN	8
/* Trials come in a row, so that it shows whether the caller waits. */
#define CLE_TRIAL	8
/* Decisions between them, for a way that takes not much longer. */
#define CLE_OFTEN	1024
/* The same for each time that it takes longer. */
#define CLE_RARELY	512

static u32 cle_costs[CLE_ALGORITHMS][2][CLE_WAYS][CLE_SIZES];
/* From the end of a request in the driver until its caller runs again. */
static u32 cle_wake_ns;

static unsigned int cle_size_class(unsigned int len)
{
	return len <= 16 ? 0 : min_t(unsigned int, ilog2(len) - 4, CLE_SIZES - 1);
}

/* A time for a length, from the times of the class of its size. */
static u32 *cle_cost(struct cle_ctx *ctx, bool encrypt, unsigned int len, enum cle_way way)
{
	return &cle_costs[ctx->alg][!encrypt][way][cle_size_class(len)];
}

void cle_learn(struct cle_ctx *ctx, bool encrypt, unsigned int len, enum cle_way way, u64 ns)
{
	u32 *cost = cle_cost(ctx, encrypt, len, way);
	s64 old = READ_ONCE(*cost);

	if (len > CLE_LARGEST)
		ns = div_u64(ns * CLE_LARGEST, len);
	/* One that was held up by something else tells little. */
	ns = clamp_t(u64, ns, 1, old ? min_t(u64, 4 * old, U32_MAX) : U32_MAX);
	WRITE_ONCE(*cost, old ? old + ((s64)ns - old) / 8 : ns);
}

/* A request that the engine has done. */
void cle_learn_engine(struct cle_ctx *ctx, struct skcipher_request *req)
{
	struct cle_req *state = skcipher_request_ctx(req);
	u64 ns = ktime_get_ns() - state->since_ns;

	ctx->last_ns = ns;
	if (ctx->force >= 0)
		return;			/* who measures learns itself */
	if (state->ahead)
		cle_learn(ctx, state->encrypt, req->cryptlen, CLE_WAY_ENGINE_BUSY,
			  div_u64(ns, state->ahead + 1));
	else if (ctx->burst < 8)
		cle_learn(ctx, state->encrypt, req->cryptlen, CLE_WAY_ENGINE, ns + cle_wake_ns);
}

/* Whether this decision is a trial of a way that takes @other where another takes @best. */
static bool cle_is_trial(struct cle_ctx *ctx, u32 best, u32 other)
{
	u32 times = best ? other / best : 0;
	u32 every = times < 4 ? CLE_OFTEN : CLE_RARELY * min(times, 1024U);

	/* At the end of each turn: a user with few requests has no trials. */
	return ctx->decisions % every >= every - (times < 4 ? CLE_TRIAL : 1);
}

enum cle_way cle_choose(struct cle_ctx *ctx, bool encrypt, unsigned int len)
{
	int threshold = READ_ONCE(cle_threshold);
	enum cle_way way = ctx->burst < 8 ? CLE_WAY_ENGINE : CLE_WAY_ENGINE_BUSY;
	u32 engine, software;

	if (ctx->force >= 0)
		return ctx->force;
	if (threshold >= 0)
		return len >= threshold ? way : CLE_WAY_SOFTWARE;
	software = READ_ONCE(*cle_cost(ctx, encrypt, len, CLE_WAY_SOFTWARE));
	engine = READ_ONCE(*cle_cost(ctx, encrypt, len, way));
	if (!engine || !software)
		return CLE_WAY_SOFTWARE;	/* nothing was measured */
	if (engine < software - software / CLE_MARGIN)
		return cle_is_trial(ctx, engine, software) ? CLE_WAY_SOFTWARE : way;
	return cle_is_trial(ctx, software, engine) ? way : CLE_WAY_SOFTWARE;
}

/* --- The first measurement ------------------------------------------------------------ */

#define CLE_ROUNDS	5
#define CLE_TOGETHER	8

struct cle_bench {
	struct crypto_skcipher *tfm;
	struct skcipher_request *reqs[CLE_TOGETHER];
	struct crypto_wait waits[CLE_TOGETHER];
	struct scatterlist src, dst;
	u8 *in, *out;
	u8 iv[CLE_TOGETHER][AES_BLOCK_SIZE];
};

/* The time of some requests that are under way at once. */
static u64 cle_time(struct cle_bench *bench, bool encrypt, unsigned int len, unsigned int count)
{
	int ret[CLE_TOGETHER];
	u64 since = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct skcipher_request *req = bench->reqs[i];

		crypto_init_wait(&bench->waits[i]);
		skcipher_request_set_callback(req, CRYPTO_TFM_REQ_MAY_BACKLOG, crypto_req_done,
					      &bench->waits[i]);
		skcipher_request_set_crypt(req, &bench->src, &bench->dst, len, bench->iv[i]);
		ret[i] = encrypt ? crypto_skcipher_encrypt(req) : crypto_skcipher_decrypt(req);
	}
	for (i = 0; i < count; i++)
		if (crypto_wait_req(ret[i], &bench->waits[i]))
			return 0;
	return ktime_get_ns() - since;
}

static void cle_measure(struct cle_bench *bench, bool encrypt, unsigned int len)
{
	struct cle_ctx *ctx = crypto_skcipher_ctx(bench->tfm);
	int rounds = len < 8192 ? CLE_ROUNDS : CLE_ROUNDS / 2;
	enum cle_way way;
	int i;

	sg_init_one(&bench->src, bench->in, len);
	sg_init_one(&bench->dst, bench->out, len);
	for (way = 0; way < CLE_WAYS; way++) {
		unsigned int count = way == CLE_WAY_ENGINE_BUSY ? CLE_TOGETHER : 1;
		u64 best = 0;

		ctx->force = way;
		for (i = 0; i <= rounds; i++) {
			u64 ns = cle_time(bench, encrypt, len, count);

			/* The first one loads keys and warms caches. */
			if (!ns || !i)
				continue;
			if (way == CLE_WAY_ENGINE && len <= 1024 && ctx->last_ns &&
			    ctx->last_ns < ns && (!best || ns < best))
				cle_wake_ns = ns - ctx->last_ns;
			best = best ? min(best, ns) : ns;
		}
		if (best)
			WRITE_ONCE(*cle_cost(ctx, encrypt, len, way), div_u64(best, count));
	}
}

static void cle_calibrate_alg(struct cle_bench *bench, const char *name, unsigned int key_len)
{
	u8 key[2 * AES_MAX_KEY_SIZE];
	unsigned int len;
	int i;

	bench->tfm = crypto_alloc_skcipher(name, 0, 0);
	if (IS_ERR(bench->tfm))
		return;			/* it did not pass its self-test */
	for (i = 0; i < sizeof(key); i++)
		key[i] = 37 * i + 1;
	if (crypto_skcipher_setkey(bench->tfm, key, key_len))
		goto free_tfm;
	for (i = 0; i < CLE_TOGETHER; i++) {
		bench->reqs[i] = skcipher_request_alloc(bench->tfm, GFP_KERNEL);
		if (!bench->reqs[i])
			goto free_reqs;
	}
	for (len = 16; len <= CLE_LARGEST; len *= 2) {
		cle_measure(bench, true, len);
		cle_measure(bench, false, len);
	}
free_reqs:
	while (i--)
		skcipher_request_free(bench->reqs[i]);
free_tfm:
	crypto_free_skcipher(bench->tfm);
}

void cle_calibrate(u32 key_bits, u64 features)
{
	static const char *const names[CLE_ALGORITHMS] = {
		[CLE_ECB_AES] = "ecb-aes-cipherlane",
		[CLE_CBC_AES] = "cbc-aes-cipherlane",
		[CLE_CTR_AES] = "ctr-aes-cipherlane",
		[CLE_XTS_AES] = "xts-aes-cipherlane",
	};
	unsigned int key_len = AES_KEYSIZE_128 + 8 * (key_bits & 7 ? __ffs(key_bits & 7) : 0);
	struct cle_bench *bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	int i;

	if (!bench)
		return;
	bench->in = kzalloc(CLE_LARGEST, GFP_KERNEL);
	bench->out = kzalloc(CLE_LARGEST, GFP_KERNEL);
	for (i = 0; i < CLE_ALGORITHMS && bench->in && bench->out; i++)
		if (features & BIT_ULL(i))
			cle_calibrate_alg(bench, names[i],
					  i == CLE_XTS_AES ? 2 * key_len : key_len);
	kfree(bench->in);
	kfree(bench->out);
	kfree(bench);
}

void cle_show_costs(struct seq_file *file)
{
	static const char *const names[CLE_ALGORITHMS] = { "ecb", "cbc", "ctr", "xts" };
	int alg, back, size;

	seq_puts(file, "algorithm direction bytes software_ns engine_ns engine_busy_ns\n");
	for (alg = 0; alg < CLE_ALGORITHMS; alg++)
		for (back = 0; back < 2; back++)
			for (size = 0; size < CLE_SIZES; size++) {
				u32 (*cost)[CLE_SIZES] = cle_costs[alg][back];

				if (!cost[CLE_WAY_ENGINE][size])
					continue;
				seq_printf(file, "%s %s %u %u %u %u\n", names[alg],
					   back ? "decrypt" : "encrypt", 16U << size,
					   cost[CLE_WAY_SOFTWARE][size],
					   cost[CLE_WAY_ENGINE][size],
					   cost[CLE_WAY_ENGINE_BUSY][size]);
			}
	seq_printf(file, "wake_ns %u\n", cle_wake_ns);
}
