/**
 * Bounds of invocations. Exceeding one is LIMIT_EXCEEDED or BUSY. A `@limit` line is a row of
 * src/docs/limits.md: its section, and what the value bounds.
 */

/** @limit Data Admin: stored bytes of the documents of one page */
export const ADMINISTERED_PAGE_BYTES_MAX = 4 * 1024 * 1024
/** @limit Calls: arguments of one call */
export const ARGUMENT_BYTES_MAX = 2 * 1024 * 1024
/** @limit Calls: result of one call */
export const RESULT_BYTES_MAX = 8 * 1024 * 1024
/** @limit Calls: documents read by one call */
export const DOCUMENTS_READ_MAX = 32_768
/** @limit Calls: bytes read by one call */
export const BYTES_READ_MAX = 16 * 1024 * 1024
/** @limit Calls: documents written by one call */
export const DOCUMENTS_WRITTEN_MAX = 8_192
/** @limit Calls: bytes written by one call */
export const BYTES_WRITTEN_MAX = 8 * 1024 * 1024
/** @limit Calls: one document */
export const DOCUMENT_BYTES_MAX = 1024 * 1024
/**
 * Milliseconds that a Query or a Mutation may take, including all attempts.
 * @limit Calls: elapsed time of a Query or a Mutation
 */
export const INVOCATION_MILLIS_MAX = 10_000
/** @limit Actions: elapsed time of an Action */
export const ACTION_MILLIS_MAX = 600_000
/** @limit Calls: CPU time of a Query or a Mutation */
export const CALL_CPU_MILLIS_MAX = 1_000
/** @limit Actions: CPU time of an Action */
export const ACTION_CPU_MILLIS_MAX = 60_000
/** @limit Workspaces and Releases: CPU time of loading the code of a Release */
export const LOAD_CPU_MILLIS_MAX = 2_000
/** @limit Calls: operations of `ctx` in one call */
export const OPERATIONS_MAX = 100_000
/**
 * Bytes that the memory of a runner may grow by while one call runs without a pause.
 * @limit Calls: growth of memory during one uninterrupted part of a call
 */
export const CALL_GROWTH_BYTES_MAX = 64 * 1024 * 1024
/**
 * Bytes that all calls together may make the memory of a runner grow by.
 * @limit Calls: growth of memory of one runner process by its calls
 */
export const RUNNER_GROWTH_BYTES_MAX = 256 * 1024 * 1024
/**
 * @limit Calls: calls of other Functions in one invocation, at all levels
 */
export const NESTED_CALLS_MAX = 4_096
/**
 * Most levels of calls below the root call.
 * @limit Calls: levels of calls of other Functions
 */
export const NESTED_DEPTH_MAX = 8
/**
 * Most characters of the arguments of all Functions that one transaction calls, and most characters
 * of the arguments and request bodies that wait in one Action.
 */
export const NESTED_CHARACTERS_MAX = 64 * 1024 * 1024
/** @limit Actions: calls of other Functions in flight in one Action; more wait */
export const ACTION_CALLS_MAX = 32
/**
 * Actions that may run at one time. More wait in a queue for so long, then they are BUSY; of both,
 * one credential may have half.
 * @limit Actions: Actions that run at one time; half of them with one Application Key
 */
export const ACTIONS_MAX = 128
/** @limit Actions: Actions that wait for their turn; half of them with one Application Key */
export const ACTIONS_WAITING_MAX = 256
/** @limit Actions: time that an Action waits for its turn, then it is `BUSY` */
export const ACTION_WAIT_MILLIS = 10_000
/**
 * Actions that Actions called, at one time; one credential may have half. One more is BUSY at once,
 * because its caller would wait with a permit of its own for a permit.
 * @limit Actions: Actions called by Actions at one time; half of them with one Application Key;
 * one more is `BUSY` at once
 */
export const NESTED_ACTIONS_MAX = 128
/** @limit Actions: outgoing requests of one Action */
export const REQUESTS_MAX = 10_000
/** @limit Actions: outgoing requests in flight in one Action; more wait */
export const ACTION_REQUESTS_MAX = 16
/** @limit Actions: outgoing requests in flight in all Actions; more wait */
export const REQUESTS_IN_FLIGHT_MAX = 128
/** @limit Actions: response to one outgoing request */
export const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/**
 * Most bytes of the requests of all Actions: waiting bodies, received responses and data that
 * runners have not read yet. When many requests end at once, copies briefly take five times as
 * much.
 * @limit Actions: memory of the outgoing requests of all Actions
 */
