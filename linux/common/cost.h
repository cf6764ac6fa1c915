/* SPDX-License-Identifier: GPL-2.0 */
/* What each way costs: cost.c, and its first measurement: calibrate.c. */
#ifndef CL_COST_H
#define CL_COST_H

enum cl_way {
	CL_WAY_SOFTWARE,
	CL_WAY_ENGINE,		/* the caller waits for the result */
	CL_WAY_ENGINE_BUSY,	/* the caller has several requests under way */
	CL_WAYS
};

/* The largest size for which there is a cost, in bytes. */
#define CL_LARGEST	65536U

extern u32 cl_wake_ns;
enum cl_way cl_choose(struct cl_ctx *ctx, bool encrypt, unsigned int len);
void cl_learn(struct cl_ctx *ctx, bool encrypt, unsigned int len, enum cl_way way, u64 ns);
void cl_learn_engine(struct cl_req *req);
void cl_set_cost(enum cl_algorithm alg, bool encrypt, unsigned int len, enum cl_way way, u32 ns);
void cl_calibrate(u32 key_bits, u64 features);
void cl_show_costs(struct seq_file *file);

#endif
