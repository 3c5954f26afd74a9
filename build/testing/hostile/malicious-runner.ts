/**
 * A runner that has been taken over: it greets and loads like any other, and then breaks the
 * protocol in the way that the called Function names. It contains itself in nothing.
 */
import { readSync, writeSync } from 'node:fs'
import { FrameReader, FrameWriter } from '../../../src/runner/frames.ts'
import { Progress } from '../../../src/runner/progress.ts'

const USAGE = [false, false, false, 0, []]
/** The protocol lets a runner claim any time; what it is worth is the server's matter. */
const BOAST = [false, false, false, Number.MAX_SAFE_INTEGER, []]
const RANGE = { table: 't', index: null, equal: [], order: 'asc', limit: 1, next: 'plain' }

const output = new FrameWriter()
const send = (...message: unknown[]) => {
  output.append(JSON.stringify(message))
  write(output.take())
}

function write(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
}

type Lies = Readonly<Record<string, (id: number) => void>>

/** What each does for call `id`; none ends it well. */
export const LIES: Lies = {
  junk: () => write(Buffer.from([5, 0, 0, 0, 1, 2, 3, 4, 5])),
  endlessFrame: () => write(Buffer.from([255, 255, 255, 255, 91])),
  noArray: () => {
    output.append('{"type":"returned"}')
    write(output.take())
  },
  unknownMessage: (id) => send('grant', id),
  otherCall: (id) => send('returned', id + 1_000, null, USAGE),
  negativeCall: () => send('returned', -1, null, USAGE),
  withoutUsage: (id) => send('returned', id, null),
  hugeLog: (id) => {
    send('returned', id, null, [false, false, false, 0, Array(300).fill(['info', 'x', null])])
  },
  longLine: (id) =>
    send('returned', id, null, [false, false, false, 0, [['info', 'x'.repeat(1e4), null]]]),
  greetsAgain: () => {
    send('hello', { landlock: 7, seccomp: true, unprivileged: true, seatbelt: false }, null)
  },
  loadsAgain: () => send('loaded'),
  describesUnasked: (id) => send('description', id, {}),
  unknownOperation: (id) => send('operation', id, 1, ['drop', 't']),
  rangeWithMore: (id) => send('operation', id, 1, ['range', { ...RANGE, as: 'root' }]),
  rangeWithoutTable: (id) => send('operation', id, 1, ['range', { ...RANGE, table: undefined }]),
  endlessLimit: (id) => send('operation', id, 1, ['range', { ...RANGE, limit: 2 ** 60 }]),
  operationOfAnother: (id) => send('operation', id + 1_000, 1, ['get', 'x']),
  exits: () => process.exit(3),
  crashes: () => process.kill(process.pid, 'SIGSEGV'),
  neverReads: (id) => {
    for (let op = 0; ; op++) send('operation', id, op, ['range', RANGE])
  },
}

const GET = ['get', 'x_1']

/** Of a call in step: what only one that runs ahead may say. */
export const LIES_IN_STEP = {
  tellsInStep: (id) => send('told', id, [GET]),
  tellsAtTheEndInStep: (id) => send('returned', id, null, [...USAGE, [GET]]),
  voidsInStep: (id) => send('void', id, USAGE),
} satisfies Lies

/** Of a call that runs ahead, whose operations nobody answers. */
export const LIES_AHEAD = {
  tellsRun: (id) => send('told', id, [GET, ['run', 'mutation', 'f.honest', {}]]),
  tellsFetch: (id) => {
    const request = { url: 'http://a', method: 'GET', headers: [], body: null, redirect: 'follow' }
    send('told', id, [['fetch', 1, request]])
  },
  tellsUsage: (id) => send('told', id, [['usage'], GET]),
  tellsRange: (id) => send('told', id, [['range', RANGE]]),
  tellsNothing: (id) => send('told', id, []),
  tellsNothingAtTheEnd: (id) => send('returned', id, null, [...USAGE, []]),
  tellsRunAtTheEnd: (id) => send('void', id, [...USAGE, [['run', 'query', 'f.honest', {}]]]),
  tellsNoList: (id) => send('told', id, GET),
  tellsOfAnother: (id) => send('told', id + 1_000, [GET]),
  endsTwice: (id) => {
    send('told', id, [GET])
    send('returned', id, 'once', USAGE)
    send('returned', id, 'twice', USAGE)
  },
  endsVoidBehind: (id) => {
    send('told', id, [GET])
    send('returned', id, 'once', USAGE)
    send('void', id, USAGE)
  },
  tellsAtItsSecondEnd: (id) => {
    send('told', id, [GET])
    send('returned', id, 'once', USAGE)
    send('returned', id, 'twice', [...USAGE, [GET]])
  },
  tellsBehindItsEnd: (id) => {
    send('told', id, [GET])
    send('returned', id, 'once', USAGE)
    send('told', id, [GET])
  },
  asksBehindItsEnd: (id) => {
    send('told', id, [GET])
    send('returned', id, 'once', USAGE)
    send('operation', id, 1, GET)
  },
} satisfies Lies

/** More than a call may tell, of which each costs the server and none the runner. */
function tellsMuch(id: number): void {
  const frame = Array.from({ length: 1_000 }, () => GET)
  for (let frames = 0; frames < 200; frames++) send('told', id, frame)
  send('returned', id, 'much', USAGE)
}

/** Ends as it should what it tells of behind the end. */
function tellsLate(id: number): void {
  send('returned', id, 'once', USAGE)
  send('told', id, [GET])
}

/** Ends the first call as it should and then says so again. */
function endTwice(id: number): void {
  send('returned', id, 'once', USAGE)
  send('returned', id, 'twice', USAGE)
}

const EVERY_LIE: Lies = { ...LIES, ...LIES_IN_STEP, ...LIES_AHEAD }

/** Calls that asked for a document, and the result that each gives when it came. */
const asking = new Map<number, unknown>()

/** What it was given stands in its arguments. */
function names(id: number, { result }: { result?: unknown }): void {
  asking.set(id, result)
  send('operation', id, 1, ['get', 'x_1'])
}

function answer(text: string, progress: Progress): void {
  const message = JSON.parse(text) as [string, number, string, ...unknown[]]
  const [type, id, name] = message
  if (type === 'load') send('loaded')
  if (type === 'documents') send('returned', id, asking.get(id), USAGE)
  if (type !== 'invoke') return
  progress.begin(id, 0)
  const lie = EVERY_LIE[name.slice(2)]
  if (lie !== undefined) lie(id)
  else if (name === 'f.tellsMuch') tellsMuch(id)
  else if (name === 'f.tellsLate') tellsLate(id)
  else if (name === 'f.endTwice') endTwice(id)
  else if (name === 'f.names') names(id, message[7] as { result?: unknown })
  else if (name === 'f.honest') send('returned', id, 'honest', USAGE)
  else if (name === 'f.boasts') send('returned', id, null, BOAST)
  progress.end()
}

if (import.meta.main) {
  const progress = new Progress()
  send('hello', { landlock: 0, seccomp: false, unprivileged: true, seatbelt: false }, [])
  const reader = new FrameReader()
  const chunk = Buffer.alloc(65_536)
  for (;;) {
    const length = readSync(0, chunk, 0, chunk.length, null)
    if (length === 0) process.exit(0)
    reader.push(chunk.subarray(0, length), (text) => answer(text, progress))
  }
}
