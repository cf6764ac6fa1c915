// SPDX-License-Identifier: GPL-2.0
/* Parameters of the module. */
#include <linux/module.h>

#include "cipherlane.h"

bool cl_enabled = true;
module_param_named(enabled, cl_enabled, bool, 0644);
MODULE_PARM_DESC(enabled, "whether the device is used; can be changed at any time (default Y)");

int cl_threshold = -1;
module_param_named(threshold, cl_threshold, int, 0644);
MODULE_PARM_DESC(threshold,
		 "bytes from which on requests go to the device; -1: by measured cost (default)");

bool cl_bounce_output;
module_param_named(bounce_output, cl_bounce_output, bool, 0644);
MODULE_PARM_DESC(bounce_output,
		 "never give the device a caller's memory to write (default N)");

unsigned int cl_audit_every = 1024;
module_param_named(audit, cl_audit_every, uint, 0644);
MODULE_PARM_DESC(audit,
		 "of requests one in this number is served by software too, and compared; 0: none (default 1024)");

unsigned int cl_timeout_ms = 500;
module_param_named(timeout_ms, cl_timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "milliseconds without an answer until a reset (default 500)");

unsigned int cl_priority = 300;
module_param_named(priority, cl_priority, uint, 0444);
MODULE_PARM_DESC(priority, "of the algorithms in the CryptoAPI (default 300)");

unsigned int cl_depth = 64;
module_param_named(depth, cl_depth, uint, 0444);
MODULE_PARM_DESC(depth, "requests in the device at most (default 64)");

unsigned int cl_bounce_kib = 64;
module_param_named(bounce_kib, cl_bounce_kib, uint, 0444);
MODULE_PARM_DESC(bounce_kib, "memory for copies of a request (default 64)");
