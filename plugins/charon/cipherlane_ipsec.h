/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* charon's interface to IPsec, served by the gateway. */
#ifndef CIPHERLANE_IPSEC_H_
#define CIPHERLANE_IPSEC_H_

#include <kernel/kernel_ipsec.h>

kernel_ipsec_t *cipherlane_ipsec_create();

#endif /* CIPHERLANE_IPSEC_H_ */
