import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { SharedProcessor } from './shared-processor.ts'

const PROCESSORS = /^Cpus_allowed_list:\t(.*)$/m

/** Returns the processors that each thread may use, that of the process itself first. */
function processors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      return [PROCESSORS.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))![1]!]
    } catch {
      // The thread has ended in the meantime.
      return []
    }
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
      let threads = 1
      // The runtime may start further threads at any time.
      const others = () => {
        processor.share(true, ++threads)
        return [...new Set(processors(child.pid).slice(1))]
      }
      await expect.poll(others).toEqual([all])
      expect(processors(child.pid)[0]).toMatch(/^\d+$/)
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
