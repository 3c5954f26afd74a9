/** A wall clock of one server that a test sets, as an operator or NTP sets that of a machine. */
import { spawnSync } from 'node:child_process'
import { openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Overrides the wall clock of a program by an offset that a file has; other clocks run on. */
const SOURCE = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long long *seconds;
static int (*original)(clockid_t, struct timespec *);
__attribute__((constructor)) static void start(void) {
  int file = open(getenv("CLOCK_OFFSET_FILE"), O_RDONLY);
  seconds = mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t clock, struct timespec *at) {
  if (!original) original = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = original(clock, at);
  if (!failed && seconds && clock == CLOCK_REALTIME) at->tv_sec += *seconds;
  return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
`

export class Clock {
  /** The variables that give a server this clock. */
  readonly environment: Readonly<Record<string, string>>
  readonly #file: number

  private constructor(library: string, offsetFile: string) {
    this.environment = { LD_PRELOAD: library, CLOCK_OFFSET_FILE: offsetFile }
    this.#file = openSync(offsetFile, 'r+')
  }

  /** Returns a clock; where this machine cannot make one, the reason. */
  static make(directory: string): Clock | string {
    const library = join(directory, 'clock.so')
    const command = ['-shared', '-fPIC', '-o', library, '-x', 'c', '-']
    const { status, stderr, error } = spawnSync('cc', command, { input: SOURCE, encoding: 'utf8' })
    if (status !== 0) return String(error ?? stderr)
    const offsetFile = join(directory, 'clock-offset')
    writeFileSync(offsetFile, new Uint8Array(8))
    return new Clock(library, offsetFile)
  }

  /** Sets the clock ahead by `seconds`, or back if they are negative. */
  set(seconds: number): void {
    writeSync(this.#file, new BigInt64Array([BigInt(seconds)]), 0, 8, 0)
  }
}
