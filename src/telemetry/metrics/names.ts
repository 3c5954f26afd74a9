/**
 * Every figure that this server counts, once, with what it is. Names are fixed and carry no label,
 * so their number is bounded whatever is published or called (Document 1, Health, metrics, logs):
 * what a Function of its own used is in the log, as `function.usage`, and what an Application Key
 * was used for, as `credential.usage`.
 *
 * A name ends with its unit: Micros, Bytes or Percent; without one it is a number of things.
 */

/** They only grow, from 0 at the start of the process. */
export const COUNTERS = {
  queriesSucceeded: 'Queries that were answered, kept results included',
  queriesRefused: 'Queries that failed through the caller, or with a declared error',
  queriesFailed: 'Queries that failed through the code or the server',
  queriesUnavailable: 'Queries that ended busy, unavailable or past their deadline',
  mutationsSucceeded: 'Mutations that were answered, repeats included',
  mutationsReplayed: 'Mutations that were answered from the record of an earlier one',
  mutationsRefused: 'Mutations that failed through the caller, or with a declared error',
  mutationsFailed: 'Mutations that failed through the code or the server',
  mutationsUnavailable: 'Mutations that ended busy, unavailable, uncertain or past their deadline',
  writeConflicts: 'Mutations that were answered with WRITE_CONFLICT',
  actionsSucceeded: 'Actions that were answered',
  actionsRefused: 'Actions that failed through the caller, or with a declared error',
  actionsFailed: 'Actions that failed through the code or the server',
  actionsUnavailable: 'Actions that ended busy, unavailable or past their deadline',

  queryCacheHits: 'Look-ups of a Query that found a result that holds',
  queryCacheMisses: 'Look-ups of a Query that found none',
  queryCacheEvictions: 'Results that held and made room for others',

  commits: 'Mutations that became durable, those that wrote nothing included',
  commitBatches: 'Durable transactions; each holds the commits that were ready together',
  commitBatchesFailed: 'Durable transactions that failed or whose outcome is unknown',
  commitConflicts: 'Attempts of Mutations that lost to another commit and ran again',

  functionRuns: 'Runs of Functions by a runner; kept results need none',
  functionCpuMicros: 'Time of the CPU that runs claimed, each at most for the time that it took',
  runnersStarted: 'Runner processes that were started',
  runnersStopped: 'Runner processes that were no longer needed',
  runnersKilledForCpu: 'Runner processes that were killed over the CPU that they took',
  runnersKilledForMemory: 'Runner processes that ended over the memory that they took',
  runnersBroken: 'Runner processes that crashed, broke their protocol or never answered',
  runnerCpuMicros: 'Time of the CPU of all runners, as the kernel counts it',

  documentConnectionsLost: 'Connections to the document database that were lost',

  managementRequestsSucceeded: 'Requests of the management origin with an answer below 400',
  managementRequestsRefused: 'Requests of the management origin with an answer of 400 to 499',
  managementRequestsFailed: 'Requests of the management origin with an answer of 500 or more',
  managementAuthenticationFailures: 'Requests of the management origin without good credentials',
  managementRateLimited: 'Requests of the management origin beyond a rate limit',
  applicationRequestsSucceeded: 'Requests of the application origin with an answer below 400',
  applicationRequestsRefused:
    'Requests of the application origin with an answer of 400 to 499, or whose caller left',
  applicationRequestsFailed: 'Requests of the application origin with an answer of 500 or more',
  applicationAuthenticationFailures: 'Requests of the application origin without good credentials',
  applicationRateLimited: 'Requests of the application origin beyond a rate limit',

  logRecordsDropped: 'Log records that could not be written',
  processCpuMicros: 'Time of the CPU of the server process',
} as const

/** What holds at the moment. */
export const GAUGES = {
  queryCacheEntries: 'Results that are kept',
  queryCacheCharacters: 'Characters of kept keys and results, and bytes of their read sets',
  queryCacheHitPercent: 'Hits among the look-ups since the start',
  invocationsInFlight: 'Calls that are admitted and not answered',
  actionsRunning: 'Actions that run, those that Actions called included',
  actionsWaiting: 'Actions that wait until they may run',
  durableSequence: 'The newest durable commit',
  releasesLoaded: 'Releases that have a runner or wait for one',
  transactionRunners: 'Runners of Queries and Mutations',
  actionRunners: 'Runners of Actions',
  runnerCallsInFlight: 'Calls that a runner works on or that wait for one',
  runnerResidentBytes: 'Memory of all runners',
  largestFunctionGrowthBytes: 'The most by which one run was seen to grow its runner',
  managementRequestsInFlight: 'Requests of the management origin that are not answered',
  applicationRequestsInFlight: 'Requests of the application origin that are not answered',
  processResidentBytes: 'Memory of the server process',
  processHeapBytes: 'Memory of the server process that JavaScript uses',
} as const

/** Times, in microseconds. */
export const HISTOGRAMS = {
  queryDurationMicros: 'Queries that were run, until their answer; kept results are not in it',
  mutationDurationMicros: 'Mutations, until they were durable or failed',
  actionDurationMicros: 'Actions, until their answer',
  commitDurationMicros: 'Durable transactions, until they were on the disk',
  eventLoopDelayMicros: 'By how much a timer of 50 ms came late in the server process',
} as const

/** Upper bounds of every histogram, in microseconds. */
export const BOUNDS = [
  ...[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000],
  ...[1_000_000, 2_500_000, 5_000_000, 10_000_000, 60_000_000, 600_000_000],
] as const

export type CounterName = keyof typeof COUNTERS
export type GaugeName = keyof typeof GAUGES
export type HistogramName = keyof typeof HISTOGRAMS
