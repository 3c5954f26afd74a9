/**
 * A runner: the process that executes the Functions of one Release. The server starts it with a
 * socket as a descriptor. It enters its sandbox, then processes frames until its input ends. It
 * reads with blocking calls and never enters an event loop, since only a frame can continue a Query
 * or a Mutation.
 */
import { readSync, writeSync } from 'node:fs'
import { Host, prepareRealm } from './host.ts'
import { makeCpuClock } from './kernel/cpu-clocks.ts'
import { Progress } from './kernel/progress.ts'
import { FRAMES_DESCRIPTOR, FrameReader, FrameWriter } from './protocol/frames.ts'
import {
  type Containment,
  LOADING,
  type LoadLimits,
  type ProbeResult,
  SELF_TEST_FLAG,
  TRIM_FRAME,
} from './protocol/messages.ts'
import { type Rejections, watchRejections } from './rejections.ts'
import { lockDown, restrictAndRestart, type SelfCommand } from './sandbox/containment.ts'
import { landlockProbes, lateProbes, runProbes } from './sandbox/self-tests.ts'

/** Argument of the second start, followed by the version of Landlock in force. */
const CONTAINED = '--contained'

const READ_BYTES = 256 * 1024
const FLUSH_BYTES = 64 * 1024
/**
 * Replies that are this old are sent before the next frame is processed: the server works on the
 * first replies of many calls while the runner makes the last.
 */
const FLUSH_MILLIS = 0.1

/** Runs the runner and never returns. `self` is the command that leads here, without flags. */
export function runRunner(self: SelfCommand, flags: readonly string[]): never {
  const contained = flags.indexOf(CONTAINED)
  if (process.platform === 'linux' && contained === -1) {
    restrictAndRestart({ ...self, arguments: [...self.arguments, ...flags, CONTAINED] })
  }
  const landlock = contained === -1 ? 0 : Number(flags[contained + 1])
  const testsItself = flags.includes(SELF_TEST_FLAG)
  const progress = new Progress()
  const cpuMicros = makeCpuClock()
  const parent = process.ppid
  const early = testsItself ? runProbes(landlockProbes(landlock, parent)) : []
  const containment = lockDown(landlock)
  const probes = testsItself ? [...early, ...runProbes(lateProbes(containment, parent))] : null
  processFrames({ progress, cpuMicros, hello: [containment, probes] })
}

interface Ports {
  readonly progress: Progress
  readonly cpuMicros: () => number
  readonly hello: readonly [Containment, readonly ProbeResult[] | null]
}

function processFrames({ progress, cpuMicros, hello }: Ports): never {
  const output = new FrameWriter()
  output.append(JSON.stringify(['hello', ...hello]))
  let host: Host | null = null
  let flushedAt = 0
  const rejections = startWatching((reason, promise) => host?.rejected(reason, promise))

  function flush(): void {
    if (output.length > 0) writeAll(output.take())
    flushedAt = performance.now()
  }

  /** Flushes large output: a speculative call may write megabytes within one frame. */
  function emit(text: string): void {
    output.append(text)
    if (output.length > FLUSH_BYTES) flush()
  }

  function trim(): void {
    progress.begin(0, 0)
    Bun.gc(true)
    progress.end()
  }

  function onFrame(text: string): void {
    if (text === TRIM_FRAME) {
      trim()
      return
    }
    if (host === null) {
      const [, source, limits] = JSON.parse(text) as ['load', string, LoadLimits]
      progress.begin(LOADING, 0)
      host = new Host({ emit, progress, cpuMicros, rejections }, realm, { source, limits })
      output.append(host.load())
      progress.end()
      return
    }
    if (performance.now() - flushedAt > FLUSH_MILLIS) flush()
    host.process(text)
  }

  // The server learns that the runner has started before the realm is there, which is used later.
  flush()
  const realm = prepareRealm()
  // The server limits its own frames by what a call may read.
  const reader = new FrameReader(Number.POSITIVE_INFINITY)
  const chunk = Buffer.allocUnsafe(READ_BYTES)
  for (;;) {
    flush()
    const length = readSync(FRAMES_DESCRIPTOR, chunk, 0, READ_BYTES, null)
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
  let written = 0
  while (written < bytes.length) {
    written += writeSync(FRAMES_DESCRIPTOR, bytes, written, bytes.length - written)
  }
}
