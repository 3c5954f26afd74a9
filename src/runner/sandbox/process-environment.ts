/** The environment of a runner process, which has no variable of the server's. */
export const RUNNER_ENVIRONMENT = {
  // The time zone that dates are shown in.
  TZ: 'UTC',
  // A proper tail call removes the frame of its caller: a handler that returns the promise of
  // `ctx.db` without `await` would have no line in the trace of the failure. JavaScriptCore is the
  // only engine that makes such calls, so no library depends on them.
  BUN_JSC_useTailCalls: '0',
  // The build renames the prefix in the runtime of the executable (build/runtime/neutralise.ts), so
  // that no shell sets an option of the engine. This process sets the one that it needs.
  '=UN_JSC_useTailCalls': '0',
} as const

/** The environment of a runner after it re-executed itself on Linux (containment.ts). */
export const CONTAINED_ENVIRONMENT = {
  ...RUNNER_ENVIRONMENT,
  // The allocator's own reservations count as data, and a large one would hide what is used.
  MIMALLOC_ARENA_RESERVE: '65536',
} as const
