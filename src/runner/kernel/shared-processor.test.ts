import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { SharedProcessor } from './shared-processor.ts'

const PROCESSORS = /^Cpus_allowed_list:\t(.*)$/m

/** Returns the processors that each thread may use, that of the process itself first. */
function processors(pid: number): string[] {
  const threads = readdirSync(`/proc/${pid}/task`).map(Number)
  return threads.map((thread) => {
    return PROCESSORS.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))![1]!
  })
}

/** Starts a thread once it receives something, and reports that. */
const STARTER = `
  process.stdin.once('data', () => {
    const worker = new Worker('data:text/javascript,postMessage(1)')
    worker.onmessage = () => console.log('started')
  })
  console.log('ready')`

describe.runIf(process.platform === 'linux')('on Linux', () => {
  test('one thread is kept on the processor of the caller until it may use all again', async () => {
    const child = Bun.spawn(['sleep', '600'])
    try {
      const before = processors(child.pid)
      const processor = new SharedProcessor(child.pid)
      processor.share(false, 1)
      expect(processors(child.pid)).toEqual(before)
      processor.share(true, 1)
      expect(processors(child.pid)).toEqual([expect.stringMatching(/^\d+$/)])
      processor.share(false, 1)
      expect(processors(child.pid)).toEqual(before)
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
  })

  test('threads that a kept one started may use all processors', async () => {
    const child = Bun.spawn([process.execPath, '-e', STARTER], { stdin: 'pipe', stdout: 'pipe' })
    try {
      const output = child.stdout.getReader()
      await output.read()
      const [all] = processors(child.pid)
      const processor = new SharedProcessor(child.pid)
      processor.share(true, 1)
      child.stdin.write('start')
      child.stdin.flush()
      await output.read()
      processor.share(true, 2)
      const [kept, ...others] = processors(child.pid)
      expect(kept).toMatch(/^\d+$/)
      expect(new Set(others)).toEqual(new Set([all]))
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
  })

  test('a process that has ended is left alone', async () => {
    const child = Bun.spawn(['true'])
    await child.exited
    const processor = new SharedProcessor(child.pid)
    for (const shares of [true, false, true]) processor.share(shares, 1)
  })
})
