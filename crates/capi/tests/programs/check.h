/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of the tests share: words on what failed, and numbers that only look random. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cipherlane.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__,          \
				#condition, cipherlane_error_text());                   \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

#define OK(call) CHECK((call) == CIPHERLANE_OK)

/* The answer is the given one, and the words have these in them. */
#define REFUSED(call, answer, words)                                                    \
	do {                                                                            \
		CHECK((call) == (answer));                                              \
		CHECK(strstr(cipherlane_error_text(), words) != NULL);                  \
	} while (0)

static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift64 */
static inline uint64_t drawn(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static inline void fill(void *place, size_t len)
{
	unsigned char *bytes = place;

	while (len--)
		*bytes++ = (unsigned char)drawn();
}

#endif
