/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* What the gateway tells charon of its own accord. */
#ifndef GATEWAY_EVENTS_H_
#define GATEWAY_EVENTS_H_

#include "gateway_link.h"

#include <processing/jobs/job.h>

/* Reads events until the gateway goes, and finds the next gateway. */
job_requeue_t gateway_listen_for_events(gateway_link_t *this);

#endif /* GATEWAY_EVENTS_H_ */
