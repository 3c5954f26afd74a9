/**
 * A runner: the process that executes the Functions of one Release. It is started by the server
 * with the pipes as descriptors 0 and 1, contains itself, and then answers frames until its input
 * ends. It reads with blocking calls and never waits in an event loop, as nothing but a frame can
 * continue a Query or a Mutation.
 */
import { readSync, writeSync } from 'node:fs'
import { lockDown, restrictAndRestart, type SelfCommand } from './containment.ts'
import { makeCpuClock } from './cpu-clocks.ts'
import { FrameReader, FrameWriter } from './frames.ts'
import { Host } from './host.ts'
import {
  type Containment,
  LOADING,
  type LoadLimits,
  type ProbeResult,
  SELF_TEST_FLAG,
} from './messages.ts'
import { Progress } from './progress.ts'
import { type Rejections, watchRejections } from './rejections.ts'
import { landlockProbes, lateProbes, runProbes } from './self-tests.ts'

/** Added by the first start; the version of Landlock in force follows it. */
const CONTAINED = '--contained'

const READ_BYTES = 256 * 1024
const FLUSH_BYTES = 64 * 1024
/**
 * A finished answer does not wait longer than this for the next frame's work to begin: the server
 * works on the first answers of many calls while the last are still made.
 */
const FLUSH_MILLIS = 0.1

/** Never returns. `self` leads to this function from the program's start, without flags. */
export function runRunner(self: SelfCommand, flags: readonly string[]): never {
  const at = flags.indexOf(CONTAINED)
  if (process.platform === 'linux' && at === -1) {
    restrictAndRestart({ ...self, arguments: [...self.arguments, ...flags, CONTAINED] })
  }
  const landlock = at === -1 ? 0 : Number(flags[at + 1])
  const testsItself = flags.includes(SELF_TEST_FLAG)
  const progress = new Progress()
  const cpuMicros = makeCpuClock()
  const parent = process.ppid
  const early = testsItself ? runProbes(landlockProbes(landlock, parent)) : []
  const containment = lockDown(landlock)
  const probes = testsItself ? [...early, ...runProbes(lateProbes(containment, parent))] : null
  answer({ progress, cpuMicros, hello: [containment, probes] })
}

interface Ports {
  readonly progress: Progress
  readonly cpuMicros: () => number
  readonly hello: readonly [Containment, readonly ProbeResult[] | null]
}

function answer({ progress, cpuMicros, hello }: Ports): never {
  const output = new FrameWriter()
  output.append(JSON.stringify(['hello', ...hello]))
  let host: Host | null = null
  let flushedAt = 0
  const rejections = startWatching((reason, promise) => host?.rejected(reason, promise))

  function flush(): void {
    if (output.length > 0) writeAll(output.take())
    flushedAt = performance.now()
  }

  /** A call that runs ahead may write megabytes within one frame. */
  function emit(text: string): void {
    output.append(text)
    if (output.length > FLUSH_BYTES) flush()
  }

  function onFrame(text: string): void {
    if (host === null) {
      const [, source, limits] = JSON.parse(text) as ['load', string, LoadLimits]
      progress.begin(LOADING, 0)
      host = new Host({ emit, progress, cpuMicros, rejections }, source, limits)
      output.append(host.load())
      progress.end()
      return
    }
    if (performance.now() - flushedAt > FLUSH_MILLIS) flush()
    host.work(text)
  }

  // The server bounds what it sends by what a call may read.
  const reader = new FrameReader(Number.POSITIVE_INFINITY)
  const chunk = Buffer.allocUnsafe(READ_BYTES)
  for (;;) {
    flush()
    const length = readSync(0, chunk, 0, READ_BYTES, null)
    if (length === 0) process.exit(0)
    reader.push(chunk.subarray(0, length), onFrame)
  }
}

/** Ends the process with one line for the server's log if the runtime lacks what is needed. */
function startWatching(listener: Parameters<typeof watchRejections>[0]): Rejections {
  try {
    return watchRejections(listener)
  } catch (error) {
    writeSync(2, `${(error as Error).message}\n`)
    process.exit(1)
  }
}

function writeAll(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at, bytes.length - at)
}
