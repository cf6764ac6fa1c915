// SPDX-License-Identifier: GPL-2.0
/* What the drivers share, compiled into this module. */
#include "../common/switches.c"
#include "../common/stats.c"
#include "../common/cost.c"
#include "../common/calibrate.c"
#include "../common/queue.c"
#include "../common/lists.c"
#include "../common/completion.c"
#include "../common/audit.c"
#include "../common/device.c"
#include "../common/recovery.c"
#include "../common/alg.c"
#include "../common/aead.c"
