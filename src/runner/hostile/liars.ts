/**
 * A runner that has been taken over: it greets and loads like any other, and then breaks the
 * protocol in the way that the called Function names. It contains itself in nothing.
 */
import { readSync, writeSync } from 'node:fs'
import { FrameReader, FrameWriter } from '../frames.ts'
import { Progress } from '../progress.ts'

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

/** What each does for call `id`; none ends it well. */
export const LIES: Readonly<Record<string, (id: number) => void>> = {
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
  longTable: (id) => send('operation', id, 1, ['insert', 't'.repeat(1e5), {}]),
  operationOfAnother: (id) => send('operation', id + 1_000, 1, ['get', 'x']),
  exits: () => process.exit(3),
  crashes: () => process.kill(process.pid, 'SIGSEGV'),
  neverReads: (id) => {
    for (let op = 0; ; op++) send('operation', id, op, ['range', RANGE])
  },
}

/** Ends the first call as it should and then says so again. */
function endTwice(id: number): void {
  send('returned', id, 'once', USAGE)
  send('returned', id, 'twice', USAGE)
}

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
  const lie = LIES[name.slice(2)]
  if (lie !== undefined) lie(id)
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
