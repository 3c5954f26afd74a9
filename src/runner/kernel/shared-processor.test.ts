import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SharedProcessor } from './shared-processor.ts'

const processors = (pid: number | 'self') =>
  /^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!

test.runIf(process.platform === 'linux')(
  'a thread is kept on the processor of the caller, and then may use all again',
  async () => {
    const child = Bun.spawn(['sleep', '600'])
    try {
      const before = processors(child.pid)
      const processor = new SharedProcessor(child.pid)
      processor.share(false)
      expect(processors(child.pid)).toBe(before)
      processor.share(true)
      expect(processors(child.pid)).toMatch(/^\d+$/)
      processor.share(false)
      expect(processors(child.pid)).toBe(before)
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
  },
)

test.runIf(process.platform === 'linux')('a thread that has ended is left alone', async () => {
  const child = Bun.spawn(['true'])
  await child.exited
  const processor = new SharedProcessor(child.pid)
  for (const shares of [true, false, true]) processor.share(shares)
})
