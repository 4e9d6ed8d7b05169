// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the frequency of this machine's time stamp counter in kHz. The emulated processor has the same counter.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

enum { nanoseconds_per_second = 1000000000, interval = 50000000, attempts = 20 };

struct moment {
	uint64_t ticks;
	int64_t nanoseconds;
};

static int64_t clock_now(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC_RAW, &now))
		err(1, "clock_gettime");
	return (int64_t)now.tv_sec * nanoseconds_per_second + now.tv_nsec;
}

/* Reads both clocks at the same time: of several attempts, takes the shortest, which was not interrupted. */
static struct moment read_both(void)
{
	struct moment best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < attempts; i++) {
		uint64_t before = __rdtsc();
		int64_t now = clock_now();
		uint64_t spent = __rdtsc() - before;

		if (spent < shortest) {
			shortest = spent;
			best = (struct moment){ before + spent / 2, now };
		}
	}
	return best;
}

int main(void)
{
	struct timespec wait = { 0, interval };
	struct moment first = read_both(), last;

	nanosleep(&wait, NULL);
	last = read_both();
	printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.nanoseconds - first.nanoseconds));
	return 0;
}
