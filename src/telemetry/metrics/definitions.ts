/**
 * The metrics of this server with their descriptions. Names are fixed and have no labels, so their
 * number is bounded regardless of what is published or called (contract/management.md, Health,
 * metrics, logs). The log has the usage of each Function (`function.usage`) and each Application
 * Key (`credential.usage`).
 *
 * A name ends with its unit: Micros, Bytes or Percent. A name without a unit is a count.
 */

/** Counters. They start at 0 with the process and only grow. */
export const COUNTERS = {
  queriesSucceeded: 'Queries that succeeded, cached results included',
  queriesRefused: 'Queries that failed because of the caller, or with a declared error',
  queriesFailed: 'Queries that failed because of the code or the server',
  queriesUnavailable: 'Queries that ended busy, unavailable or past their deadline',
  mutationsSucceeded: 'Mutations that succeeded, repeated calls included',
  mutationsReplayed: 'Mutations whose result came from the record of an earlier call',
  mutationsRefused: 'Mutations that failed because of the caller, or with a declared error',
  mutationsFailed: 'Mutations that failed because of the code or the server',
  mutationsUnavailable: 'Mutations that ended busy, unavailable, uncertain or past their deadline',
  writeConflicts: 'Mutations that failed with WRITE_CONFLICT',
  actionsSucceeded: 'Actions that succeeded',
  actionsRefused: 'Actions that failed because of the caller, or with a declared error',
  actionsFailed: 'Actions that failed because of the code or the server',
  actionsUnavailable: 'Actions that ended busy, unavailable or past their deadline',

  queryCacheHits: 'Lookups in the query cache that found a valid result',
  queryCacheMisses: 'Lookups in the query cache that found no valid result',
  queryCacheEvictions: 'Valid results that were evicted from the query cache',

  scheduledSucceeded: 'Scheduled runs that succeeded',
  scheduledFailed: 'Scheduled runs that failed, those that are attempted again included',
  migrationDocuments: 'Documents that migrations passed to their code and stored the result of',
  migrationDocumentsChanged: 'Documents that migrations changed',
  subscriptionRefreshes: 'Runs of watched Queries, each for all its subscriptions',

  realtimeConnectionsOpened: 'Realtime connections that were opened',
  realtimeMessagesReceived: 'Messages from Realtime clients',
  realtimeStatesSent: 'States that were sent to Realtime clients, as a whole or as patches',
  realtimePatchesSent: 'States that were sent as patches of live lists',
  realtimePatchBytes: 'Bytes of the patches that were sent',
  realtimeResyncs: 'States that a Realtime client must resynchronize to',
  realtimeMemoryRejections: 'Subscriptions that ended for lack of memory',
  realtimeReceivedBytes: 'Bytes of messages from Realtime clients, decompressed',
  realtimeSentBytes: 'Bytes of messages to Realtime clients before compression',

  commits: 'Mutations that became durable, including those that wrote nothing',
  commitBatches: 'Commit batches; each has the commits that were ready at the same time',
  commitBatchesFailed: 'Commit batches that failed or whose outcome is unknown',
  commitConflicts: 'Attempts of Mutations that conflicted with another commit and were retried',

  functionRuns: 'Runs of Functions by runners; cached results need none',
  functionCpuMicros: 'CPU time that runners report for runs, each at most its elapsed time',
  memoryCollections: 'Collections of garbage because the server was idle or above its target',
  runnersStarted: 'Runner processes that were started',
  runnersStopped: 'Runner processes that were stopped because they were not needed',
  runnersKilledForCpu: 'Runner processes that were killed because of their CPU time',
  runnersKilledForMemory: 'Runner processes that ended because of their memory',
  runnersBroken: 'Runner processes that crashed, violated the protocol or did not respond',
  runnerCpuMicros: 'CPU time of all runners, as measured by the kernel',

  fileContentsStored: 'Contents of files that were stored, also where they existed before',
  fileContentsDropped:
    'Uploads of contents that were not stored: interrupted, rejected or repeated',
  fileStoredBytes: 'Bytes of contents that were stored',

  documentConnectionsLost: 'Connections to the document database that were lost',

  managementRequestsSucceeded: 'Requests of the management origin with a status below 400',
  managementRequestsRefused: 'Requests of the management origin with a status of 400 to 499',
  managementRequestsFailed: 'Requests of the management origin with a status of 500 or more',
  managementAuthenticationFailures: 'Requests of the management origin without valid credentials',
  managementRateLimited: 'Requests of the management origin beyond a rate limit',
  applicationRequestsSucceeded: 'Requests of the application origin with a status below 400',
  applicationRequestsRefused:
    'Requests of the application origin with a status of 400 to 499, or disconnected callers',
  applicationRequestsFailed: 'Requests of the application origin with a status of 500 or more',
  applicationAuthenticationFailures: 'Requests of the application origin without valid credentials',
  applicationRateLimited: 'Requests of the application origin beyond a rate limit',

  deliveriesAccepted: 'Requests of other services that were stored as scheduled work',
  deliveriesRepeated: 'Requests of other services whose event was stored before',
  deliveryWaitsExpired: 'Requests of other services whose handler did not end in 10 seconds',

  uploadedBytes: 'Bytes of files that uploads at the application origin stored',
  downloadedBytes: 'Bytes of files in responses to downloads at the application origin',

  backupsCompleted: 'Whole backups that were completed',
  backupFailures: 'Whole backups that failed',
  backupRehearsals: 'Backups that were restored in a rehearsal, and compared',
  backupRehearsalFailures: 'Rehearsals of a restore that failed',
  backupBytes: 'Bytes that backups wrote, encrypted',

  certificatesOrdered: 'Certificates that an authority issued to the server by ACME',
  certificateOrderFailures: 'Orders of a certificate by ACME that failed',

  logRecordsDropped: 'Log records that could not be written',
  logRecordsStored: 'Records that the log of the Environment received',
  spansExported: 'Spans of traces that the receiver of traces accepted',
  spansDropped: 'Spans that were not exported: the receiver did not take them in time',
  processCpuMicros: 'CPU time of the server process',
} as const

