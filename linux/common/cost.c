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

#include "cipherlane.h"

/* 16 bytes to CL_LARGEST. */
#define CL_SIZES	13
/* The engine must be cheaper by this part: one eighth. */
#define CL_MARGIN	8
/* Trials come in a row, so that it shows whether the caller waits. */
#define CL_TRIAL	8
/* Decisions between them, for a way that takes not much longer. */
#define CL_OFTEN	1024
/* The same for each time that it takes longer. */
#define CL_RARELY	512

static u32 cl_costs[CL_ALGORITHMS][2][CL_WAYS][CL_SIZES];
/* From the end of a request in the driver until its caller runs again. */
u32 cl_wake_ns;

static unsigned int cl_size_class(unsigned int len)
{
	return len <= 16 ? 0 : min_t(unsigned int, ilog2(len) - 4, CL_SIZES - 1);
}

/* A time for a length, from the times of the class of its size. */
static u32 *cl_cost(struct cl_ctx *ctx, bool encrypt, unsigned int len, enum cl_way way)
{
	return &cl_costs[ctx->alg][!encrypt][way][cl_size_class(len)];
}

void cl_learn(struct cl_ctx *ctx, bool encrypt, unsigned int len, enum cl_way way, u64 ns)
{
	u32 *cost = cl_cost(ctx, encrypt, len, way);
	s64 old = READ_ONCE(*cost);

	if (len > CL_LARGEST)
		ns = div_u64(ns * CL_LARGEST, len);
	/* One that was held up by something else tells little. */
	ns = clamp_t(u64, ns, 1, old ? min_t(u64, 4 * old, U32_MAX) : U32_MAX);
	WRITE_ONCE(*cost, old ? old + ((s64)ns - old) / 8 : ns);
}

/* A request that the engine has done. */
void cl_learn_engine(struct cl_req *req)
{
	struct cl_ctx *ctx = req->ctx;
	u64 ns = ktime_get_ns() - req->since_ns;

	ctx->last_ns = ns;
	if (ctx->force >= 0)
		return;			/* who measures learns itself */
	if (req->ahead)
		cl_learn(ctx, req->encrypt, req->len, CL_WAY_ENGINE_BUSY,
			 div_u64(ns, req->ahead + 1));
	else if (ctx->burst < 8)
		cl_learn(ctx, req->encrypt, req->len, CL_WAY_ENGINE, ns + cl_wake_ns);
}

/* Whether this decision is a trial of a way that takes @other where another takes @best. */
static bool cl_is_trial(struct cl_ctx *ctx, u32 best, u32 other)
{
	u32 times = best ? other / best : 0;
	u32 every = times < 4 ? CL_OFTEN : CL_RARELY * min(times, 1024U);

	/* At the end of each turn: a user with few requests has no trials. */
	return ctx->decisions % every >= every - (times < 4 ? CL_TRIAL : 1);
}

enum cl_way cl_choose(struct cl_ctx *ctx, bool encrypt, unsigned int len)
{
	int threshold = READ_ONCE(cl_threshold);
	enum cl_way way = ctx->burst < 8 ? CL_WAY_ENGINE : CL_WAY_ENGINE_BUSY;
	u32 engine, software;

	if (ctx->force >= 0)
		return ctx->force;
	if (threshold >= 0)
		return len >= threshold ? way : CL_WAY_SOFTWARE;
	software = READ_ONCE(*cl_cost(ctx, encrypt, len, CL_WAY_SOFTWARE));
	engine = READ_ONCE(*cl_cost(ctx, encrypt, len, way));
	if (!engine || !software)
		return CL_WAY_SOFTWARE;	/* nothing was measured */
	if (engine < software - software / CL_MARGIN)
		return cl_is_trial(ctx, engine, software) ? CL_WAY_SOFTWARE : way;
	return cl_is_trial(ctx, software, engine) ? way : CL_WAY_SOFTWARE;
}

/* For who measures: a time in place of all before it. */
void cl_set_cost(enum cl_algorithm alg, bool encrypt, unsigned int len, enum cl_way way, u32 ns)
{
	WRITE_ONCE(cl_costs[alg][!encrypt][way][cl_size_class(len)], ns);
}

void cl_show_costs(struct seq_file *file)
{
	static const char *const names[CL_ALGORITHMS] = {
		[CL_ECB_AES] = "ecb",
		[CL_CBC_AES] = "cbc",
		[CL_CTR_AES] = "ctr",
		[CL_XTS_AES] = "xts",
		[CL_GCM_AES] = "gcm",
		[CL_RFC4106_GCM_AES] = "rfc4106",
		[CL_AUTHENC_SHA256_CBC_AES] = "authenc",
	};
	int alg, back, size;

	seq_puts(file, "algorithm direction bytes software_ns engine_ns engine_busy_ns\n");
	for (alg = 0; alg < CL_ALGORITHMS; alg++)
		for (back = 0; back < 2; back++)
			for (size = 0; size < CL_SIZES; size++) {
				u32 (*cost)[CL_SIZES] = cl_costs[alg][back];

				if (!cost[CL_WAY_ENGINE][size])
					continue;
				seq_printf(file, "%s %s %u %u %u %u\n", names[alg],
					   back ? "decrypt" : "encrypt", 16U << size,
					   cost[CL_WAY_SOFTWARE][size],
					   cost[CL_WAY_ENGINE][size],
					   cost[CL_WAY_ENGINE_BUSY][size]);
			}
	seq_printf(file, "wake_ns %u\n", cl_wake_ns);
}