export const REQUESTS_BYTES_MAX = 128 * 1024 * 1024
/**
 * Most attempts of one call that may be lost to runner failures not attributed to it. Beyond them
 * the call itself is presumed to be the cause. The bound is high, since another Function of the
 * same Release may crash the runners.
 */
export const LOST_RUNS_MAX = 20
/** Most attempts of one Mutation, including the first one. */
export const ATTEMPTS_MAX = 8
/** The first attempt that holds the global commit lock, so that it cannot conflict. */
export const EXCLUSIVE_ATTEMPT = 4
/**
 * Most invocations in flight; one more is BUSY. The same bound applies to Mutations alone, where it
 * includes those whose commit is stalled: they have sent their replies and do not block Queries.
 * @limit Calls: calls in flight in the server; one more is `BUSY`
 */
export const INVOCATIONS_MAX = 4_096
/**
 * Milliseconds that a Query or a Mutation of an application may wait for others: half of its
 * deadline. One that would wait longer is BUSY at once, one that has waited as long for a runner is
 * BUSY then.
 * @limit Calls: time that a Query or a Mutation waits for others; one that would wait longer is
 * `BUSY` at once
 */
export const CALL_WAIT_MILLIS_MAX = 5_000
/**
 * Bytes that the runs of watched Queries in flight read and return. More runs wait, so that calls
 * come before them and runners have the memory. One address may have a quarter, a key half.
 * @limit Realtime: documents read and results of the runs of watched Queries in flight; a quarter
 * of it for one address, half of it for one key; more runs wait
 */
export const REFRESHED_BYTES_MAX = 64 * 1024 * 1024
/** Bytes that one run counts for at least, and where nothing is known of its Function. */
export const REFRESH_BYTES = { least: 1024 * 1024, unknown: 8 * 1024 * 1024 } as const
/**
 * Bytes of a watched Query beside its result and the documents that it read, without arguments.
 * Measured, with the garbage that is not collected yet.
 */
export const WATCHED_QUERY_BYTES = 3 * 1024
/** Bytes of a read set for each document or interval, beside their texts. */
export const READ_SET_ENTRY_BYTES = 256
/**
 * Bytes of a patch of a live list, which is one message.
 * @limit Realtime: bytes of a patch of a live list; the whole state is sent beyond
 */
export const PATCH_BYTES_MAX = 63 * 1024
/**
 * Characters of the results between which patches are made: about 2 ms for both.
 * @limit Realtime: characters of a result that is sent as patches; beyond, always as a whole
 */
export const PATCHED_CHARACTERS_MAX = 1024 * 1024
/** The detail of LIMIT_EXCEEDED where the memory of subscriptions is exhausted. */
export const SUBSCRIPTION_MEMORY = 'the memory of subscriptions'
/** Lifetime of a cached result of a Query that read the clock. */
export const CLOCK_CACHE_MILLIS = 10_000
/**
 * Scheduled Mutations that run at one time while no application calls: as many as it takes to fill
 * one batch of commits while the batch before it becomes durable.
 * @limit Scheduled work: scheduled Mutations that run at one time
 */
export const SCHEDULED_MUTATIONS_MAX = 64
/** @limit Scheduled work: scheduled Mutations of one Function at one time */
export const SCHEDULED_MUTATION_RUNS_MAX = 48
/**
 * They are few, so that calls come first: more due work waits in the order of its due times.
 * @limit Scheduled work: scheduled Mutations that run at one time while applications call
 */
export const SCHEDULED_MUTATIONS_BESIDE_CALLS_MAX = 16
/** @limit Scheduled work: scheduled Mutations of one Function while applications call */
export const SCHEDULED_MUTATION_RUNS_BESIDE_CALLS_MAX = 12
/** @limit Scheduled work: scheduled Actions that run at one time */
export const SCHEDULED_ACTIONS_MAX = 32
/** @limit Scheduled work: scheduled Actions of one Function at one time */
export const SCHEDULED_ACTION_RUNS_MAX = 24
/** Milliseconds after the last call of an application during which scheduled Mutations are few. */
export const BESIDE_CALLS_MILLIS = 200
/** @limit Scheduled work: time for which finished work is listed */
export const HISTORY_MICROS = 7n * 24n * 3_600n * 1_000_000n
/** @limit Scheduled work: pieces of finished work that are listed; the oldest are deleted first */
export const HISTORY_ROWS_MAX = 200_000
