/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* charon's sockets: its datagrams go through the gateway, which owns the ports. */
#ifndef CIPHERLANE_SOCKET_H_
#define CIPHERLANE_SOCKET_H_

#include <network/socket.h>

socket_t *cipherlane_socket_create();

#endif /* CIPHERLANE_SOCKET_H_ */
