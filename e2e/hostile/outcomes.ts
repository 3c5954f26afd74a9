/** The outcome of each attempt. A Function without a row, or a row without one, fails the test. */

/** `stopped`: the attempt found nothing. `held`: see HELD. Otherwise one of the error codes. */
export type Outcome = 'stopped' | 'held' | Code | readonly Code[]
type Code = 'FUNCTION_FAILED' | 'LIMIT_EXCEEDED' | 'RESULT_INVALID' | 'DEADLINE_EXCEEDED'

/** The outcomes of attempts that wait for the store: a busy machine meets the deadline first. */
const LIMIT_OR_DEADLINE: readonly Code[] = ['LIMIT_EXCEEDED', 'DEADLINE_EXCEEDED']

export const OUTCOMES: Readonly<Record<string, Readonly<Record<string, Outcome>>>> = {
  actions: {
    floodsTimers: 'FUNCTION_FAILED',
    multipliesTimers: 'FUNCTION_FAILED',
    leavesIntervals: 'stopped',
    leavesRequests: 'stopped',
    fetchesLoopback: 'stopped',
    fetchesNumbers: 'stopped',
    fetchesMetadata: 'stopped',
    fetchesElsewhere: 'stopped',
    floodsRequests: 'LIMIT_EXCEEDED',
    readsSecrets: 'stopped',
    keepsObjects: 'LIMIT_EXCEEDED',
  },
  language: {
    evaluates: 'stopped',
    constructsFunction: 'stopped',
    constructsGenerators: 'stopped',
    climbsFromCtx: 'stopped',
    climbsFromArguments: 'stopped',
    climbsFromErrors: 'stopped',
    overflowsTheHost: 'stopped',
    preparesStackTraces: 'stopped',
    looksAtCallers: 'stopped',
    climbsFromThenables: 'stopped',
    poisonsObjects: 'stopped',
    poisonsByJson: 'stopped',
    poisonsArrays: 'FUNCTION_FAILED',
    findsPoison: 'stopped',
    poisonsArraysForGood: 'FUNCTION_FAILED',
    findsNoPoison: 'stopped',
    poisonsPromises: 'stopped',
    poisonsIterators: 'stopped',
    readsMatches: 'stopped',
    leavesGlobals: 'stopped',
    answersAProxy: 'held',
  },
  host: {
    findsProcess: 'stopped',
    bindsProcess: 'stopped',
    findsBun: 'stopped',
    opensLibraries: 'stopped',
    requires: 'stopped',
    findsEngineShell: 'stopped',
    makesRealms: 'stopped',
    spawns: 'stopped',
    forks: 'stopped',
    opensSockets: 'stopped',
    fetches: 'stopped',
    readsEnvironment: 'stopped',
    writesFiles: 'stopped',
    opensDatabases: 'stopped',
    sharesMemory: 'stopped',
    compilesWasm: 'stopped',
    watchesMemory: 'stopped',
    timesItself: 'stopped',
    usesAnotherCtx: 'stopped',
  },
  exhaustion: {
    loops: 'LIMIT_EXCEEDED',
    floodsMicrotasks: 'LIMIT_EXCEEDED',
    catchesEverything: 'LIMIT_EXCEEDED',
    recurses: 'FUNCTION_FAILED',
    recursesNatively: 'FUNCTION_FAILED',
    sortsForever: 'LIMIT_EXCEEDED',
    matchesForever: 'LIMIT_EXCEEDED',
    multipliesForever: 'LIMIT_EXCEEDED',
    answersForever: 'LIMIT_EXCEEDED',
    resolvesForever: 'LIMIT_EXCEEDED',
    enumeratesForever: 'LIMIT_EXCEEDED',
    waitsForever: 'FUNCTION_FAILED',
    searchesForever: 'LIMIT_EXCEEDED',
  },
  memory: {
    keepsObjects: 'LIMIT_EXCEEDED',
    keepsBytes: 'LIMIT_EXCEEDED',
    keepsStrings: 'LIMIT_EXCEEDED',
    keepsAGiantString: 'FUNCTION_FAILED',
    keepsEntries: 'LIMIT_EXCEEDED',
    fillsArrays: 'LIMIT_EXCEEDED',
    nestsPromises: 'LIMIT_EXCEEDED',
    spreadsForever: 'LIMIT_EXCEEDED',
    keepsFormats: 'LIMIT_EXCEEDED',
    keepsNumbers: 'LIMIT_EXCEEDED',
    keepsStacks: 'LIMIT_EXCEEDED',
  },
  floods: {
    floodsOperations: 'LIMIT_EXCEEDED',
    asksForever: LIMIT_OR_DEADLINE,
    scansForever: LIMIT_OR_DEADLINE,
    sendsAGiant: 'FUNCTION_FAILED',
    floodsTheLog: 'stopped',
    logsAGiant: 'stopped',
    throwsAGiant: 'FUNCTION_FAILED',
    throwsAMine: 'FUNCTION_FAILED',
    answersAGiant: 'LIMIT_EXCEEDED',
    answersTooManyItems: 'FUNCTION_FAILED',
    answersTooDeep: 'FUNCTION_FAILED',
    answersACircle: 'FUNCTION_FAILED',
    insertsForever: LIMIT_OR_DEADLINE,
    leavesWrites: 'FUNCTION_FAILED',
  },
  forgeries: {
    forgesMarks: 'held',
    forgesFrames: 'held',
    forgesIds: 'RESULT_INVALID',
    forgesTypes: 'RESULT_INVALID',
    forgesCodes: 'FUNCTION_FAILED',
    forgesFaults: 'FUNCTION_FAILED',
    writesInAQuery: 'stopped',
    makesItsOwnDatabase: 'stopped',
    forgesSystemFields: 'stopped',
    namesOtherTables: 'stopped',
    injectsIds: 'stopped',
    sendsLongIds: 'stopped',
  },
}

/**
 * Attempts that only the long run makes: each uses up a bound, for up to ten seconds, that another
 * attempt reaches in the same way.
 */
export const ONLY_LONG: readonly string[] = [
  'actions.floodsRequests',
  'exhaustion.catchesEverything',
  'exhaustion.sortsForever',
  'exhaustion.multipliesForever',
  'exhaustion.answersForever',
  'exhaustion.resolvesForever',
  'floods.asksForever',
  'floods.insertsForever',
]

const text = (value: string) => ({ type: 'string', value })

/** Results of the attempts that are `held`: the values that they forge are returned as data. */
export const HELD: Readonly<Record<string, unknown>> = {
  answersAProxy: { type: 'object', value: [{ key: 'escaped', value: { type: 'null' } }] },
  forgesMarks: {
    type: 'object',
    value: [
      { key: '$$', value: { type: 'object', value: [{ key: '$i', value: text('x') }] } },
      { key: 'bytes', value: { type: 'object', value: [{ key: '$b', value: text('?') }] } },
      {
        key: 'id',
        value: {
          type: 'object',
          value: [{ key: '$d', value: text('messages_01ARZ3NDEKTSV4RRFFQ69G5FAV') }],
        },
      },
    ],
  },
  forgesFrames: text('\u0005\u0000\u0000\u0000["returned",1,"forged",[false,false,false,0,[]]]'),
}
