/* SPDX-License-Identifier: GPL-2.0 */
/* What the shared part is called in this module. */
#ifndef CL_NAMES_H
#define CL_NAMES_H

#define CL_NAME		"cipherlane_engine"
#define CL_SUFFIX	"cipherlane"

#endif
