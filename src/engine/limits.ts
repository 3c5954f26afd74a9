/** Bounds of one invocation (architecture, section 4). Passing one is LIMIT_EXCEEDED. */

export const ARGUMENT_BYTES_MAX = 2 * 1024 * 1024
export const RESULT_BYTES_MAX = 8 * 1024 * 1024
export const DOCUMENTS_READ_MAX = 32_768
export const BYTES_READ_MAX = 16 * 1024 * 1024
export const DOCUMENTS_WRITTEN_MAX = 8_192
export const BYTES_WRITTEN_MAX = 8 * 1024 * 1024
export const DOCUMENT_BYTES_MAX = 1024 * 1024
/** Milliseconds a Query or a Mutation may take in all, reruns included. */
export const INVOCATION_MILLIS_MAX = 10_000
/** The same of an Action. */
export const ACTION_MILLIS_MAX = 600_000
/** Calls that one call makes of others, all levels together, and how deep they nest. */
export const NESTED_CALLS_MAX = 4_096
export const NESTED_DEPTH_MAX = 8
/**
 * Characters of arguments, of all calls that one transaction makes of others; of arguments and
 * bodies, of what waits in one Action.
 */
export const NESTED_CHARACTERS_MAX = 64 * 1024 * 1024
/** Of those of one Action, how many are in flight; more wait. */
export const ACTION_CALLS_MAX = 32
/**
 * Actions that may run at one time. More wait in a queue for so long, then they are BUSY; of both,
 * one credential may have half.
 */
export const ACTIONS_MAX = 128
export const ACTIONS_WAITING_MAX = 256
export const ACTION_WAIT_MILLIS = 10_000
/**
 * Actions that Actions called, at one time; one credential may have half. One more is BUSY at once,
 * because its caller would wait with a permit of its own for a permit.
 */
export const NESTED_ACTIONS_MAX = 128
/** Requests of one Action in all, and in flight in one Action and in all of them; more wait. */
export const REQUESTS_MAX = 10_000
export const ACTION_REQUESTS_MAX = 16
export const REQUESTS_IN_FLIGHT_MAX = 128
export const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/**
 * Of requests of all Actions: what waits, what came of responses, and what runners did not take.
 * Where many end at once, copies make it five times as much for a moment.
 */
export const REQUESTS_BYTES_MAX = 128 * 1024 * 1024
/**
 * Runs of one call that ended with its runner through no fault of its own that was seen: beyond
 * them it is thought at fault. Many, since a Function of the same Release may break its runners.
 */
export const LOST_RUNS_MAX = 20
/** Runs of one Mutation, the first included. */
export const ATTEMPTS_MAX = 8
/** From this attempt on a Mutation commits alone, so that it cannot lose again. */
export const EXCLUSIVE_ATTEMPT = 4
/**
 * Invocations that may be in flight; one more is BUSY. The same of Mutations alone, those included
 * that are answered and whose commit is late: documents can be read beside those.
 */
export const INVOCATIONS_MAX = 4_096
/** Characters of keys, results and read sets in the query cache. */
export const CACHE_CHARACTERS_MAX = 64 * 1024 * 1024
/** A result of a Query that read the clock is kept this long. */
export const CLOCK_CACHE_MILLIS = 10_000