/** Gauges: current values. */
export const GAUGES = {
  backupBehindMicros: 'Age of the oldest commit that no backup has; 0 if there is none',
  backupSequence: 'Newest commit that can be restored from the target of backups',
  backupRehearsalAgeMicros: 'Age of the newest rehearsal of a restore that passed',
  backupFilesSequence: 'Newest commit up to which the bytes of all files can be restored too',
  certificateRemainingMicros: 'Time until the certificate of the server ends; 0 if it has ended',
  queryCacheEntries: 'Results in the query cache',
  queryCacheCharacters: 'Characters of cached keys and results, and bytes of their read sets',
  queryCacheHitPercent: 'Hit rate of the query cache since the start',
  invocationsInFlight: 'Calls that are admitted and not finished',
  actionsRunning: 'Running Actions, including those that Actions called',
  actionsWaiting: 'Actions that wait for a permit',
  realtimeConnections: 'Open Realtime connections',
  realtimeMemoryBytes: 'Memory of subscriptions: arguments, read sets, results',
  scheduledUnfinished: 'Scheduled work that is pending or running',
  scheduledRunning: 'Scheduled runs in progress',
  migrationsRunning: 'Migrations that run, or wait for another one',
  migrationsBlocked: 'Migrations that a document stopped',
  scheduledDue: 'Scheduled work that is due and waits for a run; beyond 2,048 not all is counted',
  deliveryCharacters: 'Characters of the deliveries that are unfinished or listed',
  deliveriesWaiting: 'Requests of other services that wait for the end of their handler',
  subscriptions: 'Subscriptions to Queries',
  watchedQueries: 'Distinct Queries that subscriptions watch',
  files: 'Stored files; `svc buckets list` has those of each bucket',
  fileBytes: 'Bytes of all stored files',
  fileUploadsInFlight: 'Contents of files that are being received',
  filesDamaged: 'Contents that the background check found missing or damaged',
  durableSequence: 'Sequence of the newest durable commit',
  releasesLoaded: 'Releases that have a runner or wait for one',
  transactionRunners: 'Runners of Queries and Mutations',
  actionRunners: 'Runners of Actions',
  runnerCallsInFlight: 'Calls that a runner processes or that wait for one',
  runnerResidentBytes: 'Memory of all runners',
  largestFunctionGrowthBytes: 'Largest growth of a runner that was observed in one run',
  managementRequestsInFlight: 'Requests of the management origin that are in flight',
  applicationRequestsInFlight: 'Requests of the application origin that are in flight',
  logRecordsQueued: 'Records that wait to be written to the log of the Environment',
  logFollowers: 'Open streams that follow the log of the Environment',
  spansQueued: 'Spans that wait for their export or are being exported',
  memoryTargetBytes: 'Memory that the server aims at with all its processes',
  processResidentBytes: 'Memory of the server process',
  processHeapBytes: 'JavaScript heap of the server process',
} as const

/** Histograms of durations, in microseconds. */
export const HISTOGRAMS = {
  queryDurationMicros: 'Duration of Queries that ran; cached results are excluded',
  mutationDurationMicros: 'Duration of Mutations until they were durable or failed',
  actionDurationMicros: 'Duration of Actions',
  callRequestDurationMicros:
    'Duration of requests that call a Function until their response is ready, cached or failed',
  uploadRequestDurationMicros: 'Duration of uploads of files until they are stored or failed',
  downloadRequestDurationMicros: 'Duration of downloads of files until their response starts',
  developmentRequestDurationMicros:
    'Duration of requests with development keys, which change Workspaces',
  hookRequestDurationMicros:
    'Duration of requests of other services until they are stored or rejected',
  endpointRequestDurationMicros:
    'Duration of requests to endpoints of http.ts until their response is ready or failed',
  managementReadDurationMicros: 'Duration of GET requests of the management origin',
  managementChangeDurationMicros: 'Duration of all other requests of the management origin',
  scheduledLatenessMicros: 'Time from the due time of scheduled work to the start of its run',
  commitDurationMicros: 'Duration of commit batches until they were durable',
  eventLoopDelayMicros: 'Delay of a 50 ms timer in the server process',
} as const

/** Upper bounds of the buckets of every histogram, in microseconds. */
export const BOUNDS = [
  100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
  2_500_000, 5_000_000, 10_000_000, 60_000_000, 600_000_000,
] as const

export type CounterName = keyof typeof COUNTERS
export type GaugeName = keyof typeof GAUGES
export type HistogramName = keyof typeof HISTOGRAMS
