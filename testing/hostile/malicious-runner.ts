/**
 * A malicious runner: it greets and loads like any other, then violates the protocol in the way
 * that the called Function names. It enters no sandbox.
 */
import { readSync, writeSync } from 'node:fs'
import { Progress } from '../../src/runner/kernel/progress.ts'
import { FRAMES_DESCRIPTOR, FrameReader, FrameWriter } from '../../src/runner/protocol/frames.ts'

const USAGE = [false, false, false, 0, []]
/** The protocol lets a runner report any CPU time; the server must not trust it. */
const MAXIMAL_USAGE = [false, false, false, Number.MAX_SAFE_INTEGER, []]
const RANGE = { table: 't', index: null, equal: [], order: 'asc', limit: 1, next: 'plain' }

const output = new FrameWriter()
const send = (...message: unknown[]) => {
  output.append(JSON.stringify(message))
  write(output.take())
}

function write(bytes: Uint8Array): void {
  let written = 0
  while (written < bytes.length) written += writeSync(FRAMES_DESCRIPTOR, bytes, written)
}

type Breaches = Readonly<Record<string, (id: number) => void>>

/** Violations of the protocol; each is given the ID of its call, and none ends it correctly. */
export const BREACHES: Breaches = {
  junk: () => write(Buffer.from([5, 0, 0, 0, 1, 2, 3, 4, 5])),
  endlessFrame: () => write(Buffer.from([255, 255, 255, 255, 91])),
  noArray: () => {
    output.append('{"type":"returned"}')
    write(output.take())
  },
  unknownMessage: (id) => send('grant', id),
  endsOtherCall: (id) => send('returned', id + 1_000, null, USAGE),
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

/** Violations by a synchronous call: frames that only a speculative call may send. */
export const SYNCHRONOUS_BREACHES = {
  pipelinesSynchronously: (id) => send('pipelined', id, [GET]),
  pipelinesAtTheEndSynchronously: (id) => send('returned', id, null, [...USAGE, [GET]]),
  misspeculatesSynchronously: (id) => send('misspeculated', id, 'failed', USAGE),
  looksWithoutPlaceholders: (id) => send('misspeculated', id, 'read', USAGE),
  keepsWithoutPlaceholders: (id) => send('misspeculated', id, 'kept', USAGE),
  misspeculatesForNothing: (id) => send('misspeculated', id, 'luck', USAGE),
} satisfies Breaches

/** Violations by a speculative call, whose operations are never answered. */
export const SPECULATIVE_BREACHES = {
  pipelinesRun: (id) => send('pipelined', id, [GET, ['run', 'mutation', 'f.honest', {}]]),
  pipelinesFetch: (id) => {
    const request = { url: 'http://a', method: 'GET', headers: [], body: null, redirect: 'follow' }
    send('pipelined', id, [['fetch', 1, request]])
  },
  pipelinesUsage: (id) => send('pipelined', id, [['usage'], GET]),
  pipelinesNothing: (id) => send('pipelined', id, []),
  pipelinesNothingAtTheEnd: (id) => send('returned', id, null, [...USAGE, []]),
  pipelinesRunAtTheEnd: (id) =>
    send('misspeculated', id, 'failed', [...USAGE, [['run', 'query', 'f.honest', {}]]]),
  pipelinesNoList: (id) => send('pipelined', id, GET),
  pipelinesForAnother: (id) => send('pipelined', id + 1_000, [GET]),
  endsTwice: (id) => {
    send('pipelined', id, [GET])
    send('returned', id, 'once', USAGE)
    send('returned', id, 'twice', USAGE)
  },
  misspeculatesAfterItsEnd: (id) => {
    send('pipelined', id, [GET])
    send('returned', id, 'once', USAGE)
    send('misspeculated', id, 'failed', USAGE)
  },
  pipelinesAtItsSecondEnd: (id) => {
    send('pipelined', id, [GET])
    send('returned', id, 'once', USAGE)
    send('returned', id, 'twice', [...USAGE, [GET]])
  },
  pipelinesAfterItsEnd: (id) => {
    send('pipelined', id, [GET])
    send('returned', id, 'once', USAGE)
    send('pipelined', id, [GET])
  },
  sendsAfterItsEnd: (id) => {
    send('pipelined', id, [GET])
    send('returned', id, 'once', USAGE)
    send('operation', id, 1, GET)
  },
} satisfies Breaches

/** Pipelines more operations than a call may: each costs the server, and none the runner. */
function pipelinesMuch(id: number): void {
  const frame = Array.from({ length: 1_000 }, () => GET)
  for (let frames = 0; frames < 200; frames++) send('pipelined', id, frame)
  send('returned', id, 'much', USAGE)
}

/** Ends a call correctly and pipelines an operation after that. */
function pipelinesLate(id: number): void {
  send('returned', id, 'once', USAGE)
  send('pipelined', id, [GET])
}

/** Ends a call correctly, twice. */
function endTwice(id: number): void {
  send('returned', id, 'once', USAGE)
  send('returned', id, 'twice', USAGE)
}

const ALL_BREACHES: Breaches = { ...BREACHES, ...SYNCHRONOUS_BREACHES, ...SPECULATIVE_BREACHES }

/** Calls that read a document, and the result that each returns when it comes. */
const readingCalls = new Map<number, unknown>()

/** Reads a document and returns the result that its arguments hold. */
function returnAfterRead(id: number, { result }: { result?: unknown }): void {
  readingCalls.set(id, result)
  send('operation', id, 1, ['get', 'x_1'])
}

function processFrame(text: string, progress: Progress): void {
  const message = JSON.parse(text) as [string, number, string, ...unknown[]]
  const [type, id, name] = message
  if (type === 'load') send('loaded')
  if (type === 'documents') send('returned', id, readingCalls.get(id), USAGE)
  if (type !== 'invoke') return
  progress.begin(id, 0)
  const breach = ALL_BREACHES[name.slice(2)]
  if (breach !== undefined) breach(id)
  else if (name === 'f.pipelinesMuch') pipelinesMuch(id)
  else if (name === 'f.pipelinesLate') pipelinesLate(id)
  else if (name === 'f.endTwice') endTwice(id)
  else if (name === 'f.names') returnAfterRead(id, message[7] as { result?: unknown })
  else if (name === 'f.honest') send('returned', id, 'honest', USAGE)
  else if (name === 'f.claimsMuchCpu') send('returned', id, null, MAXIMAL_USAGE)
  progress.end()
}

if (import.meta.main) {
  const progress = new Progress()
  send('hello', { landlock: 0, seccomp: false, unprivileged: true, seatbelt: false }, [])
  const reader = new FrameReader()
  const chunk = Buffer.alloc(65_536)
  for (;;) {
    const length = readSync(FRAMES_DESCRIPTOR, chunk, 0, chunk.length, null)
    if (length === 0) process.exit(0)
    reader.push(chunk.subarray(0, length), (text) => processFrame(text, progress))
  }
}
