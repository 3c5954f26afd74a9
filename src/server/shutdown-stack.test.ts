import { expect, test } from 'vitest'
import { memoryLog } from '../telemetry/log.ts'
import { ShutdownStack } from './shutdown-stack.ts'

const failing = (message: string) => () => {
  throw new Error(message)
}

test('resources are closed in reverse order, even after failures', async () => {
  const { log, records } = memoryLog()
  const closing = new ShutdownStack(log)
  const closed: string[] = []
  closing.add(() => closed.push('first'))
  closing.add(failing('at once'))
  closing.add(async () => {
    await Promise.resolve()
    closed.push('second')
  })
  closing.add(() => Promise.reject(new Error('later')))
  await closing.close()
  expect(closed).toEqual(['second', 'first'])
  expect(records().map(({ event, error }) => [event, error])).toMatchObject([
    ['server.close_failed', { message: 'later' }],
    ['server.close_failed', { message: 'at once' }],
  ])
})

test('a resource that never closes delays the others for a limited time', async () => {
  const { log, records } = memoryLog()
  const closing = new ShutdownStack(log)
  const closed: string[] = []
  closing.add(() => closed.push('first'))
  closing.add(() => {
    closed.push('second')
    return new Promise(() => undefined)
  })
  closing.add(() => new Promise(() => undefined))
  await closing.close(20)
  expect(closed).toEqual(['second', 'first'])
  expect(records().map(({ event }) => event)).toEqual(['server.close_late'])
})
